"""What the study machinery costs: per cell, in use of the cores, and for a store of 100,000 cells.

Refuses to report if a backend changes a result, or if an export loses a row.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from memcap.study.cell import Cell
from memcap.study.measurements import Measurement
from memcap.study.record import Outcome, State
from memcap.study.sqlite_store import SqliteStore
from memcap.study.study import Study

CELLS, SECONDS, STORED = 400, 0.020, 100_000


@dataclass(frozen=True)
class WaitSettings:
    x: int
    seconds: float = SECONDS


def run_wait(settings: dict) -> dict:
    time.sleep(settings["seconds"])
    return {"square": settings["x"] ** 2}


wait = Measurement("wait", WaitSettings, run_wait)


def overhead() -> None:
    grid = {"task": "benchmarks.study:wait", "axes": {"x": {"from": 1, "to": CELLS, "step": 1}}}
    print(f"{CELLS} cells of {SECONDS * 1e3:.0f} ms")
    squares = {}
    for workers in (0, 1, 2):
        with tempfile.TemporaryDirectory() as folder, Study.open(Path(folder) / "study.db") as study:
            began = time.perf_counter()
            study.run(grid, workers=workers)
            wall = time.perf_counter() - began
            frame = study.frame()
            squares[workers] = dict(zip(frame["x"], frame["square"], strict=True))
            if squares[workers] != {x: x * x for x in range(1, CELLS + 1)}:
                raise SystemExit(f"refusing to report: wrong results with {workers} workers")
            work = float(frame["seconds"].sum())
        slots = max(1, workers)
        where = f"{workers} processes" if workers else "in process"
        print(
            f"  {where:12} {wall:6.2f} s, machinery {1e3 * (wall - work / slots) * slots / CELLS:5.2f} ms a cell, "
            f"{100 * work / wall / slots:5.1f} % of {slots} slots busy (start of the processes included)"
        )


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
        print(f"{STORED:,} stored cells, {path.stat().st_size / 2**20:.0f} MiB: open, filter, export, in a new process")
        for ending in ("parquet", "csv", "jsonl"):
            command = [sys.executable, "-c", LOOK, str(path), str(Path(folder) / f"out.{ending}")]
            told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            if told["rows"] != STORED or told["some"] != expected:
                raise SystemExit(f"refusing to report: {told} instead of {STORED} rows and {expected} filtered")
            print(f"  {ending:8} {told['seconds']:5.2f} s, peak {told['peak'] / 2**20:4.0f} MiB")


def main() -> None:
    overhead()
    large_store()
