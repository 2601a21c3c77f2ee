"""Exponents of a power law by weighted regression in logarithms, with intervals; censored points as bounds.

Without censored points this is least squares, and the profile of its likelihood is Student's interval.  A censored
point says only that the response lies above (or below) a value; it enters the likelihood as that probability (Tobit),
and the intervals are profiles of that likelihood.  What the points cannot support is refused with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from memcap.errors import ConfigurationError, FitError, nearest
from memcap.random import stream
from memcap.study.fits import Column, Exponent, Method
from memcap.study.law import Law, read_law
from memcap.study.tobit import Tobit

_EXACT = 1e-10  # residuals of the logarithms below this are rounding


def fit_power_law(
    points: Mapping[str, Column],
    law: str,
    *,
    spread: Column | None = None,
    censored: Sequence[str | None] | None = None,
    method: Method = "profile",
    confidence: float = 0.95,
    seed: int = 0,
) -> Exponent:
    """Fit ``law`` to ``points``.

    Args:
        points: columns of equal length with the law's names; all values positive.
        law: e.g. ``"samples ~ dimension^a * length^b"``; an exponent that is a number is kept fixed.
        spread: relative standard error of log(response) for each point; a larger one counts less.  Only their ratios
            matter, the common scale is estimated.
        censored: for each point ``None``, ``"above"`` (the response lies above the value given) or ``"below"``.
        method: ``"profile"`` of the likelihood, or ``"bootstrap"`` over points (bias-corrected, needs 8 points).
        confidence: of the intervals.
        seed: of the bootstrap.

    Raises:
        FitError: if the points cannot support the law; the message says which and why.
        ConfigurationError: if the law or an option is wrong.

    Source: derived here: docs/theory/study_fits.md; Tobin 1958; Olsen 1978 (concave form); Efron 1987 (BCa).

    >>> fit = fit_power_law({"n": [2, 4, 8, 16], "d": [1, 2, 4, 8]}, "n ~ d^a")
    >>> round(fit.values[0], 12), fit.labels
    (1.0, ('a',))
    """
    parsed = read_law(law)
    if method not in ("profile", "bootstrap"):
        raise ConfigurationError(
            f"method is 'profile' or 'bootstrap', got {method!r}{nearest(str(method), ['profile'])}"
        )
    if not 0 < confidence < 1:
        raise ConfigurationError(f"confidence lies between 0 and 1, got {confidence}")
    problem = LogProblem(points, parsed, spread, censored)
    problem.refuse_unsupported()
    beta, scale = problem.solve()
    if method == "bootstrap":
        intervals, words = _bootstrap(problem, confidence, seed)
    elif problem.exact_or_plain(scale):
        intervals, words = _student(problem, beta, scale, confidence)
    else:
        intervals, words = _profile(problem, beta, confidence)
    residuals = np.where(problem.side == 0, problem.y - problem.design @ beta, np.nan)
    return Exponent(
        names=parsed.free,
        values=tuple(map(float, beta[1:])),
        lows=tuple(float(low) for low, _ in intervals[1:]),
        highs=tuple(float(high) for _, high in intervals[1:]),
        intercept=float(beta[0]),
        r_squared=problem.r_squared(beta),
        residuals=tuple(map(float, residuals)),
        n_points=len(problem.y),
        method=words,
        response=parsed.response,
        confidence=float(confidence),
        n_censored=int((problem.side != 0).sum()),
        labels=parsed.labels,
        intercept_low=float(intervals[0][0]),
        intercept_high=float(intervals[0][1]),
    )


class LogProblem:
    """The law in logarithms: ``y = design @ beta``, weights, and which points are bounds (side 1: above, -1: below)."""

    def __init__(
        self,
        points: Mapping[str, Column],
        law: Law,
        spread: Column | None,
        censored: Sequence[str | None] | None,
    ) -> None:
        self.law = law
        response = self._column(points, law.response)
        count = len(response)
        self.x = {name: self._column(points, name) for name in (*law.free, *(n for n, _ in law.fixed))}
        known = sum((power * np.log(self.x[name]) for name, power in law.fixed), np.zeros(count))
        self.y = np.log(response) - known
        self.full_y = np.log(response)
        self.design = np.column_stack([np.ones(count), *(np.log(self.x[name]) for name in law.free)])
        self.spread = np.ones(count) if spread is None else np.asarray(spread, dtype=float)
        marks = [None] * count if censored is None else list(censored)
        if len(self.spread) != count or len(marks) != count:
            raise ConfigurationError(f"{law.text}: spread and censored need {count} values, one per point")
        if any(m not in (None, "above", "below") for m in marks):
            raise ConfigurationError(f"{law.text}: censored is None, 'above' or 'below' for each point")
        if not (np.isfinite(self.spread).all() and (self.spread > 0).all()):
            raise FitError(f"{law.text}: every spread must be positive and finite")
        self.side = np.array([{None: 0, "above": 1, "below": -1}[m] for m in marks], dtype=int)
        self.spread = self.spread / np.exp(np.log(self.spread).mean()) if count else self.spread

    def _column(self, points: Mapping[str, Column], name: str) -> Any:
        if name not in points:
            raise ConfigurationError(f"{self.law.text}: no column {name!r}{nearest(name, points)}")
        try:
            values = np.asarray(points[name], dtype=float)
        except (TypeError, ValueError):
            raise FitError(f"{self.law.text}: {name!r} is not a column of numbers") from None
        bad = ~(np.isfinite(values) & (values > 0))
        if bad.any():
            where = int(np.flatnonzero(bad)[0])
            raise FitError(
                f"{self.law.text}: {name} = {values[where]} at point {where}; a power law needs positive numbers"
            )
        return values

    def refuse_unsupported(self) -> None:
        """Say why these points cannot give these exponents with intervals, if so.

        Raises:
            FitError: with the reason.
        """
        seen, wanted = int((self.side == 0).sum()), len(self.law.free) + 2
        if len(self.y) and seen == 0:
            raise FitError(f"{self.law.text}: all {len(self.y)} points are censored: bounds alone give no exponent")
        for name in self.law.free:
            if len(self.y) and np.ptp(self.x[name]) == 0:
                raise FitError(
                    f"{self.law.text}: every point has {name} = {self.x[name][0]:g}; its exponent cannot be seen"
                )
        if seen < wanted:
            raise FitError(
                f"{self.law.text}: {seen} uncensored points cannot give {len(self.law.free)} exponents with intervals; "
                f"at least {wanted} are needed"
            )
        rows = self.design[self.side == 0]
        centered = rows[:, 1:] - rows[:, 1:].mean(axis=0)
        if (
            centered.shape[1]
            and np.linalg.matrix_rank(centered, tol=1e-9 * max(1.0, np.abs(centered).max())) < (centered.shape[1])
        ):
            names = " and ".join(self.law.free)
            raise FitError(f"{self.law.text}: {names} vary only together (or not at all) in the uncensored points")

    def least_squares(self, rows: Any = None) -> tuple[Any, float]:
        """Coefficients and scale of the uncensored (or chosen) points; centred, so that exact data stay exact."""
        chosen = np.flatnonzero(self.side == 0) if rows is None else rows
        weights = self.spread[chosen] ** -2.0
        means = np.average(self.design[chosen, 1:], axis=0, weights=weights)
        level = float(np.average(self.y[chosen], weights=weights))
        root = np.sqrt(weights)
        slopes = np.linalg.lstsq(
            root[:, None] * (self.design[chosen, 1:] - means), root * (self.y[chosen] - level), rcond=None
        )[0]
        beta = np.concatenate([[level - means @ slopes], slopes])
        residual = root * (self.y[chosen] - self.design[chosen] @ beta)
        freedom = len(chosen) - len(beta)
        return beta, math.sqrt(float(residual @ residual) / freedom) if freedom > 0 else math.nan

    def exact_or_plain(self, scale: float) -> bool:
        """Whether least squares is the whole likelihood: nothing censored, or the law is met exactly."""
        return not self.side.any() or scale < _EXACT

    def tobit(self) -> Tobit:
        """The censored likelihood."""
        return Tobit(self.design, self.y, self.spread, self.side)

    def solve(self) -> tuple[Any, float]:
        """Best coefficients and the scale.

        Raises:
            FitError: if bounds contradict points that otherwise lie exactly on the law, or the search fails.
        """
        beta, scale = self.least_squares()
        if not self.side.any():
            return beta, scale
        if scale < _EXACT:
            wrong = self.side * (self.design @ beta - self.y) < -1e-6
            if wrong.any():
                raise FitError(
                    f"{self.law.text}: the uncensored points lie exactly on a law that {int(wrong.sum())} censored "
                    f"points contradict"
                )
            return beta, scale
        return self.tobit().fit(beta, scale)

    def r_squared(self, beta: Any) -> float:
        """Weighted share of the variance of log(response) that the law explains, over uncensored points."""
        seen = self.side == 0
        weights = self.spread[seen] ** -2.0
        y = self.full_y[seen]
        total = float(weights @ (y - np.average(y, weights=weights)) ** 2)
        left = float(weights @ (self.y[seen] - self.design[seen] @ beta) ** 2)
        return 1.0 - left / total if total > 0 else math.nan


def _student(problem: LogProblem, beta: Any, scale: float, confidence: float) -> tuple[list[tuple[float, float]], str]:
    seen = problem.side == 0
    rows = problem.design[seen] / problem.spread[seen][:, None]
    covariance = np.linalg.pinv(rows.T @ rows) * scale**2
    reach = stats.t.ppf(0.5 + confidence / 2, int(seen.sum()) - len(beta)) * np.sqrt(np.diag(covariance))
    words = "weighted least squares in logarithms, Student's intervals"
    return [(b - r, b + r) for b, r in zip(beta, reach, strict=True)], words


def _profile(problem: LogProblem, beta: Any, confidence: float) -> tuple[list[tuple[float, float]], str]:
    freedom = int((problem.side == 0).sum()) - len(beta)
    allowed = float(stats.f.ppf(confidence, 1, freedom))
    tobit = problem.tobit()
    intervals = [tobit.interval(j, allowed, freedom) for j in range(len(beta))]
    return intervals, "censored likelihood (Tobit) in logarithms, profile intervals"


def _bootstrap(problem: LogProblem, confidence: float, seed: int) -> tuple[list[tuple[float, float]], str]:
    if problem.side.any():
        raise FitError(f"{problem.law.text}: a bootstrap over censored points is not supported; use method='profile'")
    if len(problem.y) < 8:
        raise FitError(f"{problem.law.text}: {len(problem.y)} points are too few for a bootstrap (at least 8)")
    everything = np.arange(len(problem.y))
    exact = problem.least_squares()[1] < _EXACT

    def coefficients(rows: Any) -> Any:
        chosen = problem.design[rows]
        if np.linalg.matrix_rank(chosen, tol=1e-9) < chosen.shape[1]:
            return np.full(chosen.shape[1], np.nan)  # this draw holds too few different points
        return problem.least_squares(rows)[0]

    if exact:
        beta, scale = problem.least_squares()
        return _student(problem, beta, scale, confidence)
    rng = stream(seed, "power law bootstrap")
    draws = np.array([coefficients(rng.integers(len(everything), size=len(everything))) for _ in range(2000)])
    draws = draws[np.isfinite(draws).all(axis=1)]
    if len(draws) < 1000:
        raise FitError(f"{problem.law.text}: more than half of the bootstrap draws do not determine the exponents")
    leave_one_out = np.array([coefficients(np.delete(everything, i)) for i in everything])
    intervals = [
        _bca(draws[:, j], float(problem.least_squares()[0][j]), leave_one_out[:, j], confidence)
        for j in range(draws.shape[1])
    ]
    return intervals, f"weighted least squares in logarithms, bootstrap over points (BCa, {len(draws)} draws)"


def _bca(draws: Any, value: float, leave_one_out: Any, confidence: float) -> tuple[float, float]:
    """Bias-corrected and accelerated percentiles."""
    below = (np.sum(draws < value) + 0.5 * np.sum(draws == value)) / len(draws)
    bias = stats.norm.ppf(np.clip(below, 1e-4, 1 - 1e-4))
    away = np.nanmean(leave_one_out) - leave_one_out[np.isfinite(leave_one_out)]
    acceleration = np.sum(away**3) / (6 * np.sum(away**2) ** 1.5) if np.sum(away**2) > 0 else 0.0
    ends = bias + stats.norm.ppf([(1 - confidence) / 2, (1 + confidence) / 2])
    shares = stats.norm.cdf(bias + ends / (1 - acceleration * ends))
    low, high = np.quantile(draws, shares)
    return float(low), float(high)
