"""``memcap reproduce sqrt-law``: parameters against N for every kind of memory, with fitted laws and bounds."""

from __future__ import annotations

from typing import Any

from memcap.study.memory_laws.figure import Progress, law_figure

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
    return law_figure("sqrt-law", scale, BOUNDS, by="N", seed=seed, workers=workers, progress=progress, only=only)
