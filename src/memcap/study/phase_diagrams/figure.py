"""``memcap reproduce phase-diagrams``: the paper's phase diagrams, simulated and predicted, run as studies.

The grids are files beside this one.  The contract of ``reproduce`` is that of every figure: see
``memcap.cli.reproduce``.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from memcap.errors import ConfigurationError, RunError, nearest
from memcap.study.cell import Cell, canonical
from memcap.study.fits import Critical
from memcap.study.grid import Grid
from memcap.study.record import Outcome, Record
from memcap.study.study import Study
from memcap.study.yaml_file import read_yaml

SUMMARY = "phase diagrams of token retrieval: samples x dimension, samples x length, vocabulary x dimension"

DIAGRAMS = {
    "samples-dimension": ("dimension", "samples"),
    "samples-length": ("length", "samples"),
    "vocabulary-dimension": ("dimension", "vocabulary"),
}
"""Diagram -> (axis that tells its lines apart, axis along which recall crosses one half)."""

ERROR_BOUND = 0.02  # mean absolute error of predicted recall (spec section 8)
GOLDEN_TOLERANCE = 1e-9  # same seeds, same numbers: recall counts answers

Progress = Callable[[int, int, str], None] | None


def grid_keys(scale: str, name: str) -> dict[str, Any]:
    """The checked-in grid of one diagram."""
    place = resources.files("memcap.study.phase_diagrams").joinpath("grids", scale, f"{name}.yaml")
    with resources.as_file(place) as path:
        return {str(k): v for k, v in read_yaml(path).items()}


def golden() -> dict[str, Any]:
    """Mean recall and data hash of every diagram at the small scale with seed 0, as last stored."""
    place = resources.files("memcap.study.phase_diagrams").joinpath("golden_small.json")
    loaded: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return loaded


def reproduce(
    scale: str, *, seed: int = 0, workers: int = 2, progress: Progress = None, only: str | None = None
) -> dict[str, Any]:
    """Run the diagrams of one scale; ``seed`` is added to every seed of the grids.

    Raises:
        ConfigurationError: if ``only`` names no diagram.
        RunError: if a cell fails.
    """
    names = [name for name in DIAGRAMS if only is None or only in name]
    if not names:
        raise ConfigurationError(f"no diagram {only!r}{nearest(str(only), DIAGRAMS)}; diagrams: {', '.join(DIAGRAMS)}")
    began = time.monotonic()
    keys = {name: grid_keys(scale, name) for name in names}
    tables, checks, means = [], [], {}
    with tempfile.TemporaryDirectory(prefix="memcap-phase-") as folder:
        for name in names:
            diagram = _run(name, keys[name], seed, workers, progress, Path(folder))
            tables += diagram.tables()
            checks += diagram.checks()
            means[name] = diagram.record()
            if scale == "small" and seed == 0:
                checks.append(_golden_check(name, means[name]))
    return {
        "figure": "phase-diagrams",
        "scale": scale,
        "seed": seed,
        "seconds": time.monotonic() - began,
        "configuration": hashlib.sha256(canonical(keys).encode()).hexdigest()[:16],
        "tables": tables,
        "checks": checks,
        "recall": means,
    }


class _Counting:
    """Passes a run's progress on."""

    def __init__(self, progress: Progress, what: str) -> None:
        self._progress, self._what = progress, what

    def begin(self, total: int, already_done: int) -> None:
        """See ``memcap.study.run_terms.Observer``."""
        self._total, self._done = total, already_done

    def cell(self, cell: Cell, outcome: Outcome) -> None:
        """See ``memcap.study.run_terms.Observer``."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._total, self._what)

    def end(self) -> None:
        """See ``memcap.study.run_terms.Observer``."""


def _run(name: str, keys: dict[str, Any], seed: int, workers: int, progress: Progress, folder: Path) -> _Diagram:
    simulated = Grid(where=name, **keys)
    if seed:
        simulated = Grid(where=name, **{**keys, "seeds": [s + seed for s in simulated.seeds]})
    fixed = {k: v for k, v in keys["fixed"].items() if k != "test_samples"}
    predicted = Grid(where=name, task="predict", axes=keys["axes"], fixed=fixed)
    with Study.open(folder / f"{name}.db") as study:
        for grid, what in ((simulated, f"{name}, simulated"), (predicted, f"{name}, predicted")):
            summary = study.run(grid, workers=workers, observer=_Counting(progress, what))
            if summary.failed or summary.lost:
                outcome = study.records(["failed", "lost"])[0].outcome
                raise RunError(f"{name}: a cell failed: {outcome.error if outcome else 'its worker was killed'}")
        across, along = DIAGRAMS[name]
        lines = {task: _lines(study, task, across, along) for task in ("simulate", "predict")}
        return _Diagram(name, across, along, study.records(["done"]), lines)


def _lines(study: Study, task: str, across: str, along: str) -> dict[Any, Critical]:
    rising = along == "samples"
    found = study.critical(along, "recall", task=task, rising=rising)
    return {line.settings[across]: line for line in found}


class _Diagram:
    """One diagram's cells and critical values."""

    def __init__(
        self, name: str, across: str, along: str, records: list[Record], lines: dict[str, dict[Any, Critical]]
    ) -> None:
        self.name, self.across, self.along, self.lines = name, across, along, lines
        self.simulated: dict[tuple[Any, Any], list[float]] = defaultdict(list)
        self.predicted: dict[tuple[Any, Any], float] = {}
        hashes = []
        for record in records:
            place = (record.settings[across], record.settings[along])
            assert record.outcome is not None
            recall = float(record.outcome.result["recall"])
            if record.task == "simulate":
                self.simulated[place].append(recall)
                hashes.append(f"{record.identity} {record.outcome.data_hash}")
            else:
                self.predicted[place] = recall
        self.data_hash = hashlib.sha256("\n".join(sorted(hashes)).encode()).hexdigest()[:16]
        self.mean = {place: math.fsum(values) / len(values) for place, values in self.simulated.items()}

    def tables(self) -> list[dict[str, Any]]:
        """Recall as simulated and predicted, and the critical values."""
        rows = sorted({a for a, _ in self.mean})
        columns = sorted({b for _, b in self.mean})
        cells = [[a, *(f"{self.mean[a, b]:.3f} / {self.predicted[a, b]:.3f}" for b in columns)] for a in rows]
        title = f"{self.name}: recall, simulated / predicted, by {self.across} (down) and {self.along}"
        critical = [[a, self.lines["simulate"][a].describe(), self.lines["predict"][a].describe()] for a in rows]
        return [
            {"title": title, "columns": [self.across, *map(str, columns)], "rows": cells},
            {
                "title": f"{self.name}: {self.along} at recall 0.5 (data {self.data_hash})",
                "columns": [self.across, "simulated", "predicted"],
                "rows": critical,
            },
        ]

    def checks(self) -> list[dict[str, Any]]:
        """How far the theory is from the simulation; ``early-phase`` compares critical sizes, with more seeds."""
        error = math.fsum(abs(self.mean[p] - self.predicted[p]) for p in self.mean) / len(self.mean)
        noise = self._noise()
        return [
            {
                "what": f"{self.name}: mean absolute error of predicted recall",
                "measured": error,
                "bound": ERROR_BOUND,
                "noise": noise,
                "passed": error <= ERROR_BOUND + noise,
            },
        ]

    def _noise(self) -> float:
        """What the scatter between seeds alone adds to the mean absolute error."""
        errors = []
        for values in self.simulated.values():
            if len(values) > 1:
                mean = math.fsum(values) / len(values)
                variance = math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)
                errors.append(math.sqrt(2 / math.pi * variance / len(values)))
        return math.fsum(errors) / len(errors) if errors else 0.0

    def record(self) -> dict[str, Any]:
        """Mean recall by place, and the hash of all data."""
        return {
            "data_hash": self.data_hash,
            "mean": {f"{self.across}={a} {self.along}={b}": value for (a, b), value in sorted(self.mean.items())},
        }


def _golden_check(name: str, record: dict[str, Any]) -> dict[str, Any]:
    stored = golden().get(name, {"mean": {}, "data_hash": ""})
    same = stored["mean"].keys() == record["mean"].keys()
    worst = max((abs(record["mean"][k] - v) for k, v in stored["mean"].items()), default=0.0) if same else None
    return {
        "what": f"{name}: largest difference from the stored values, data {record['data_hash']}"
        + ("" if stored["data_hash"] == record["data_hash"] else f" (stored: {stored['data_hash'] or 'none'})"),
        "measured": worst,
        "bound": GOLDEN_TOLERANCE,
        "passed": worst is not None and worst <= GOLDEN_TOLERANCE and stored["data_hash"] == record["data_hash"],
    }
