"""A worker process: reads jobs from standard input, writes results to what was standard output, until its driver ends.

Started by ``ProcessSlots`` as ``python -m memcap.study.worker``, so that the user's script is never imported again and
needs no ``if __name__ == "__main__"``.  A frame is eight bytes of length, then a pickle.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, BinaryIO

HEADER = struct.Struct("<Q")


def frame(value: object) -> bytes:
    """One pickled value as it is written."""
    payload = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(payload)) + payload


def write_frame(stream: BinaryIO, value: object) -> None:
    """Write one pickled value."""
    stream.write(frame(value))
    stream.flush()


def read_frame(stream: BinaryIO) -> Any:
    """Read one pickled value.

    Raises:
        EOFError: if the other side is gone, in the middle of a frame or between two.
    """
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        raise EOFError
    size = HEADER.unpack(header)[0]
    payload = stream.read(size)
    if len(payload) < size:
        raise EOFError
    return pickle.loads(payload)


def serve(jobs: BinaryIO, results: BinaryIO, parent: int) -> None:
    """Answer every job ``(function, arguments, keywords)`` with ``(worked, value or exception)``.

    A job that was sent ahead is not begun once the driver, process ``parent``, is dead: another may have taken it over.
    """
    while True:
        try:
            function, arguments, keywords = read_frame(jobs)
        except EOFError:
            return
        if os.getppid() != parent:
            return
        answer = _attempt(function, arguments, keywords)
        try:
            write_frame(results, answer)
        except BrokenPipeError:
            return
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            write_frame(results, (False, TypeError(f"the result cannot be sent to the driver: {error}")))


def _attempt(
    function: Callable[..., object], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[bool, object]:
    try:
        return True, function(*arguments, **keywords)
    except Exception as error:
        return False, error


def _end_with(parent: int) -> None:
    """End this process soon after its driver has died, even in the middle of a long cell."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def main() -> None:
    """Set up the process and serve."""
    parent = os.getppid()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the driver decides what it means
    jobs, results = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what a measurement prints must not end up between two frames
    sys.path[:] = read_frame(jobs)
    serve(jobs, results, parent)


if __name__ == "__main__":
    main()
