"""Exponents through points that share seeds: what all points of one seed have in common is no scatter between points.

Cells of one seed share data and embeddings, on one line and across lines.  A fit that takes its points for independent
then sees the same errors again and again and calls itself sure.  Here the whole fit is repeated without each seed, and
points that differ only in what the law leaves out count once; the widest of the three intervals is given.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from memcap.errors import FitError
from memcap.study.finished_cells import Points
from memcap.study.fits import Exponent, Method
from memcap.study.law import read_law
from memcap.study.power_law import fit_power_law

_MOST_BLOCKS = 20  # of seeds that are left out together; more would cost time and hardly sharpen the variance


@dataclass(frozen=True)
class Sample:
    """What ``fit_power_law`` is given: columns, relative spreads and censoring marks, one value per point."""

    points: Points
    spread: list[float] | None = None
    censored: list[str | None] | None = None


def fit_over_seeds(
    law: str,
    sample: Sample,
    *,
    seeds: Sequence[int],
    without: Callable[[frozenset[int]], Sample],
    method: Method = "profile",
    confidence: float = 0.95,
) -> Exponent:
    """Fit ``law`` with intervals that allow for seeds shared between points.

    Args:
        law: as for ``fit_power_law``.
        sample: the points of all cells.
        seeds: those that occur on more than one point; if there are none this is ``fit_power_law``.
        without: the points as they would be without the cells of some seeds; points may be missing.
        method: of the interval that takes points for independent.
        confidence: of the intervals.

    Raises:
        FitError: if the points cannot support the law, or not without one of the seeds; or if the law describes them
            worse than a constant.
        ConfigurationError: if the law or an option is wrong.

    Source: derived here: docs/theory/study_fits.md; Efron and Stein 1981 (jackknife variance).
    """
    fit = fit_power_law(
        sample.points, law, spread=sample.spread, censored=sample.censored, method=method, confidence=confidence
    )
    if fit.r_squared < -1e-9:
        raise FitError(
            f"{law}: too uncertain: a constant describes the points better than the law (R² = {fit.r_squared:.2f}); "
            f"more seeds, more values of {fit.response} around the crossing, or another law"
        )
    if not seeds:
        return fit
    reach = _reach_of_places(law, sample, confidence)
    words = "points at the same factors count once"
    if len(set(seeds)) > 1:
        reach = np.maximum(reach, _reach_of_seeds(law, fit, seeds, without, confidence))
        words += f", {len(set(seeds))} shared seeds left out in turn, the widest"
    else:
        words += "; one seed on all points: what it does to all of them cannot be seen and is not in the intervals"
    values = np.array([fit.intercept, *fit.values])
    lows = np.minimum([fit.intercept_low, *fit.lows], values - reach)
    highs = np.maximum([fit.intercept_high, *fit.highs], values + reach)
    return replace(
        fit,
        lows=tuple(map(float, lows[1:])),
        highs=tuple(map(float, highs[1:])),
        intercept_low=float(lows[0]),
        intercept_high=float(highs[0]),
        method=f"{fit.method}; {words}",
    )


def _reach_of_seeds(
    law: str,
    fit: Exponent,
    seeds: Sequence[int],
    without: Callable[[frozenset[int]], Sample],
    confidence: float,
) -> Any:
    """Half widths of constant and exponents from the whole fit repeated without each seed (or block of seeds)."""
    distinct = sorted(set(seeds))
    count = min(len(distinct), _MOST_BLOCKS)
    away = []
    for k in range(count):
        block = frozenset(distinct[k::count])
        try:
            part = without(block)
            again = fit_power_law(part.points, law, spread=part.spread, censored=part.censored, confidence=confidence)
        except FitError as error:
            names = ", ".join(map(str, sorted(block)))
            raise FitError(
                f"{law}: too uncertain: without seed {names} the law cannot be fitted ({error}); more seeds"
            ) from None
        away.append([again.intercept - fit.intercept, *np.subtract(again.values, fit.values)])
    variance = (np.square(away) * (count - 1) / count).sum(axis=0)
    return stats.t.ppf(0.5 + confidence / 2, count - 1) * np.sqrt(variance)


def _reach_of_places(law: str, sample: Sample, confidence: float) -> Any:
    """Half widths if the points at the same values of the law's factors are averaged to one; 0 if none coincide."""
    parsed = read_law(law)
    if not parsed.free:
        return np.zeros(1)
    merged = averaged(law, sample)
    if len(merged.points[parsed.response]) == len(sample.points[parsed.response]):
        return np.zeros(len(parsed.free) + 1)
    fit = fit_power_law(merged.points, law, spread=merged.spread, censored=merged.censored, confidence=confidence)
    lows, highs = np.array([fit.intercept_low, *fit.lows]), np.array([fit.intercept_high, *fit.highs])
    return (highs - lows) / 2


def averaged(law: str, sample: Sample) -> Sample:
    """One point for each combination of the law's factors: the weighted geometric mean of its response.

    Where some points of a place are bounds, its values count; where all are, the mean of the bounds is one.

    Raises:
        FitError: if fewer places are left than an exponent with an interval needs.
    """
    parsed = read_law(law)
    names = [*parsed.free, *(name for name, _ in parsed.fixed)]
    response = sample.points[parsed.response]
    marks = sample.censored or [None] * len(response)
    spread = sample.spread or [1.0] * len(response)
    places: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for i in range(len(response)):
        places[tuple(sample.points[name][i] for name in names)].append(i)
    seen = sum(any(marks[i] is None for i in rows) for rows in places.values())
    if seen < len(parsed.free) + 2:
        raise FitError(
            f"{law}: {len(response)} points share their seeds and lie at only {seen} different values of "
            f"{' and '.join(names) or 'nothing'} (bounds apart); at least {len(parsed.free) + 2} are needed"
        )
    points: Points = {name: [] for name in (parsed.response, *names)}
    spreads: list[float] = []
    sides: list[str | None] = []
    for place, rows in places.items():
        used = [i for i in rows if marks[i] is None] or rows
        weights = np.array([spread[i] ** -2.0 for i in used])
        mean = float(np.average([math.log(response[i]) for i in used], weights=weights))
        points[parsed.response].append(math.exp(mean))
        for name, value in zip(names, place, strict=True):
            points[name].append(value)
        spreads.append(float(weights.mean() ** -0.5))
        sides.append(marks[used[0]])
    return Sample(points, spreads, sides)
