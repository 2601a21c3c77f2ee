"""Recall of every decoder at one point, over seeds, with the interval that is held against the bound."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import binomtest, t

from memcap.retrieval.decoders import decode
from memcap.retrieval.task import RetrievalTask

AXIS = "samples over length"
"""N/(L-1), rounded to a whole number of samples."""


@dataclass(frozen=True)
class Job:
    """One run: the task with its seed, the class of decoders, and proposals of the sampled posterior mean."""

    task: RetrievalTask
    sees: str
    proposals: int | None


def measure_all(
    jobs: list[Job], workers: int, progress: Callable[[int, int, str], None] | None
) -> list[dict[str, float]]:
    """Recall of every decoder in every job, in the order of ``jobs`` for any number of workers."""
    results: list[dict[str, float]] = []
    with ThreadPoolExecutor(max_workers=workers) as pool:
        for found in pool.map(lambda job: decode(job.task, sees=job.sees, proposals=job.proposals), jobs):
            results.append(found)
            if progress is not None:
                progress(len(results), len(jobs), "decoded runs")
    return results


def tasks_along(part: dict[str, Any]) -> list[tuple[str, float, RetrievalTask]]:
    """(line, place on the axis, task) of every point of a part."""
    ((axis, values),) = part["axis"].items()
    ((field, sizes),) = part.get("lines", {"": [None]}).items()
    found = []
    for size in sizes:
        fixed = {**part["task"], **({field: size} if field else {})}
        for value in values:
            change = {"samples": round(value * (fixed["length"] - 1))} if axis == AXIS else {axis: value}
            found.append((f"{field}={size}" if field else "", float(value), RetrievalTask(**{**fixed, **change})))
    return found


def interval(recalls: Float[np.ndarray, " seeds"], vocabulary: int) -> tuple[float, float, float]:
    """Mean recall and its 95 % interval: Student's over seeds, Wilson's over all facts if every seed agrees.

    Equal seeds have no spread, but a mean of 1.000 over a few runs is not better than a bound of 0.99999.

    >>> interval(np.ones(4), 25)[1] < 0.97
    True
    """
    mean, count = float(recalls.mean()), len(recalls)
    if count < 2 or float(np.ptp(recalls)) == 0:
        facts = count * vocabulary
        found = binomtest(round(mean * facts), facts).proportion_ci(method="wilson")
        return mean, float(found.low), float(found.high)
    half = float(t.ppf(0.975, count - 1) * recalls.std(ddof=1) / np.sqrt(count))
    return mean, max(0.0, mean - half), min(1.0, mean + half)
