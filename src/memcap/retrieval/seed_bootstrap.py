"""Bootstrap over seeds of a positive quantity read from mean curves, honest for few seeds.

Plain resampling of n seeds spreads as √((n-1)/n) of the truth and has Gaussian tails; deviations (in the logarithm) are
widened by √(n/(n-1)) and by Student's over Gaussian quantile, so that 95 % intervals cover.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.stats import norm, t

RESAMPLES = 400


def resampled(
    values: Float[np.ndarray, "places seeds"],
    read: Callable[[Float[np.ndarray, " places"]], float | None],
    found: float,
    draws: np.random.Generator,
    *,
    paired: bool,
) -> Float[np.ndarray, " resamples"]:
    """``read`` on the mean curves of resampled seeds, deviations from ``found`` widened for few seeds.

    Args:
        values: one row a place, one column a seed; at least two seeds.
        read: a positive number from a mean curve, or None where it has none (``found`` then stands in).
        found: ``read`` of the curve itself.
        draws: random numbers.
        paired: whether a column is one seed at all places (resampled together) or seeds differ between places.
    """
    places, seeds = values.shape
    numbers = []
    for _ in range(RESAMPLES):
        picks = draws.integers(seeds, size=seeds if paired else (places, seeds))
        picked = values[:, picks] if paired else np.take_along_axis(values, picks, axis=1)
        number = read(picked.mean(axis=1))
        numbers.append(found if number is None else number)
    factor = math.sqrt(seeds / (seeds - 1)) * float(t.ppf(0.975, seeds - 1) / norm.ppf(0.975))
    return np.asarray(found * np.exp(np.clip(factor * np.log(np.array(numbers) / found), -50, 50)))
