"""What a grid will cost: a few cells are run, and time and memory of the others follow from them.

A cell's size is the product of its positive numeric settings; between and beyond the probes log(seconds) is linear in
log(size).  That is an estimate for planning and says so; the largest cell's memory is measured, not estimated.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import TimeoutError as LateError
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import psutil

from memcap.errors import ConfigurationError, RunError
from memcap.study.cell import Cell
from memcap.study.execution import execute
from memcap.study.grid import Grid
from memcap.study.process_slots import MemoryLimit, ProcessSlots, WorkerDied
from memcap.study.record import State


@dataclass(frozen=True)
class Probe:
    """One cell that was run: its settings, seconds, and the worker's peak memory in bytes."""

    settings: dict[str, Any]
    seconds: float
    memory: int


@dataclass(frozen=True)
class Estimate:
    """What a grid will cost.

    Attributes:
        cells: in the whole grid.
        cells_to_run: with ``strategy: boundary`` a third of them; otherwise all.
        workers: local processes assumed.
        seconds: estimated wall time.
        memory: of all workers together, bytes, from the largest probe.
        available_memory: of this machine now, bytes.
        probes: what was measured.
        obstacles: why the grid cannot run here as it is; empty if it can.
        start_up: how many of the seconds are a new process's imports and compilation; a run without workers, or on a
            machine that has read the libraries before, needs less.
    """

    cells: int
    cells_to_run: int
    workers: int
    seconds: float
    memory: int
    available_memory: int
    probes: tuple[Probe, ...]
    obstacles: tuple[str, ...]
    start_up: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 worker``, ``2 workers``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def size_of(cell: Cell) -> float:
    """Natural logarithm of the product of the positive numeric settings."""
    numbers = [v for v in cell.settings.values() if isinstance(v, int | float) and not isinstance(v, bool) and v > 0]
    return math.fsum(math.log(v) for v in numbers)


def estimate(
    grid: Grid,
    *,
    workers: int = 1,
    memory_limit: int | None = None,
    time_limit: float | None = None,
    patience: float = 60.0,
) -> Estimate:
    """Run the smallest, a middle and the largest cell in one local process, and add up.

    The smallest cell runs once before, so that imports and compilation are counted once per worker and not per cell.

    Args:
        grid: what is to be run.
        workers: local processes assumed; 0 and 1 mean one cell at a time.
        memory_limit: bytes that a cell may use; otherwise this machine's available memory shared among the workers.
        time_limit: seconds that the run may take.
        patience: seconds that one probe may take.

    Raises:
        ConfigurationError: if the grid does not fit its measurement, or a number is not positive.
        RunError: if a probe fails for a reason of its own: every such cell would.
    """
    if not patience > 0:
        raise ConfigurationError(f"a probe needs a positive number of seconds, got {patience}")
    cells = grid.cells
    workers = max(1, workers)
    available = int(psutil.virtual_memory().available)
    limit = memory_limit or available // workers
    ordered = sorted(cells, key=size_of)
    chosen = list({c.identity: c for c in (ordered[0], ordered[len(ordered) // 2], ordered[-1])}.values())
    probes, start_up, obstacles = _probe(chosen, limit, patience)
    to_run = len(cells) if grid.boundary is None else max(1, len(cells) // 3)
    seconds = start_up + _total(cells, probes) * to_run / len(cells) / workers
    memory = max((p.memory for p in probes), default=0) * workers
    if memory > available:
        need = f"{counted(workers, 'worker')} need{'s' if workers == 1 else ''} {memory / 2**30:.2f} GiB"
        obstacles.append(f"{need}, {available / 2**30:.2f} GiB are free")
    if time_limit is not None and seconds > time_limit:
        obstacles.append(f"about {seconds:.0f} s of work do not fit a time limit of {time_limit:.0f} s")
    return Estimate(len(cells), to_run, workers, seconds, memory, available, tuple(probes), tuple(obstacles), start_up)


def _probe(chosen: Sequence[Cell], limit: int, patience: float) -> tuple[list[Probe], float, list[str]]:
    """Timed probes, seconds until a worker is warm, and what stands in the way."""
    probes: list[Probe] = []
    start_up = 0.0
    pool = ProcessSlots(1, memory_limit=limit)
    try:
        for number, cell in enumerate([chosen[0], *chosen]):
            began = time.monotonic()
            try:
                outcome = pool.submit(execute, cell).result(timeout=patience)
            except LateError:
                return probes, start_up, [f"the cell {cell.describe()} takes more than {patience:g} s (patience)"]
            except MemoryLimit as error:
                return probes, start_up, [f"the cell {cell.describe()} does not fit: {error}"]
            except WorkerDied as error:
                raise RunError(f"the probe {cell.describe()} failed: {error}") from None
            if outcome.state is not State.DONE:
                raise RunError(f"the probe {cell.describe()} failed: {outcome.error_type}: {outcome.error}")
            if number == 0:
                start_up = time.monotonic() - began
            else:
                if number == 1:
                    start_up = max(0.0, start_up - outcome.seconds)  # the first cell counts among the cells
                probes.append(Probe({**cell.settings, "seed": cell.seed}, outcome.seconds, outcome.peak_memory))
    finally:
        pool.shutdown(cancel_futures=True)
    return probes, start_up, []


def _total(cells: Sequence[Cell], probes: Sequence[Probe]) -> float:
    """Seconds of all cells, one after the other."""
    if not probes:
        return math.inf
    points: dict[float, float] = {}
    for probe in probes:
        settings = {k: v for k, v in probe.settings.items() if k != "seed"}
        points[size_of(Cell("", 0, settings, 0))] = math.log(max(probe.seconds, 1e-6))
    sizes = np.array(sorted(points))
    logs = np.array([points[s] for s in sizes])
    wanted = np.array([size_of(c) for c in cells])
    return float(np.exp(np.interp(wanted, sizes, logs)).sum())
