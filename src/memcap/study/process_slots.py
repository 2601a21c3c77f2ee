"""The second backend: local processes, one per slot, each supervised by a thread of its own.

``concurrent.futures.ProcessPoolExecutor`` and loky give up the whole pool when one worker dies.  Here a slot owns one
process and one pair of pipes; when the process dies only the future it was working on fails (``WorkerDied``), and the
slot starts another process for the next one.  A job may carry an ``affinity``: slots prefer what they did last, so
that cells with a shared part meet it where it was made.

A worker whose jobs are short is sent one job ahead, so that it need not wait for its driver between two of them.  If
it dies, the job ahead was not begun (its predecessor's answer is still missing) and goes back to the queue.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, TypeVar

import psutil

from memcap.errors import ConfigurationError, RunError
from memcap.study.worker import frame, read_frame, write_frame

T = TypeVar("T")
_SHORT = 0.25  # seconds of a job after which its worker is sent one ahead; behind a longer one a job might wait long
_AHEAD_BYTES = 4096  # a job ahead must fit into the pipe: a worker that writes an answer does not read
_WATCH_SECONDS = 0.02  # between two looks at the workers' memory


class WorkerDied(RunError):
    """A worker process ended in the middle of a job.

    Attributes:
        exit_status: as ``subprocess`` gives it: negative for a signal.
    """

    def __init__(self, message: str, exit_status: int) -> None:
        super().__init__(message)
        self.exit_status = exit_status


class MemoryLimit(RunError):
    """A worker process was ended because it used more memory than a cell may."""


@dataclass
class _Job:
    future: Future[Any]
    work: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
    affinity: str
    claimed: bool = False  # its future is running; also while it waits for another worker than the one that died


def _claim(job: _Job) -> bool:
    """Whether the job may begin: it was not cancelled."""
    job.claimed = job.claimed or job.future.set_running_or_notify_cancel()
    return job.claimed


def _drop(job: _Job) -> None:
    """The job will not be done."""
    if job.future.cancel():
        job.future.set_running_or_notify_cancel()  # wakes those who wait for it
    else:
        job.future.set_exception(RunError("the workers have been shut down"))


class _Slot:
    """One worker process and what it is doing."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.affinity = ""
        self.busy = False
        self.over_limit = 0
        self.ahead: _Job | None = None  # in the worker's pipe, behind the job that it is doing
        self.short = False  # whether the latest job was

    def start(self, threads: int) -> subprocess.Popen[bytes]:
        if self.process is None or self.process.poll() is not None:
            self.stop()
            self.over_limit = 0
            names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
            environment = {**os.environ, **dict.fromkeys(names, str(threads))}
            self.process = subprocess.Popen(
                [sys.executable, "-m", "memcap.study.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
            )
            assert self.process.stdin is not None
            write_frame(self.process.stdin, sys.path)  # type: ignore[arg-type]
        return self.process

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        process = self.process
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    try:
                        pipe.close()
                    except BrokenPipeError:
                        continue  # bytes that the dead process will not read
            self.process = None


class ProcessSlots(Executor):
    """A ``concurrent.futures`` executor whose jobs fail alone.

    Args:
        workers: number of processes.
        threads: numeric threads in each.
        memory_limit: largest resident size of a worker in bytes; a worker above it is ended and its job fails with
            ``MemoryLimit``.

    Raises:
        ConfigurationError: if ``workers`` or ``threads`` is not positive.
    """

    def __init__(self, workers: int, *, threads: int = 1, memory_limit: int | None = None) -> None:
        if workers < 1 or threads < 1:
            raise ConfigurationError(f"workers and threads are at least 1, got {workers} and {threads}")
        self._threads_each = threads
        self._limit = memory_limit
        self._jobs: list[_Job] = []
        self._changed = threading.Condition()
        self._closed = self._aborted = False
        self._slots = [_Slot() for _ in range(workers)]
        self._supervisors = [
            threading.Thread(target=self._supervise, args=(slot,), daemon=True, name=f"memcap-slot-{n}")
            for n, slot in enumerate(self._slots)
        ]
        if memory_limit is not None:
            self._supervisors.append(threading.Thread(target=self._watch, daemon=True, name="memcap-memory"))
        for thread in self._supervisors:
            thread.start()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Queue ``fn(*args, **kwargs)``; the first argument's ``group``, if it has one, is the job's affinity."""
        future: Future[T] = Future()
        affinity = str(getattr(args[0], "group", "")) if args else ""
        with self._changed:
            if self._closed:
                raise RunError("the workers have been shut down")
            self._jobs.append(_Job(future, (fn, args, kwargs), affinity))
            self._changed.notify()
        return future

    def pids(self) -> list[int]:
        """Process numbers of the workers that are alive."""
        return [s.process.pid for s in self._slots if s.process is not None and s.process.poll() is None]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop the workers; with ``cancel_futures`` also those in the middle of a job."""
        with self._changed:
            self._closed = True
            if cancel_futures:
                self._aborted = True
                for job in self._jobs:
                    _drop(job)
                self._jobs.clear()
                for slot in self._slots:
                    if slot.process is not None:
                        slot.process.kill()
            self._changed.notify_all()
        if wait:
            for thread in self._supervisors:
                thread.join()

    def _pick(self, slot: _Slot) -> _Job | None:
        """The next job for ``slot``, waiting for one; ``None`` when there will be none."""
        with self._changed:
            while not self._jobs:
                if self._closed:
                    return None
                slot.busy = False
                self._changed.wait()
            job = self._best(slot)
            slot.busy = True
            return job

    def _best(self, slot: _Slot) -> _Job:
        """Of its own group, else of a group that no other slot holds, else the first."""
        held = {s.affinity for s in self._slots if s is not slot and s.busy}
        own = next((j for j in self._jobs if j.affinity and j.affinity == slot.affinity), None)
        free = next((j for j in self._jobs if j.affinity not in held), self._jobs[0])
        job = own or free
        self._jobs.remove(job)
        slot.affinity = job.affinity
        return job

    def _pick_ahead(self, slot: _Slot) -> _Job | None:
        """A job to wait in the worker's pipe: only if jobs are short and enough are left for the other slots.

        With a memory limit there is none: a worker that is ended must be ended for the job that it is known to do.
        """
        with self._changed:
            enough = len(self._jobs) >= len(self._slots)
            return self._best(slot) if enough and slot.short and self._limit is None and not self._closed else None

    def _supervise(self, slot: _Slot) -> None:
        try:
            while (job := slot.ahead or self._pick(slot)) is not None:
                sent, slot.ahead = job is slot.ahead, None
                if _claim(job):
                    self._perform(slot, job, sent=sent)
        finally:
            self._take_back(slot)
            slot.stop()

    def _take_back(self, slot: _Slot) -> None:
        """The job ahead of a worker that died waits for a living one, before all others."""
        with self._changed:
            job, slot.ahead = slot.ahead, None
            if job is not None and self._aborted:
                _drop(job)
            elif job is not None:
                self._jobs.insert(0, job)
                self._changed.notify()

    def _send_ahead(self, slot: _Slot, process: subprocess.Popen[bytes]) -> None:
        job = self._pick_ahead(slot)
        if job is None or not _claim(job):
            return
        slot.ahead = job
        try:
            message = frame(job.work)
        except Exception:  # told when its turn comes
            message = b""
        if not 0 < len(message) <= _AHEAD_BYTES:
            self._take_back(slot)
            return
        assert process.stdin is not None
        try:
            process.stdin.write(message)
            process.stdin.flush()
        except BrokenPipeError:  # the worker is dead; whether it has answered before is read by the caller
            self._take_back(slot)

    def _perform(self, slot: _Slot, job: _Job, *, sent: bool) -> None:
        """Have one job done; ``sent``: the worker has it already."""
        began = time.monotonic()
        try:
            process = slot.process if sent and slot.process is not None else slot.start(self._threads_each)
            assert process.stdin is not None
            assert process.stdout is not None
            if not sent:
                write_frame(process.stdin, job.work)  # type: ignore[arg-type]
            self._send_ahead(slot, process)
            worked, value = read_frame(process.stdout)  # type: ignore[arg-type]
        except (EOFError, BrokenPipeError):
            job.future.set_exception(self._explain_death(slot))
            self._take_back(slot)
            slot.stop()
        except Exception as error:  # the job could not be sent, or its answer could not be read
            job.future.set_exception(error)
            self._take_back(slot)
            slot.stop()
        else:
            slot.short = time.monotonic() - began < _SHORT
            if worked:
                job.future.set_result(value)
            else:
                job.future.set_exception(value)

    def _explain_death(self, slot: _Slot) -> RunError:
        process = slot.process
        status = process.wait() if process is not None else 0
        if slot.over_limit and self._limit is not None:
            used, limit = slot.over_limit / 2**20, self._limit / 2**20
            return MemoryLimit(
                f"the worker used {used:.0f} MiB, more than the {limit:.0f} MiB a cell may; it was ended"
            )
        how = f"was killed by signal {-status}" if status < 0 else f"ended itself with exit status {status}"
        return WorkerDied(f"the worker process {how} in the middle of the cell", status)

    def _watch(self) -> None:
        while any(thread.is_alive() for thread in self._supervisors[: len(self._slots)]):
            for slot in self._slots:
                process = slot.process
                if not slot.busy or process is None:
                    continue
                try:
                    used = psutil.Process(process.pid).memory_info().rss
                except psutil.Error:
                    continue
                if self._limit is not None and used > self._limit:
                    slot.over_limit = used
                    process.kill()
            time.sleep(_WATCH_SECONDS)
