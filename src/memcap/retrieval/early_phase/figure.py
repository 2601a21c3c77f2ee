"""``memcap reproduce early-phase``: runs the checked-in configuration and says how far the theory is from simulation.

The contract of ``reproduce`` is that of every figure: see ``memcap.cli.reproduce``.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import yaml

from memcap.errors import ConfigurationError, FitError
from memcap.retrieval.early_phase.grids import (
    GridPoint,
    jobs_of,
    mean_absolute_error,
    noise_of_error,
    predicted,
)
from memcap.retrieval.early_phase.lines import (
    CriticalPoint,
    critical_point,
    exponent,
    mean_and_worst,
    tasks_around,
)
from memcap.retrieval.early_phase.points import Point, measure_all
from memcap.retrieval.task import RetrievalTask

SUMMARY = "predicted against simulated recall and critical sizes of token retrieval (three gradient steps)"

FIRST_STEP_BOUND = 0.015
RATIO_WORST, RATIO_MEAN = 0.25, 0.12
MLP_RATIO_MEAN = 0.20
EXPONENT_BOUND = 0.15
GOLDEN_TOLERANCE = 0.005

Progress = Callable[[int, int, str], None] | None


def configuration() -> dict[str, Any]:
    """The checked-in configuration."""
    text = resources.files("memcap.retrieval.early_phase").joinpath("configuration.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def golden() -> dict[str, float]:
    """Simulated means of the small scale, seed 0, stored when the figure was last changed."""
    text = resources.files("memcap.retrieval.early_phase").joinpath("golden_small.json").read_text(encoding="utf-8")
    loaded: dict[str, float] = json.loads(text)
    return loaded


def reproduce(
    scale: str, *, seed: int = 0, workers: int = 2, progress: Progress = None, only: str | None = None
) -> dict[str, Any]:
    """Measure every grid and line of the configuration.

    Args:
        scale: ``small`` (minutes) or ``full``.
        seed: added to the seeds of every run.
        workers: runs simulated at once; no number depends on it.
        progress: called as ``progress(done, total, what)``.
        only: measure only grids and lines whose name contains this.

    Returns:
        The record described in ``memcap.cli.reproduce``.

    Raises:
        ConfigurationError: if ``only`` matches nothing.
    """
    started = time.perf_counter()
    settings = configuration()
    plans = [
        (entry, _plan_grid(entry) if kind == "grids" else _plan_line(entry, scale))
        for kind in ("grids", "lines")
        for entry in settings[kind]
        if entry["seeds"][scale] and (only is None or only in entry["name"])
    ]
    if not plans:
        names = ", ".join(entry["name"] for kind in ("grids", "lines") for entry in settings[kind])
        raise ConfigurationError(f"no grid or line of scale {scale!r} has {only!r} in its name; names: {names}")
    jobs = [
        (item.task, item.target, seed + _offset(entry["name"], item) + run)
        for entry, plan in plans
        for item in plan
        for run in range(entry["seeds"][scale])
    ]
    values = iter(measure_all(jobs, workers, progress))
    tables: list[dict[str, Any]] = []
    checks: list[dict[str, Any]] = []
    means: dict[str, float] = {}
    errors: list[float] = []
    for entry, plan in plans:
        points = [Point(i.task, np.array([next(values) for _ in range(entry["seeds"][scale])])) for i in plan]
        for item, point in zip(plan, points, strict=True):
            means[f"{entry['name']} | {item.target} | {item.label}"] = point.mean
        if "axes" in entry:
            _report_grid(entry, plan, points, tables, checks)
        else:
            errors += _report_line(entry, plan, points, tables, checks)
    if errors:
        checks.append(
            _check("critical N, all attention-only lines: mean |ln ratio|", sum(errors) / len(errors), RATIO_MEAN)
        )
    if scale == "small" and seed == 0:
        checks.append(_golden_check(means))
    return {
        "figure": "early-phase",
        "scale": scale,
        "seed": seed,
        "configuration": hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16],
        "tables": tables,
        "checks": checks,
        "means": means,
        "seconds": time.perf_counter() - started,
    }


@dataclass(frozen=True)
class _Item:
    """One task to measure; for a line, ``at`` is the variable's value and ``predicted`` the critical N around it."""

    label: str
    task: RetrievalTask
    target: str
    predicted: float
    at: int = 0


def _offset(name: str, item: _Item) -> int:
    """Where the seeds of a point begin: points must not share embeddings, or their errors would add up."""
    text = f"{name}|{item.target}|{item.label}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:5], "little") * 1000


def _plan_grid(grid: dict[str, Any]) -> list[_Item]:
    return [
        _Item(", ".join(f"{k}={v}" for k, v in at.items()), task, target, predicted(task, target))
        for at, task, target in jobs_of(grid)
    ]


def _plan_line(line: dict[str, Any], scale: str) -> list[_Item]:
    ((name, sizes),) = line["axis"].items()
    plan = []
    for size in sizes:
        task = RetrievalTask(**{**line["task"], name: size, "samples": 1000})
        crossing, tasks = tasks_around(task, line["target"], scale)
        plan += [_Item(f"{name}={size}, samples={t.samples}", t, line["target"], crossing, at=size) for t in tasks]
    return plan


def _report_grid(
    grid: dict[str, Any], plan: list[_Item], points: list[Point], tables: list[Any], checks: list[Any]
) -> None:
    paired = [GridPoint(i.label, p, i.predicted, i.target) for i, p in zip(plan, points, strict=True)]
    for target in dict.fromkeys(p.target for p in paired):
        bound = FIRST_STEP_BOUND if target == "clean_recall" else grid["bound"]
        noise = noise_of_error(paired, target)
        name = f"{grid['name']}: mean absolute error, {'first step' if target == 'clean_recall' else 'recall'}"
        checks.append(_check(name, mean_absolute_error(paired, target), bound, noise))
    rows = [
        [
            p.label,
            "first step" if p.target == "clean_recall" else "recall",
            p.simulated.mean,
            p.simulated.standard_error,
            p.predicted,
            p.predicted - p.simulated.mean,
        ]
        for p in paired
    ]
    columns = ["point", "what", "simulated", "standard error", "predicted", "difference"]
    tables.append({"title": grid["name"], "columns": columns, "rows": rows})


def _report_line(
    line: dict[str, Any], plan: list[_Item], points: list[Point], tables: list[Any], checks: list[Any]
) -> list[float]:
    found: list[CriticalPoint] = []
    rows: list[list[Any]] = []
    for size in dict.fromkeys(i.at for i in plan):
        here = [(i, p) for i, p in zip(plan, points, strict=True) if i.at == size]
        crossing = here[0][0].predicted
        try:
            at = critical_point(size, crossing, [p for _, p in here])
        except FitError as error:
            rows.append([size, crossing, str(error), "", "", ""])
            checks.append({"what": f"{line['name']} at {size}", "measured": None, "bound": None, "passed": False})
            continue
        found.append(at)
        rows.append([size, crossing, at.simulated, *at.interval, at.ratio])
    columns = [next(iter(line["axis"])), "predicted N", "simulated N", "low 95 %", "high 95 %", "predicted/simulated"]
    title = f"{line['name']}: critical N at {line['target']} = 0.5"
    with_mlp = any(i.task.width for i in plan)
    if len(found) >= 2:
        slope = exponent(found)
        title += (
            f"; exponent simulated {slope.simulated:.2f} [{slope.interval[0]:.2f}, {slope.interval[1]:.2f}], "
            f"predicted {slope.predicted:.2f}"
        )
        if "exponent" in line:
            low, high = line["exponent"]
            inside = slope.interval[1] >= low and slope.interval[0] <= high
            text = f"{line['name']}: simulated exponent {slope.simulated:.3f} within [{low}, {high}]"
            checks.append({"what": text, "measured": slope.simulated, "bound": high, "passed": inside})
        if not with_mlp:
            name = f"{line['name']}: |predicted - simulated exponent|"
            half = (slope.interval[1] - slope.interval[0]) / 2
            checks.append(_check(name, abs(slope.predicted - slope.simulated), EXPONENT_BOUND, half))
    tables.append({"title": title, "columns": columns, "rows": rows})
    if not found:
        return []
    mean, worst = mean_and_worst(found)
    if with_mlp:
        checks.append(_check(f"{line['name']}: mean |ln ratio| of critical N", mean, MLP_RATIO_MEAN))
        return []
    noise = max(float(np.log(p.interval[1] / p.interval[0])) / 2 for p in found)
    checks.append(_check(f"{line['name']}: worst |ln ratio| of critical N", worst, RATIO_WORST, noise))
    return [abs(float(np.log(p.ratio))) for p in found]


def _check(what: str, measured: float, bound: float, noise: float = 0.0) -> dict[str, Any]:
    """A bound on an error; ``noise`` is what the seeds alone contribute, so it is allowed on top and printed."""
    if not np.isfinite(noise):
        noise = 0.0
    return {"what": what, "measured": measured, "bound": bound, "noise": noise, "passed": measured <= bound + noise}


def _golden_check(means: dict[str, float]) -> dict[str, Any]:
    """Simulated means equal those stored, up to what another processor's rounding can move."""
    stored = golden()
    shared = [name for name in means if name in stored]
    worst = max((abs(means[name] - stored[name]) for name in shared), default=float("inf"))
    return _check(f"{len(shared)} simulated means equal the stored ones: largest difference", worst, GOLDEN_TOLERANCE)
