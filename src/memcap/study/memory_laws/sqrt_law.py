"""``memcap reproduce sqrt-law``: parameters against N for every kind of memory, with fitted laws and bounds."""

from __future__ import annotations

import time
from typing import Any

from memcap.study.memory_laws.figure import Progress, law_tables, measured, recall_check, record

SUMMARY = "non-zero parameters against N (1e2 to 1e6), 2, 16 and 256 classes, every kind of memory, fitted laws"

# Largest non-zero parameters accepted at (series, classes, N): the project's published figures.
BOUNDS = {
    ("exact", 2, 1000): 375,
    ("exact", 2, 10000): 850,
    ("exact", 2, 100000): 2150,
    ("exact", 2, 1000000): 6000,
    ("exact", 16, 10000): 1810,
    ("exact", 256, 100000): 6650,
    ("float64", 2, 10000): 1350,
    ("float64", 2, 100000): 5400,
    ("float64", 16, 100000): 17900,
    ("float64", 256, 100000): 29600,
    ("float32", 2, 100000): 11700,
    ("float32", 16, 100000): 31700,
    ("float32", 256, 100000): 57200,
    ("keyed", 2, 100000): 24061,
}


def reproduce(
    scale: str, *, seed: int = 0, workers: int = 2, progress: Progress | None = None, only: str | None = None
) -> dict[str, Any]:
    """Measure, fit and check; see ``memcap.cli.reproduce`` for the record."""
    began = time.perf_counter()
    rows, digest = measured("sqrt-law", scale, seed=seed, workers=workers, progress=progress, only=only)
    tables, laws = law_tables(rows)
    checks = [recall_check(rows)]
    for row in rows:
        bound = BOUNDS.get((row["series"], row["classes"], row["N"]))
        if bound is not None:
            what = f"{row['series']}, {row['classes']} classes, N = {row['N']:,}: parameters"
            passed = row["parameters"] <= bound
            checks.append({"what": what, "measured": row["parameters"], "bound": bound, "passed": passed})
    return record(
        "sqrt-law", scale, seed=seed, began=began, digest=digest, tables=tables, checks=checks, laws=laws, sizes=rows
    )
