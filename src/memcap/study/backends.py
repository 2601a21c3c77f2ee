"""Which executor a run uses: this process, local processes, a Dask cluster, or one that the caller brings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from memcap.errors import ConfigurationError
from memcap.study.inline_executor import InlineExecutor

_UNITS = {"": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_UNITS |= {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


@dataclass(frozen=True)
class Backend:
    """An executor and how the driver should feed it.

    Attributes:
        executor: where cells are computed.
        slots: how many cells it computes at once.
        window: how many cells to have claimed at once, at this moment (a cluster may grow).
        blames_neighbours: see ``Driver``.
    """

    executor: Executor
    slots: int
    window: Callable[[], int]
    blames_neighbours: bool = False


def bytes_of(size: int | str) -> int:
    """A size in bytes from a number or a text with a unit.

    Raises:
        ConfigurationError: if it is neither, or not positive.

    >>> bytes_of("1.5 GiB")
    1610612736
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*", str(size))
    if match is None or match[2].lower() not in _UNITS or float(match[1]) <= 0:
        raise ConfigurationError(f"a size is a number of bytes or, for example, '512 MiB' or '2 GiB'; got {size!r}")
    return round(float(match[1]) * _UNITS[match[2].lower()])


def check(*, workers: int, tries: int, time_limit: float | None, memory_limit: int | str | None) -> None:
    """Refuse options that cannot mean anything.

    Raises:
        ConfigurationError: naming the option.
    """
    if workers < 0:
        raise ConfigurationError(f"workers is 0 (this process) or a number of processes, got {workers}")
    if tries < 1:
        raise ConfigurationError(f"tries is at least 1, got {tries}")
    if time_limit is not None and not time_limit > 0:
        raise ConfigurationError(f"time_limit is a positive number of seconds, got {time_limit}")
    if memory_limit is not None:
        bytes_of(memory_limit)


@contextmanager
def open_backend(
    *,
    workers: int,
    scheduler: Any,
    executor: Executor | None,
    threads: int,
    memory_limit: int | str | None,
) -> Iterator[Backend]:
    """The backend that the options name; its workers end with the ``with`` block, whatever they are doing.

    Raises:
        ConfigurationError: if the options contradict each other.
        MissingExtraError: if a cluster is named and Dask is not installed.
    """
    if sum([workers > 0, scheduler is not None, executor is not None]) > 1:
        raise ConfigurationError("give one of workers, scheduler and executor")
    if memory_limit is not None and workers == 0:
        raise ConfigurationError("memory_limit needs workers: this process cannot be ended for one cell")
    if scheduler is not None:
        from memcap.study.dask_cluster import open_cluster

        with open_cluster(scheduler) as cluster:
            yield Backend(cluster, cluster.slots(), lambda: 2 * cluster.slots(), blames_neighbours=True)
    elif executor is not None:
        slots = int(getattr(executor, "_max_workers", 1))
        yield Backend(executor, slots, lambda: 2 * slots)
    elif workers == 0:
        yield Backend(InlineExecutor(), 1, lambda: 1)
    else:
        from memcap.study.process_slots import ProcessSlots

        limit = None if memory_limit is None else bytes_of(memory_limit)
        pool = ProcessSlots(workers, threads=threads, memory_limit=limit)
        try:
            yield Backend(pool, workers, lambda: 3 * workers)  # running, ahead in the pipe, next
        finally:
            pool.shutdown(cancel_futures=True)
