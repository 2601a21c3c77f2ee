"""Where one line of a grid crosses a target, with an interval.

Around the crossing the response is taken to be a straight line in log(x) on the logit scale (or as it is, with
``scale="linear"``).  Fractions are fitted by quasi-likelihood, so that 0 and 1 are ordinary values; the scatter is
estimated from the points themselves, and with known trials never taken to be below the binomial one.  The interval is
the profile of that fit.  A line that stays on one side of the target is censored: a bound, not a value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from scipy import optimize, stats

from memcap.errors import ConfigurationError, FitError
from memcap.study.fits import Column, Critical, Scale

_NEIGHBOURS = 1  # distinct values used on each side of the crossing, beyond the two that enclose it
_STEEPEST = 1e4  # a logit that changes faster than this per unit of log(x) is a step, not a slope


def critical(
    x: Column,
    y: Column,
    *,
    target: float = 0.5,
    trials: Column | None = None,
    groups: Column | None = None,
    rising: bool | None = None,
    scale: Scale = "logit",
    confidence: float = 0.95,
    axis: str = "x",
    response: str = "y",
    settings: Mapping[str, Any] | None = None,
) -> Critical:
    """The value of ``x`` at which ``y`` crosses ``target``.

    Args:
        x: positive axis values, one per cell; repeated where there are several seeds.
        y: response of each cell; a fraction in [0, 1] on the logit scale.
        target: the level; strictly inside (0, 1) on the logit scale.
        trials: how many independent answers each fraction counts, if known.
        groups: the seed of each cell: cells of one seed may err together (they share embeddings, say); with three
            seeds or more the interval allows for that.
        rising: direction of the response, needed only to say on which side a censored line's crossing lies; by default
            the direction of the line itself.
        scale: see the top of this file.
        confidence: of the interval.
        axis: name of ``x`` for the result.
        response: name of ``y`` for the result.
        settings: what is constant along the line, for the result.

    Raises:
        FitError: if the points cannot carry the question: none at all, one value of ``x``, NaN, a direction that the
            points contradict or do not show.
        ConfigurationError: if an option is out of range.

    Source: derived here: docs/theory/study_fits.md.

    >>> line = critical([10, 20, 40, 80, 160], [0.1, 0.2, 0.5, 0.8, 0.9])
    >>> round(line.value), line.censored
    (40, None)
    >>> critical([10, 20, 40], [0.1, 0.2, 0.3], rising=True).describe()
    'x >= 40 (censored)'
    """
    named = _Names(axis, response, dict(settings or {}))
    xs, ys, weights = _checked(x, y, trials, target, scale, confidence, named)
    values = np.unique(xs)
    means = np.array([np.average(ys[xs == v], weights=weights[xs == v]) for v in values])
    high = means >= target
    if high.all() or not high.any():
        return _censored(values, means, bool(high[0]), rising, target, confidence, len(xs), named)
    if len(values) < 2:
        raise FitError(f"{named}: one value of {axis} ({values[0]:g}) cannot show where {response} crosses {target:g}")
    low_at, high_at = _bracket(high, means, values)
    inside = (xs >= values[max(0, low_at - _NEIGHBOURS)]) & (xs <= values[min(len(values) - 1, high_at + _NEIGHBOURS)])
    bracket = (float(values[low_at]), float(values[high_at]))
    names = None if groups is None else np.asarray(groups)[inside]
    fit = _Fit(np.log(xs[inside]), ys[inside], weights[inside], target, scale, trials is not None, names)
    value, interval, slope = fit.crossing(confidence)
    if value is None or not xs[inside].min() <= value <= xs[inside].max():
        # A step, or points too rough for a line: all that is known is between which values it happens.
        middle = _between(bracket, means[[low_at, high_at]], target)
        return named.result(middle, bracket, None, target, confidence, int(inside.sum()), slope)
    low, high_end = interval or bracket
    return named.result(value, (low, high_end), None, target, confidence, int(inside.sum()), slope)


class _Names:
    """Names of the line, for results and messages."""

    def __init__(self, axis: str, response: str, settings: dict[str, Any]) -> None:
        self.axis, self.response, self.settings = axis, response, settings

    def __str__(self) -> str:
        return f"critical {self.axis}" + "".join(f" {k}={v}" for k, v in self.settings.items())

    def result(
        self,
        value: float,
        interval: tuple[float, float],
        censored: Literal["above", "below"] | None,
        target: float,
        confidence: float,
        points: int,
        slope: float,
    ) -> Critical:
        return Critical(
            float(value),
            float(interval[0]),
            float(interval[1]),
            censored,
            self.settings,
            self.axis,
            self.response,
            float(target),
            float(confidence),
            points,
            float(slope),
        )


def _checked(
    x: Any, y: Any, trials: Any, target: float, scale: str, confidence: float, named: _Names
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    if scale not in ("logit", "linear"):
        raise ConfigurationError(f"scale is 'logit' or 'linear', got {scale!r}")
    if not 0 < confidence < 1:
        raise ConfigurationError(f"confidence lies between 0 and 1, got {confidence}")
    if not math.isfinite(target) or (scale == "logit" and not 0 < target < 1):
        raise ConfigurationError(
            f"on the {scale} scale a target of {target} cannot be crossed; fractions: 0 < target < 1"
        )
    xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    weights = np.ones_like(xs) if trials is None else np.asarray(trials, dtype=float)
    if xs.ndim != 1 or xs.shape != ys.shape or xs.shape != weights.shape:
        raise ConfigurationError(f"{named}: x, y and trials need equal lengths, got {xs.shape}, {ys.shape}")
    if xs.size == 0:
        raise FitError(f"{named}: no finished cells on this line")
    if not (np.isfinite(xs).all() and np.isfinite(ys).all() and (xs > 0).all() and (weights > 0).all()):
        raise FitError(f"{named}: {named.axis} must be positive and {named.response} finite; a NaN is no measurement")
    if scale == "logit" and not ((ys >= 0) & (ys <= 1)).all():
        raise FitError(f"{named}: {named.response} = {ys[(ys < 0) | (ys > 1)][0]:g} is no fraction; use scale='linear'")
    return xs, ys, weights


def _censored(
    values: Float[np.ndarray, " n"],
    means: Float[np.ndarray, " n"],
    high: bool,
    rising: bool | None,
    target: float,
    confidence: float,
    points: int,
    named: _Names,
) -> Critical:
    if rising is None:
        order = stats.kendalltau(values, means).statistic if len(values) > 1 else math.nan
        if not math.isfinite(order) or order == 0:
            raise FitError(
                f"{named}: {named.response} stays {'above' if high else 'below'} {target:g} and shows no direction; "
                f"say rising=True or rising=False"
            )
        rising = bool(order > 0)
    if high == rising:
        return named.result(values[0], (0.0, values[0]), "below", target, confidence, points, math.nan)
    return named.result(values[-1], (values[-1], math.inf), "above", target, confidence, points, math.nan)


def _bracket(high: Any, means: Float[np.ndarray, " n"], values: Float[np.ndarray, " n"]) -> tuple[int, int]:
    """Neighbouring positions between which the crossing lies; with several crossings the best single split."""
    rising = stats.kendalltau(values, means).statistic >= 0
    past = high if rising else ~high
    errors = [int(past[:k].sum() + (~past[k:]).sum()) for k in range(1, len(past))]
    changes = [k for k in range(1, len(past)) if past[k] and not past[k - 1]]
    best = (
        min(changes, key=lambda k: errors[k - 1])
        if changes
        else next(k for k in range(1, len(past)) if past[k] != past[k - 1])
    )
    return best - 1, best


def _between(bracket: tuple[float, float], means: Float[np.ndarray, " two"], target: float) -> float:
    """Log-linear interpolation inside the bracket; its middle for a step from 0 to 1."""
    left, right = float(means[0]), float(means[1])
    share = min(1.0, max(0.0, (target - left) / (right - left)))
    return float(np.exp(np.log(bracket[0]) * (1 - share) + np.log(bracket[1]) * share))


def _beyond_binomial(pearson: float, freedom: int) -> float:
    """The scatter relative to the binomial one; 1 unless binomial points would scatter less in two cases of three.

    Counting every excess makes 95 % intervals of binomial points cover 97 %, counting only significant ones makes those
    of rougher points cover 92 %; with this rule both cover 94 to 96.5 % (docs/theory/study_fits.md).
    """
    if freedom <= 0 or stats.chi2.sf(pearson, freedom) > 1 / 3:
        return 1.0
    return max(1.0, pearson / freedom)


class _Fit:
    """A line in log(x) through the response on its scale, by weighted (quasi-)likelihood."""

    def __init__(self, t: Any, y: Any, weights: Any, target: float, scale: str, binomial: bool, groups: Any) -> None:
        self.t, self.y, self.w = t, y, weights
        self.logit = scale == "logit"
        self.level = math.log(target / (1 - target)) if self.logit else target
        self.binomial = binomial and self.logit
        self.center = float(t.mean())
        self.groups = groups if groups is not None and len(set(groups.tolist())) >= 3 else None

    def crossing(self, confidence: float) -> tuple[float | None, tuple[float, float] | None, float]:
        """The crossing, its interval (``None`` if the points carry none) and the slope."""
        if self._is_a_step():
            return None, None, math.nan
        distinct = len(np.unique(self.t))
        beta, deviance = self._minimise(np.column_stack([np.ones_like(self.t), self.t - self.center]), 0.0)
        if beta is None or abs(beta[1]) > _STEEPEST or beta[1] == 0:
            return None, None, math.nan
        best = self.center + (self.level - float(beta[0])) / float(beta[1])
        freedom = len(self.t) - 2
        if self.binomial:
            spread = _beyond_binomial(self._pearson(beta), freedom)
        elif freedom > 0 and distinct > 2:
            spread = self._pearson(beta) / freedom
        else:
            return math.exp(best), None, float(beta[1])
        quantile = (
            stats.f.ppf(confidence, 1, freedom)
            if freedom > 0 and not (self.binomial and spread == 1.0)
            else (stats.chi2.ppf(confidence, 1))
        )
        if self.groups is not None:
            spread *= max(1.0, self._together(beta, best) / spread)
            quantile = stats.f.ppf(confidence, 1, min(max(1, freedom), len(set(self.groups.tolist())) - 1))
        allowed = deviance + spread * float(quantile)
        return math.exp(best), (self._end(best, -1, allowed), self._end(best, 1, allowed)), float(beta[1])

    def _together(self, beta: Any, best: float) -> float:
        """The scatter of the crossing if the points of one group err together (sandwich variance, delta method)."""
        design = np.column_stack([np.ones_like(self.t), self.t - self.center])
        mu = self._mean(design @ beta)
        curve = np.maximum(mu * (1 - mu), 1e-12) if self.logit else np.ones_like(mu)
        inverse = np.linalg.pinv((design.T * (self.w * curve)) @ design)
        scores = design * (self.w * (self.y - mu))[:, None]
        assert self.groups is not None
        names = np.unique(self.groups)
        sums = np.array([scores[self.groups == name].sum(axis=0) for name in names])
        middle = sums.T @ sums * len(names) / (len(names) - 1)
        slope = np.array([1.0, best - self.center])
        return float(slope @ inverse @ middle @ inverse @ slope / (slope @ inverse @ slope))

    def _is_a_step(self) -> bool:
        """Whether fewer than two places show anything between 0 and 1: then the slope is not in the points."""
        if not self.logit:
            return False
        means = [np.average(self.y[self.t == t], weights=self.w[self.t == t]) for t in np.unique(self.t)]
        return bool(sum(0 < m < 1 for m in means) < (1 if self.binomial else 2))

    def _end(self, best: float, side: int, allowed: float) -> float:
        """Where the profile leaves ``allowed`` on one side of the crossing; 0 or infinity if it never does."""

        def excess(c: float) -> float:
            return self._minimise((self.t - c)[:, None], self.level)[1] - allowed

        if excess(best) >= 0:
            return math.exp(best)  # the points lie on the line to rounding
        step = max(1e-6, float(np.ptp(self.t)) / 8)
        for _ in range(60):
            if excess(best + side * step) > 0:
                found = optimize.brentq(excess, best, best + side * step, xtol=1e-7)
                return math.exp(float(found))
            step *= 1.6
            if step > 200:
                break
        return 0.0 if side < 0 else math.inf

    def _mean(self, eta: Any) -> Any:
        return 1 / (1 + np.exp(-np.clip(eta, -500, 500))) if self.logit else eta

    def _minimise(self, design: Any, offset: float) -> tuple[Any, float]:
        """Iteratively reweighted least squares with step halving; ``(None, inf)`` if it does not converge."""
        beta = np.zeros(design.shape[1])
        deviance = self._deviance(design @ beta + offset)
        for _ in range(200):
            eta = design @ beta + offset
            mu = self._mean(eta)
            curve = np.maximum(mu * (1 - mu), 1e-12) if self.logit else np.ones_like(mu)
            weighted = design.T * (self.w * curve)
            step = np.linalg.solve(weighted @ design + 1e-14 * np.eye(len(beta)), weighted @ ((self.y - mu) / curve))
            for _ in range(40):
                new = self._deviance(design @ (beta + step) + offset)
                if new <= deviance + 1e-14 * abs(deviance):
                    break
                step = step / 2
            beta = beta + step
            if abs(deviance - new) <= 1e-12 * (abs(new) + 1e-12) or not np.isfinite(beta).all():
                return (beta, new) if np.isfinite(beta).all() else (None, math.inf)
            deviance = new
            if np.abs(beta).max() > 1e7:
                break
        return (None, math.inf) if np.abs(beta).max() > 1e7 else (beta, deviance)

    def _deviance(self, eta: Any) -> float:
        if not self.logit:
            return float((self.w * (self.y - eta) ** 2).sum())
        y, loss = self.y, np.logaddexp(0, eta) - self.y * eta
        best = -(
            np.where(y > 0, y * np.log(np.maximum(y, 1e-300)), 0)
            + np.where(y < 1, (1 - y) * np.log(np.maximum(1 - y, 1e-300)), 0)
        )
        return float(2 * (self.w * (loss - best)).sum())

    def _pearson(self, beta: Any) -> float:
        mu = self._mean(beta[0] + beta[1] * (self.t - self.center))
        variance = np.maximum(mu * (1 - mu), 1e-12) if self.logit else 1.0
        return float((self.w * (self.y - mu) ** 2 / variance).sum())
