"""A critical size measured by simulation, to be drawn beside the one that ``critical`` predicts.

Runs are placed where the theory expects probabilities around the level; a line through their logits crosses it.
Not here: whole lines of critical sizes and their exponents (``early_phase``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from memcap.random import stream
from memcap.retrieval.critical import Critical
from memcap.retrieval.crossing import HELPS, RANGES, probe
from memcap.retrieval.seed_bootstrap import resampled
from memcap.retrieval.simulate import simulate
from memcap.retrieval.task import RetrievalTask, integer

STEPS = (-0.8, -0.4, 0.0, 0.4, 0.8)
"""Logits around the level at which runs are placed: near, since saturation bends the curve further away."""
FLATTEST = 0.8
"""Least slope of a logit against the logarithm of the size that is believed: runs stay within a factor of 3."""
NEAR = 4.0
"""Measured points whose logit lies further from the level are saturated and not used."""
FIELDS = {"recall": "recall", "clean_recall": "clean_recall", "attention": "attention_success"}


@dataclass(frozen=True)
class SimulatedCritical:
    """Where simulated probabilities cross a level.

    Attributes:
        value: the critical size, a real number; nan if it was not found.
        interval: 95 % bootstrap interval over seeds; nan if it was not found, or for a single seed.
        reason: why it was not found; empty otherwise.
    """

    value: float
    interval: tuple[float, float]
    reason: str = ""


def simulated_critical(
    task: RetrievalTask,
    predicted: Critical,
    *,
    seeds: int = 3,
    test_samples: int = 2048,
    progress: Callable[[], None] | None = None,
) -> SimulatedCritical:
    """The size that ``predicted`` is about, measured by simulating around it.

    Args:
        task: as given to ``critical``.
        predicted: what ``critical`` found; says the variable, the target and the level.
        seeds: runs at each of up to five sizes, counted up from the task's seed.
        test_samples: fresh sequences a run.
        progress: called after every run.

    Raises:
        ConfigurationError: for seeds or test samples below 1.
    """
    integer("seeds", seeds, 1, 10**6)
    nothing = (math.nan, math.nan)
    if predicted.value is None:
        return SimulatedCritical(math.nan, nothing, predicted.reason)
    sizes = places(task, predicted)
    field = FIELDS[predicted.target]
    values = np.empty((len(sizes), seeds))
    for row, size in enumerate(sizes):
        at = task.replace(**{predicted.solve_for: size})
        for run in range(seeds):
            values[row, run] = getattr(simulate(at, seed=task.seed + run, test_samples=test_samples), field)
            if progress is not None:
                progress()
    rising = predicted.solve_for in HELPS
    found = _crossing(np.array(sizes, float), values.mean(axis=1), predicted.level, rising)
    if found is None:
        means = ", ".join(f"{mean:.3f} at {size:,}" for size, mean in zip(sizes, values.mean(axis=1), strict=True))
        return SimulatedCritical(math.nan, nothing, f"simulation does not cross {predicted.level:g}: {means}")
    if seeds == 1:
        return SimulatedCritical(found, nothing)
    draws = stream(task.seed, "retrieval:critical-bootstrap", predicted.value)
    spread = resampled(
        values,
        lambda mean: _crossing(np.array(sizes, float), mean, predicted.level, rising),
        found,
        draws,
        paired=True,
    )
    low, high = np.quantile(spread, [0.025, 0.975])
    return SimulatedCritical(found, (float(low), float(high)))


def places(task: RetrievalTask, predicted: Critical) -> list[int]:
    """Distinct sizes, rising, where the theory's local slope puts logits of about ``STEPS`` around the level."""
    probability = probe(task, predicted.solve_for, predicted.target)
    lowest, highest = RANGES[predicted.solve_for]
    around = [min(max(lowest, round(predicted.crossing * f)), highest) for f in (1 / 1.2, 1.2)]
    ends = [min(max(probability(size), 1e-9), 1 - 1e-9) for size in around]
    rise = math.log(ends[1] / (1 - ends[1])) - math.log(ends[0] / (1 - ends[0]))
    slope = max(FLATTEST, abs(rise) / max(math.log(around[1] / around[0]), 1e-9))
    sizes = {round(predicted.crossing * math.exp(step / slope)) for step in STEPS}
    return sorted({min(max(lowest, size), highest) for size in sizes})


def _crossing(
    sizes: Float[np.ndarray, " n"], mean: Float[np.ndarray, " n"], level: float, rising: bool
) -> float | None:
    """Where a least-squares line through the logits crosses ``level``; None where it does not or has too few points."""
    with np.errstate(divide="ignore"):
        logits = np.log(mean / np.maximum(1 - mean, 0.0)) - math.log(level / (1 - level))
    used = np.abs(logits) < NEAR
    if used.sum() < 2:
        return None
    x, y = np.log(sizes[used]), logits[used]
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
    if (slope if rising else -slope) < FLATTEST / 10:
        return None
    found = float(np.exp(x.mean() - y.mean() / slope))
    return found if sizes.min() / 4 <= found <= sizes.max() * 4 else None
