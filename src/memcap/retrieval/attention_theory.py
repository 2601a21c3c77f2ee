"""From the variance budget to attention success: the law of one run's gap, and success given that gap.

A run enters only through its standardised gap z = τ/s (trigger score over the spread of token scores), so run-level
randomness is one weighted list of gaps; ``success`` averages over the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import betainc, ndtr

from memcap.retrieval import quadrature
from memcap.retrieval.budget import AttentionBudget

TOKEN_NODES = 41
LABEL_NODES, FORM_NODES, TOTAL_NODES = 7, 9, 9


@dataclass(frozen=True)
class Gaps:
    """The law of the standardised gap over runs.

    Attributes:
        values: z = τ/s, one a quadrature node.
        weights: probabilities, sum 1.
        cosines: dimensions D of the cosine √D cos θ that a standardised token score is; None where it is Gaussian.
    """

    values: Float[np.ndarray, " runs"]
    weights: Float[np.ndarray, " runs"]
    cosines: int | None = None

    def own_scores(self, count: int) -> quadrature.Rule:
        """Rule for a token's own standardised score."""
        if self.cosines is None:
            return quadrature.normal(count)
        nodes, weights = quadrature.cosine(self.cosines, count)
        return nodes * np.sqrt(self.cosines), weights


def run_totals(budget: AttentionBudget) -> quadrature.Rule:
    """The law over runs of the variance of token scores (without the trigger's share), as a rule of at most 9 nodes.

    The excess energy x of label counts is that of χ²_k / k, the form a Gamma variable; both have the budget's variance.
    """
    x, x_weight = _gamma(budget.label_spread, LABEL_NODES)
    form, form_weight = _gamma(budget.form_spread, FORM_NODES)
    rest = sum(budget.variances.values())
    level = np.maximum(rest + budget.tilt * (x - 1) + budget.bend * (x - 1) ** 2, 0.0)
    nodes, weights = (level[:, None] * form).ravel(), (x_weight[:, None] * form_weight).ravel()
    return quadrature.merge(nodes, weights, TOTAL_NODES)


def _gamma(variance: float, count: int) -> quadrature.Rule:
    return quadrature.gamma(1 / variance, count) if variance > 0 else (np.ones(1), np.ones(1))


def gaps(
    budget: AttentionBudget, dimension: int | None, fixed_norm: bool = False, vocabulary: int | None = None
) -> Gaps:
    """The law over runs of the trigger's score over the spread of token scores.

    Args:
        budget: of the attention step.
        dimension: d, or None for orthonormal embeddings, whose trigger overlaps with no token.
        fixed_norm: embeddings of norm 1 (``sphere``) instead of Gaussian ones.
        vocabulary: V; the budget is the mean square about the mean of V scores, of which V - 1 are free.

    Source: derived here: docs/theory/retrieval.md, "Attention success".
    """
    per_d = 0.0 if dimension is None else 1.0 / dimension
    free = 1.0 if vocabulary is None else vocabulary / (vocabulary - 1)
    if dimension is None or fixed_norm:
        norm, norm_weight = np.ones(1), np.ones(1)
    else:
        norm, norm_weight = quadrature.chi_square_ratio(dimension, 5)
    total, total_weight = run_totals(budget)
    x, x_weight = quadrature.normal(9)
    r, token, g = norm[:, None, None], total[None, :, None], x[None, None, :]
    trigger_variance = budget.drive_variance * r * r + budget.trigger_share * token * r
    drive, drive_variance = budget.drive + 0 * trigger_variance, budget.drive_variance + 0 * trigger_variance
    if fixed_norm:  # the run's own drive, given its trigger score
        part = budget.drive_variance * r / np.maximum(trigger_variance, 1e-300)
        drive = drive + part * np.sqrt(trigger_variance) * g
        drive_variance = drive_variance * (1 - part * r)
    spread = token * free + (drive**2 + drive_variance) * r * per_d
    trigger = budget.drive * r + np.sqrt(trigger_variance) * g
    weight = norm_weight[:, None, None] * total_weight[None, :, None] * x_weight[None, None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(spread + 0 * trigger > 0, trigger / np.sqrt(spread), np.sign(trigger) * np.inf)
    finite = np.nan_to_num(values.ravel(), nan=0.0, posinf=1e6, neginf=-1e6)
    return Gaps(finite, weight.ravel(), _score_dimensions(dimension, vocabulary) if fixed_norm else None)


def _score_dimensions(dimension: int | None, vocabulary: int | None) -> int | None:
    """Scores of unit vectors along a direction are cosines in d dimensions, and V of them with their mean square given
    are cosines in V - 1: both excess kurtoses, -6/(d + 2) and -6/(V + 1), add."""
    if dimension is None or vocabulary is None:
        return None
    kurtosis = 1 / (dimension + 2) + 1 / (vocabulary + 1)
    return max(round(1 / kurtosis - 2), 3)


def _above(z: Float[np.ndarray, "*shape"], cosines: int | None) -> Float[np.ndarray, "*shape"]:
    """Chance that a standardised token score exceeds z."""
    if cosines is None:
        return np.asarray(ndtr(-z))
    return np.asarray(0.5 - 0.5 * np.sign(z) * betainc(0.5, (cosines - 1) / 2, np.minimum(z * z / cosines, 1.0)))


def beats(
    z: Float[np.ndarray, "*shape"], vocabulary: int, length: int, cosines: int | None = None
) -> Float[np.ndarray, "*shape"]:
    """Chance that the informative score z beats L - 1 draws from V standardised token scores.

    The chance is E Φ(z)^D, D the number of distinct other tokens among the draws, taken as binomial with its exact mean
    and variance (exact for one draw, and for so many that every token is present).
    """
    draws, others = length - 1, vocabulary - 1
    if draws == 0:
        return np.ones_like(z)
    absent = float(np.exp(draws * np.log1p(-1.0 / vocabulary)))
    both_absent = float(np.exp(draws * np.log1p(-2.0 / vocabulary))) if vocabulary > 2 else 0.0
    mean = others * (1 - absent)
    variance = others * absent + others * (others - 1) * both_absent - (others * absent) ** 2
    chance = min(max(1 - variance / mean, 1e-9), 1.0)
    return np.asarray(np.exp(mean / chance * np.log(np.maximum(1 - chance * _above(z, cosines), 1e-300))))


def success_given(
    z: Float[np.ndarray, " runs"],
    own: Float[np.ndarray, " tokens"],
    vocabulary: int,
    length: int,
    cosines: int | None = None,
) -> Float[np.ndarray, "runs tokens"]:
    """Attention success for each run gap ``z`` and own token score ``own`` (standardised).

    With a negative trigger score a second copy of the informative token beats the informative one.
    """
    absent = np.exp((length - 1) * np.log1p(-1.0 / vocabulary))
    chance = beats(z[:, None] + own[None, :], vocabulary, length, cosines)
    return chance * np.where(z > 0, 1.0, absent)[:, None]


def success(law: Gaps, vocabulary: int, length: int) -> Float[np.ndarray, " runs"]:
    """Attention success of each run in ``law``, averaged over tokens; its mean is ``law.weights @ success(...)``."""
    own, weight = law.own_scores(TOKEN_NODES)
    return np.asarray(success_given(law.values, own, vocabulary, length, law.cosines) @ weight)
