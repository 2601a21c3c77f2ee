"""Fitting ``parameters = a sqrt(N b) + c log2 N + d`` with intervals; too few points are refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from memcap.errors import FitError

FEWEST = 5


@dataclass(frozen=True)
class SqrtLaw:
    """A fitted law ``a sqrt(N b) + c log2 N + d`` with 95 % intervals.

    Attributes:
        a, c, d: coefficients; ``*_interval`` their intervals.
        worst: largest relative residual.
        points: how many points were fitted.
    """

    a: float
    c: float
    d: float
    a_interval: tuple[float, float]
    c_interval: tuple[float, float]
    d_interval: tuple[float, float]
    worst: float
    points: int

    def at(self, items: float, label_bits: float) -> float:
        """The law's value."""
        return float(self.a * np.sqrt(items * label_bits) + self.c * np.log2(items) + self.d)


def fit_sqrt_law(items: list[float], label_bits: list[float], parameters: list[float]) -> SqrtLaw:
    """Least squares in relative residuals, intervals by Student's t.

    Args:
        items: N of every point.
        label_bits: b = log2 C of every point.
        parameters: non-zero parameters of every point.

    Raises:
        FitError: with fewer than five points, fewer than four different N, or values that are not positive.
    """
    n, b, p = (np.asarray(v, dtype=np.float64) for v in (items, label_bits, parameters))
    if len(n) < FEWEST:
        raise FitError(f"a law with three coefficients needs at least {FEWEST} points for an interval, got {len(n)}")
    if len(np.unique(n)) < 4:
        raise FitError(f"the law needs at least 4 different N, got {len(np.unique(n))}")
    if not (np.isfinite(p).all() and (p > 0).all() and (n > 1).all() and (b > 0).all()):
        raise FitError("N must exceed 1, label bits and parameters must be positive and finite")
    design = np.stack([np.sqrt(n * b), np.log2(n), np.ones_like(n)], axis=1) / p[:, None]
    if np.linalg.matrix_rank(design) < 3:
        raise FitError("the points do not determine three coefficients: vary N over a wider range")
    coefficients, _, _, _ = np.linalg.lstsq(design, np.ones_like(p), rcond=None)
    residuals = design @ coefficients - 1
    freedom = len(n) - 3
    variance = float(residuals @ residuals) / freedom
    spread = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * variance) * float(student.ppf(0.975, freedom))
    low, high = coefficients - spread, coefficients + spread
    a, c, d = (float(v) for v in coefficients)
    intervals = [(float(x), float(y)) for x, y in zip(low, high, strict=True)]
    return SqrtLaw(a, c, d, intervals[0], intervals[1], intervals[2], float(np.abs(residuals).max()), len(n))
