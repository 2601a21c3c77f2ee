"""``memcap reproduce seq2seq-law``: parameters against distinct (context, token) pairs."""

from __future__ import annotations

from typing import Any

from memcap.study.memory_laws.figure import Progress, law_figure

SUMMARY = "sequence to sequence: non-zero parameters against distinct (context, token) pairs, fitted laws"

# Largest non-zero parameters accepted at (series, classes, sequences).
BOUNDS = {("float64", 16, 6250): 17800, ("exact", 16, 6250): 8800}


def reproduce(
    scale: str, *, seed: int = 0, workers: int = 2, progress: Progress | None = None, only: str | None = None
) -> dict[str, Any]:
    """Measure, fit and check; see ``memcap.cli.reproduce`` for the record."""
    return law_figure(
        "seq2seq-law", scale, BOUNDS, by="sequences", seed=seed, workers=workers, progress=progress, only=only
    )
