"""Compute one cell where it is called, and say how it went.  Runs in the driver, in a worker process or on a cluster.

A measurement that raises gives a *failed* outcome with the reason; it never gives a number.  The expensive part that
cells share is kept from one cell to the next in the same process; since it depends on the shared settings alone, the
results are those of cells computed one by one.
"""

from __future__ import annotations

import platform
import socket
import sys
import threading
import time
import traceback
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from memcap.errors import RunError
from memcap.study import measurements
from memcap.study.cell import Cell
from memcap.study.record import Outcome, State, plain
from memcap.version import __version__

_NUMBERS = ("numpy", "scipy", "torch", "numba")
_kept = threading.local()  # .part: group and shared part of the latest cell in this thread


@cache
def versions() -> dict[str, str]:
    """Versions of memcap, Python and the libraries that make numbers."""
    found = {"memcap": __version__, "python": platform.python_version()}
    for name in _NUMBERS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@cache
def host() -> str:
    """This machine's name."""
    return socket.gethostname()


def peak_memory() -> int:
    """Largest resident size of this process so far, bytes; 0 where the system does not say."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    except (OSError, IndexError, ValueError):
        pass
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def call(cell: Cell) -> dict[str, Any]:
    """The measurement's own answer for ``cell``, exceptions included.

    Raises:
        RunError: if what it returned is not a dict.
    """
    measurement = measurements.load(cell.place)
    settings = dict(cell.settings)
    if "seed" in measurements.setting_names(measurement.settings):
        settings["seed"] = cell.seed
    if measurement.prepare is None:
        result = measurement.run(settings)
    else:
        result = measurement.run(settings, _shared_part(measurement, cell.group, settings))
    if not isinstance(result, dict):
        raise RunError(f"the measurement {cell.task!r} must return a dict of results, got {type(result).__name__}")
    return result


def _shared_part(measurement: measurements.Measurement, group: str, settings: dict[str, Any]) -> Any:
    assert measurement.prepare is not None
    kept: tuple[str, Any] | None = getattr(_kept, "part", None)
    if kept is None or kept[0] != group:
        _kept.part = kept = None  # let go of the old part before the new one is made
        kept = _kept.part = (group, measurement.prepare({n: settings[n] for n in measurement.shared}))
    return kept[1]


def execute(cell: Cell) -> Outcome:
    """Compute ``cell``; every exception but an interrupt becomes a *failed* outcome."""
    result: dict[str, Any] = {}
    data_hash, device = "", "cpu"
    state, failure = State.DONE, ("", "", "")
    started, wall, cpu = time.time(), time.perf_counter(), time.process_time()
    try:
        measurements.load(cell.place)  # importing it is not the cell's time
        started, wall, cpu = time.time(), time.perf_counter(), time.process_time()
        result = {str(k): v for k, v in call(cell).items()}
        data_hash, device = str(result.pop("data_hash", "")), str(result.pop("device", "cpu"))
        plain(result)
    except Exception as error:  # whatever a measurement raises belongs to its cell
        state, result = State.FAILED, {}
        failure = (type(error).__name__, str(error), "".join(traceback.format_tb(error.__traceback__)[-6:]))
    return Outcome(
        state,
        result,
        *failure,
        started=started,
        finished=time.time(),
        seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - cpu,
        peak_memory=peak_memory(),
        host=host(),
        device=device,
        versions=versions(),
        data_hash=data_hash,
    )
