"""``memcap reproduce seq2seq-law``: parameters against distinct (context, token) pairs."""

from __future__ import annotations

import time
from typing import Any

from memcap.study.memory_laws.figure import Progress, law_tables, measured, recall_check, record

SUMMARY = "sequence to sequence: non-zero parameters against distinct (context, token) pairs, fitted laws"

BOUNDS = {("float64", 16, 6250): 17800, ("exact", 16, 6250): 8800}


def reproduce(
    scale: str, *, seed: int = 0, workers: int = 2, progress: Progress | None = None, only: str | None = None
) -> dict[str, Any]:
    """Measure, fit and check; see ``memcap.cli.reproduce`` for the record."""
    began = time.perf_counter()
    rows, digest = measured("seq2seq-law", scale, seed=seed, workers=workers, progress=progress, only=only)
    tables, laws = law_tables(rows)
    checks = [recall_check(rows)]
    for row in rows:
        bound = BOUNDS.get((row["series"], row["classes"], row["sequences"]))
        if bound is not None:
            what = f"{row['series']}, {row['classes']} classes, {row['N']:,} pairs: parameters"
            passed = row["parameters"] <= bound
            checks.append({"what": what, "measured": row["parameters"], "bound": bound, "passed": passed})
    return record(
        "seq2seq-law", scale, seed=seed, began=began, digest=digest, tables=tables, checks=checks, laws=laws, sizes=rows
    )
