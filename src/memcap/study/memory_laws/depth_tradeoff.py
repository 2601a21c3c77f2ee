"""``memcap reproduce depth-tradeoff``: depth and bits per weight against parameters, at one N."""

from __future__ import annotations

import time
from typing import Any

from memcap.study.memory_laws.figure import Progress, measured, recall_check, record

SUMMARY = "depth x width x parameters x bits: what a shallower or less precise memory costs"

COLUMNS = ["weights", "knob", "asked", "depth", "widest", "parameters", "largest weight, bits", "stored bits"]


def reproduce(
    scale: str, *, seed: int = 0, workers: int = 2, progress: Progress | None = None, only: str | None = None
) -> dict[str, Any]:
    """Measure and check; see ``memcap.cli.reproduce`` for the record."""
    began = time.perf_counter()
    rows, digest = measured("depth-tradeoff", scale, seed=seed, workers=workers, progress=progress, only=only)
    table = {"title": "depth and precision against size", "columns": COLUMNS, "rows": [_row(r) for r in rows]}
    checks = [recall_check(rows)]
    for row in rows:
        knob = "max_depth" if row["series"] == "depth" else "bits"
        if row.get(knob) is None or "reason" in row:
            continue
        kept = row["depth"] if knob == "max_depth" else None
        if kept is not None:
            what = f"{row['weights']}: depth kept"
            checks.append({"what": what, "measured": kept, "bound": row[knob], "passed": kept <= row[knob]})
        if knob == "max_depth" and row[knob] == 45 and row["weights"] == "float64" and row["N"] == 100_000:
            what = "float64, depth <= 45: parameters"
            passed = row["parameters"] <= 20_100
            checks.append({"what": what, "measured": row["parameters"], "bound": 20_100, "passed": passed})
    return record(
        "depth-tradeoff", scale, seed=seed, began=began, digest=digest, tables=[table], checks=checks, sizes=rows
    )


def _row(row: dict[str, Any]) -> list[Any]:
    knob = "max_depth" if row["series"] == "depth" else "bits"
    asked = row.get(knob)
    if "reason" in row:
        return [row["weights"], knob, asked, None, None, row["reason"], None, None]
    return [
        row["weights"],
        knob,
        "free" if asked is None else asked,
        row["depth"],
        row["widest"],
        row["parameters"],
        row["largest_bits"],
        row["stored_bits"],
    ]
