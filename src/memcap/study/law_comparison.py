"""Which of several laws the points support, by Akaike's criterion with the correction for few points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from memcap.errors import ConfigurationError, FitError
from memcap.study.fits import Column, LawScore
from memcap.study.law import read_law
from memcap.study.power_law import LogProblem, fit_power_law


def compare(
    points: Mapping[str, Column],
    laws: Sequence[str],
    *,
    spread: Column | None = None,
    censored: Sequence[str | None] | None = None,
    confidence: float = 0.95,
) -> list[LawScore]:
    """Fit every law to the same points and rank them, best first.

    Args:
        points: columns with the laws' names.
        laws: at least two, for one response; exponents that are numbers stay fixed.
        spread: as for ``fit_power_law``.
        censored: as for ``fit_power_law``.
        confidence: of the fits' intervals.

    Raises:
        FitError: if a law cannot be fitted, or the points are too few to compare (the correction is undefined).
        ConfigurationError: if the laws do not explain the same response.

    Source: Akaike 1974; Hurvich and Tsai 1989 (correction).

    >>> points = {"n": [3, 13, 46, 200, 750], "d": [1, 2, 4, 8, 16], "v": [5, 4, 4, 5, 4]}
    >>> [score.law for score in compare(points, ["n ~ v^b", "n ~ d^a"])]
    ['n ~ d^a', 'n ~ v^b']
    """
    parsed = [read_law(text) for text in laws]
    if len(parsed) < 2 or len({law.response for law in parsed}) != 1:
        raise ConfigurationError(f"a comparison needs at least two laws for one response, got {list(laws)}")
    scores = []
    for law in parsed:
        fit = fit_power_law(points, law.text, spread=spread, censored=censored, confidence=confidence)
        problem = LogProblem(points, law, spread, censored)
        seen, parameters = int((problem.side == 0).sum()), len(law.free) + 2
        if seen - parameters - 1 <= 0:
            raise FitError(
                f"{law.text}: {seen} uncensored points are too few to compare laws of {parameters} parameters"
            )
        likelihood = _log_likelihood(problem)
        penalty = 2 * parameters + 2 * parameters * (parameters + 1) / (seen - parameters - 1)
        scores.append((law.text, parameters, likelihood, penalty - 2 * likelihood, fit))
    best = min(s[3] for s in scores)
    shares = [math.exp(-(s[3] - best) / 2) for s in scores]
    ranked = sorted(zip(scores, shares, strict=True), key=lambda pair: pair[0][3])
    return [LawScore(t, p, like, aicc, share / sum(shares), fit) for (t, p, like, aicc, fit), share in ranked]


def _log_likelihood(problem: LogProblem) -> float:
    """Largest log likelihood of the points; a law met exactly counts as met to the rounding of its logarithms."""
    beta, scale = problem.least_squares()
    if problem.side.any() and scale > 1e-10:
        tobit = problem.tobit()
        tobit.fit(beta, scale)
        return tobit.log_likelihood()
    seen = problem.side == 0
    residual = (problem.y[seen] - problem.design[seen] @ beta) / problem.spread[seen]
    count = int(seen.sum())
    variance = max(float(residual @ residual) / count, (1e-15 * max(1.0, float(np.abs(problem.full_y).max()))) ** 2)
    return -0.5 * count * (math.log(2 * math.pi * variance) + 1) - float(np.log(problem.spread[seen]).sum())
