"""``memcap reproduce lower-bound``: every decoder against the bound of what it sees, along N/L and d.

The contract of ``reproduce`` is that of every figure: see ``memcap.cli.reproduce``.  The record's ``curves`` hold what
``memcap.report`` draws.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np
import yaml

from memcap.errors import ConfigurationError
from memcap.retrieval.lower_bound import recall_bound
from memcap.retrieval.task import RetrievalTask
from memcap.retrieval.under_bounds.points import AXIS, Job, interval, measure_all, tasks_along

SUMMARY = "recall of decoders, from one gradient step to the posterior mean, under the bound of what they see"

GOLDEN_TOLERANCE = 0.02
"""Of a mean over seeds: another processor's rounding may swap two nearly equal assignments."""

Progress = Callable[[int, int, str], None] | None


def configuration() -> list[dict[str, Any]]:
    """The checked-in parts."""
    text = resources.files("memcap.retrieval.under_bounds").joinpath("configuration.yaml").read_text(encoding="utf-8")
    return list(yaml.safe_load(text)["parts"])


def golden() -> dict[str, float]:
    """Mean recalls of the small scale, seed 0, as last stored."""
    text = resources.files("memcap.retrieval.under_bounds").joinpath("golden_small.json").read_text(encoding="utf-8")
    loaded: dict[str, float] = json.loads(text)
    return loaded


def reproduce(
    scale: str, *, seed: int = 0, workers: int = 2, progress: Progress = None, only: str | None = None
) -> dict[str, Any]:
    """Decode every point of the configuration and hold every decoder against its bound.

    Args:
        scale: ``small`` (under a minute) or ``full``.
        seed: first seed of every point.
        workers: runs at once; no number depends on it.
        progress: called as ``progress(done, total, what)``.
        only: measure only parts whose name contains this.

    Returns:
        The record described in ``memcap.cli.reproduce``, with ``curves``: one row a point and decoder.

    Raises:
        ConfigurationError: if ``only`` matches nothing.
    """
    started = time.perf_counter()
    parts = [p for p in configuration() if p["seeds"][scale] and (only is None or only in p["name"])]
    if not parts:
        names = "; ".join(p["name"] for p in configuration() if p["seeds"][scale])
        raise ConfigurationError(f"no part of scale {scale!r} has {only!r} in its name; names: {names}")
    plan = [(part, tasks_along(part)) for part in parts]
    jobs = [
        Job(task.replace(seed=seed + run), part["sees"], part.get("proposals"))
        for part, points in plan
        for _, _, task in points
        for run in range(part["seeds"][scale])
    ]
    runs = iter(measure_all(jobs, workers, progress))
    tables: list[dict[str, Any]] = []
    checks: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    for part, points in plan:
        rows = [
            row
            for line, place, task in points
            for row in _rows(part, line, place, task, [next(runs) for _ in range(part["seeds"][scale])])
        ]
        curves += rows
        tables.append(_table(part, rows))
        checks.append(_never_above(part, rows))
        if "collapse" in part:
            checks.append(_collapse(part, rows))
    if scale == "small" and seed == 0:
        checks.append(_golden_check(curves))
    text = json.dumps(configuration(), sort_keys=True)
    return {
        "figure": "lower-bound",
        "scale": scale,
        "seed": seed,
        "configuration": hashlib.sha256(text.encode()).hexdigest()[:16],
        "tables": tables,
        "checks": checks,
        "curves": curves,
        "seconds": time.perf_counter() - started,
    }


def name_of(row: dict[str, Any]) -> str:
    """The name of one mean of the record, in the stored values.

    >>> name_of({"part": "p", "line": "length=8", "at": 25.0, "decoder": "least squares"})
    'p | length=8 | 25 | least squares'
    """
    return f"{row['part']} | {row['line']} | {row['at']:g} | {row['decoder']}"


def _rows(
    part: dict[str, Any], line: str, place: float, task: RetrievalTask, runs: list[dict[str, float]]
) -> list[dict[str, Any]]:
    bound = recall_bound(task, sees=part["sees"]).recall
    (axis,) = part["axis"]
    rows = []
    for decoder in runs[0]:
        mean, low, high = interval(np.array([run[decoder] for run in runs]), task.vocabulary)
        rows.append(
            {
                "part": part["name"],
                "axis": "N/(L-1)" if axis == AXIS else axis,
                "line": line,
                "at": place,
                "samples": task.samples,
                "decoder": decoder,
                "recall": mean,
                "low": low,
                "high": high,
                "bound": bound,
                "seeds": len(runs),
            }
        )
    return rows


def _table(part: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """One row a point: the bound, then the decoders' means and half widths."""
    decoders = list(dict.fromkeys(row["decoder"] for row in rows))
    found = []
    for line, at in dict.fromkeys((row["line"], row["at"]) for row in rows):
        here = {row["decoder"]: row for row in rows if (row["line"], row["at"]) == (line, at)}
        first = next(iter(here.values()))
        cells = [f"{here[d]['recall']:.3f} ± {(here[d]['high'] - here[d]['low']) / 2:.3f}" for d in decoders]
        found.append([f"{line} " * bool(line) + f"{rows[0]['axis']}={at:g}", first["samples"], first["bound"], *cells])
    fixed = ", ".join(f"{k}={v}" for k, v in part["task"].items())
    title = f"{part['name']} ({fixed}; {rows[0]['seeds']} seeds): recall and 95 % interval"
    return {"title": title, "columns": ["point", "N", "bound", *decoders], "rows": found}


def _never_above(part: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    worst = max(rows, key=lambda row: row["low"] - row["bound"])
    excess = worst["low"] - worst["bound"]
    what = f"{part['name']}: lower end of a decoder's 95 % interval minus its bound, largest ({worst['decoder']})"
    return {"what": what, "measured": excess, "bound": 0.0, "passed": excess <= 0}


def _collapse(part: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Equal N/(L-1) means equal recall whatever the length, within the intervals of the two lines compared."""
    pairs: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for row in rows:
        pairs.setdefault((row["decoder"], row["at"]), []).append(row)

    def difference(group: list[dict[str, Any]]) -> tuple[float, float]:
        noise = math.hypot(*[(row["high"] - row["low"]) / 2 for row in group])
        means = [row["recall"] for row in group]
        return max(means) - min(means), noise

    gap, noise = max((difference(group) for group in pairs.values()), key=lambda found: found[0] - found[1])
    what = f"{part['name']}: difference of recall between lengths at equal N/(L-1), largest beyond its noise"
    passed = gap <= part["collapse"] + noise
    return {"what": what, "measured": gap, "bound": part["collapse"], "noise": noise, "passed": passed}


def _golden_check(curves: list[dict[str, Any]]) -> dict[str, Any]:
    stored = golden()
    shared = {name_of(row): row["recall"] for row in curves if name_of(row) in stored}
    worst = max((abs(mean - stored[name]) for name, mean in shared.items()), default=math.inf)
    what = f"{len(shared)} mean recalls equal the stored ones: largest difference"
    return {"what": what, "measured": worst, "bound": GOLDEN_TOLERANCE, "passed": worst <= GOLDEN_TOLERANCE}
