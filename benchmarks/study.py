"""What the study machinery costs: per cell, in use of the cores, and for a store of 100,000 cells.

Refuses to report if a backend changes a result, or if an export loses a row.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from memcap.study.cell import Cell
from memcap.study.record import Outcome, State
from memcap.study.sqlite_store import SqliteStore
from memcap.study.study import Study

CELLS, SECONDS, STORED = 400, 0.020, 100_000


def overhead() -> None:
    """Cells that wait show what the machinery adds to wall time; cells that compute show what share of the processor
    time of driver and workers the cells get, which a busy machine hardly changes."""
    print(f"{CELLS} cells of {SECONDS * 1e3:.0f} ms; load of this machine {_load()}")
    for task in ("wait", "compute"):
        grid = {
            "task": f"benchmarks.short_cells:{task}",
            "axes": {"x": {"from": 1, "to": CELLS, "step": 1}},
            "fixed": {"seconds": SECONDS},
        }
        for workers in (0, 1, 2):
            _measure(task, grid, workers)
    print(f"load of this machine afterwards {_load()}")


def _measure(task: str, grid: dict, workers: int) -> None:
    with tempfile.TemporaryDirectory() as folder, Study.open(Path(folder) / "study.db") as study:
        began, cpu = time.perf_counter(), _processor_time()
        study.run(grid, workers=workers)
        wall, cpu = time.perf_counter() - began, _processor_time() - cpu
        frame = study.frame()
    if dict(zip(frame["x"], frame["square"], strict=True)) != {x: x * x for x in range(1, CELLS + 1)}:
        raise SystemExit(f"refusing to report: wrong results with {workers} workers")
    slots = max(1, workers)
    work, cells_cpu = float(frame["seconds"].sum()), float(frame["cpu_seconds"].sum())
    steady = _steady_use(frame["started"].to_numpy(), frame["finished"].to_numpy(), slots)
    where = f"{workers} processes" if workers else "in process"
    line = (
        f"  {task:8} {where:12} {wall:6.2f} s, {100 * work / wall / slots:5.1f} % of {slots} slots busy "
        f"({100 * steady:5.1f} % once all have begun), processor time beside the cells "
        f"{1e3 * (cpu - cells_cpu) / CELLS:5.2f} ms a cell"
    )
    print(line + (f", {100 * cells_cpu / cpu:5.1f} % of it all in cells" if task == "compute" else ""))


def _steady_use(started: np.ndarray, finished: np.ndarray, slots: int) -> float:
    """Share of the slots busy between the moment when all are and the last start: without starting and tail."""
    order = np.argsort(started)
    begin, end = float(started[order[slots - 1]]), float(started.max())
    inside = np.clip(finished, begin, end) - np.clip(started, begin, end)
    return float(inside.sum()) / (end - begin) / slots


def _processor_time() -> float:
    """Of this process and of its children that have ended, seconds."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


LOOK = """
import json, sys, time
began = time.perf_counter()
from memcap.study.study import Study
with Study.open(sys.argv[1], create=False) as study:
    some = study.frame(where="dimension == 64 and recall > 0.5")
    rows = study.export(sys.argv[2])
from memcap.study.execution import peak_memory
print(json.dumps({"seconds": time.perf_counter() - began, "peak": peak_memory(), "rows": rows, "some": len(some)}))
"""


def fill(path: Path) -> int:
    """A store of finished cells with twenty results each; returns how many pass the filter."""
    store = SqliteStore(path)
    cells = [
        Cell("wait", 1, {"samples": 100 + i // 50, "dimension": 2 ** (i % 8), "length": 16, "width": None}, i % 50)
        for i in range(STORED)
    ]
    versions = {"memcap": "0", "numpy": "2", "python": "3.11"}
    store.add(cells)
    expected = 0
    for start in range(0, STORED, 10_000):
        part = cells[start : start + 10_000]
        store.claim([c.identity for c in part], "benchmark", time.time() + 600)
        outcomes = []
        for offset, cell in enumerate(part):
            recall = ((start + offset) * 7919 % 1000) / 1000
            expected += cell.settings["dimension"] == 64 and recall > 0.5
            result = {"recall": recall, **{f"quantity_{k}": recall * k for k in range(19)}}
            outcome = Outcome(State.DONE, result, host="h", device="cpu", versions=versions, seconds=0.1)
            outcomes.append((cell.identity, outcome))
        store.finish(outcomes, "benchmark")
    store.close()
    return expected


def large_store() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.db"
        expected = fill(path)
        size = path.stat().st_size / 2**20
        print(f"{STORED:,} stored cells, {size:.0f} MiB: open, filter, export, in a new process; load {_load()}")
        for ending in ("parquet", "csv", "jsonl"):
            command = [sys.executable, "-c", LOOK, str(path), str(Path(folder) / f"out.{ending}")]
            before = _processor_time()
            told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            if told["rows"] != STORED or told["some"] != expected:
                raise SystemExit(f"refusing to report: {told} instead of {STORED} rows and {expected} filtered")
            used = _processor_time() - before
            peak = told["peak"] / 2**20
            print(f"  {ending:8} {told['seconds']:5.2f} s ({used:5.2f} s of processor), peak {peak:4.0f} MiB")


def main() -> None:
    overhead()
    large_store()
