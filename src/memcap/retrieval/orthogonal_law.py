"""Orthonormal embeddings: recall is a race of counts, from their discrete laws (strict: a tie is a failure)."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln, ndtr
from scipy.stats import binom, poisson

from memcap.retrieval import quadrature

_TABLE = 20_000_000  # cells of (label count) x (token count) that are still enumerated
_TAIL = 1e-12
_MOSTLY = 0.7  # share of sequences without three of a kind from which on they stand for all

Cdf = Float[np.ndarray, " k"]


def first_step_recall(samples: int, vocabulary: int, length: int, ties_broken: bool = False) -> float:
    """Recall of clean token queries after one gradient step with orthonormal embeddings, exact up to Poisson counts.

    The right label's count is n + k, n ~ Binomial(N, 1/V), k | n ~ Poisson(n(L-1)/V); a competitor's is k alone, with
    its own n mixed in.

    Args:
        samples: N.
        vocabulary: V.
        length: L.
        ties_broken: count a tie as a fair draw instead of a failure (memcap's recall never does).

    Source: derived here: docs/theory/retrieval.md, "Orthonormal embeddings".

    >>> round(first_step_recall(256, 64, 16), 3), round(first_step_recall(256, 64, 16, ties_broken=True), 3)
    (0.476, 0.534)
    """
    v = vocabulary
    mean, per_count = samples / v, (length - 1) / v
    low = max(int(mean - 9 * np.sqrt(mean)) - 1, 0)
    high = min(int(binom.isf(_TAIL, samples, 1.0 / v)) + 1, samples)
    top = int(high * per_count + 9 * np.sqrt(high * per_count)) + 20
    if (high - low) * top > _TABLE:
        return _first_step_gaussian(samples, vocabulary, length)
    n = np.arange(low, high + 1)
    n_weight = binom.pmf(n, samples, 1.0 / v)
    k = np.arange(top + high + 2)
    tokens = poisson.pmf(k[None, : top + 1], n[:, None] * per_count)
    competitor = np.zeros(len(k))
    competitor[: top + 1] = n_weight @ tokens
    cdf = np.minimum(np.cumsum(competitor), 1.0)
    right = np.zeros(len(k))
    for row, (count, weight) in enumerate(zip(n, n_weight, strict=True)):
        right[count : count + top + 1] += weight * tokens[row]
    if ties_broken:
        return float(right @ _tie_shares(cdf, competitor, v))
    return float(right[1:] @ cdf[:-1] ** (v - 1))


def _tie_shares(cdf: Cdf, pmf: Cdf, v: int) -> Cdf:
    below = np.concatenate([[0.0], cdf[:-1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (cdf**v - below**v) / (v * pmf)
    return np.where(pmf > 1e-15, share, below ** (v - 1))


def _first_step_gaussian(samples: int, vocabulary: int, length: int) -> float:
    """The same race when counts are too large to enumerate and Gaussian to better than they are known."""
    n, n_weight = quadrature.label_count(samples, vocabulary, 15)
    x, x_weight = quadrature.normal(15)
    rate = n * (length - 1) / vocabulary
    right = (n + rate)[:, None] + np.sqrt(rate)[:, None] * x[None, :]
    z = (right[..., None] - rate) / np.sqrt(np.maximum(rate, 1e-300))
    below = ndtr(z) @ n_weight
    return float(n_weight @ (np.exp((vocabulary - 1) * np.log(np.maximum(below, 1e-300))) @ x_weight))


def fresh_uniform_recall(counts: quadrature.Rule, vocabulary: int, length: int) -> float:
    """Recall of fresh sequences under uniform attention with orthonormal embeddings: a race of the sequence's counts.

    Of a sequence R tokens stand twice and S once.  A label's logit is k = k1 + 2 k2, k1 | n ~ Poisson(n (L-1) S/V), k2
    the same with R, from its own n; the label of a token in the sequence has n more, twice for the R.
    Three of a kind are left out.

    Args:
        counts: rule for a label's count n.
        vocabulary: V.
        length: L.

    Returns:
        The recall; nan where sequences hold mostly tokens that stand three times, or counts are too large to enumerate.

    Source: derived here: docs/theory/retrieval.md, "Orthonormal embeddings".
    """
    v, ell = vocabulary, length
    n, n_weight = counts
    top = int(float((2 * n + n * ell * ell / v + 12 * np.sqrt(n * (2 + ell * ell / v))).max())) + 20
    chances = [_twice(r, v, ell) for r in range(min(ell // 2, v) + 1)]
    if sum(chances) < _MOSTLY or top * len(n) > _TABLE / 100:
        return math.nan
    k, total = np.arange(top + 1), 0.0
    for twice, chance in enumerate(chances):
        once = ell - 2 * twice
        if chance < 1e-4 or once + twice > v:
            continue
        laws = np.zeros((3, top + 1))  # of labels whose token is absent, stands once, stands twice
        for count, weight in zip(n, n_weight, strict=True):
            double = np.zeros(top + 1)
            double[::2] = poisson.pmf(k[: (top + 2) // 2], count * (ell - 1) * twice / v)
            noise = np.convolve(poisson.pmf(k, count * (ell - 1) * once / v), double)[: top + 1]
            own = round(float(count))
            laws += weight * np.stack([np.concatenate([np.zeros(m * own), noise])[: top + 1] for m in (0, 1, 2)])
        below = np.minimum(np.cumsum(laws, axis=1), 1.0)[:, :-1]
        rivals = below[0] ** (v - once - twice) * below[1] ** max(once - 1, 0) * below[2] ** max(twice - 1, 0)
        single = float(laws[1, 1:] @ (rivals * below[2] ** min(twice, 1)))
        pair = float(laws[2, 1:] @ (rivals * below[1] ** min(once, 1)))
        total += chance * (once * single + 2 * twice * pair) / ell
    return total / sum(chances)


def _twice(pairs: int, v: int, length: int) -> float:
    """Chance that of L uniform tokens ``pairs`` stand twice and all others once."""
    others = length - 2 * pairs
    if others + pairs > v:
        return 0.0
    ways = gammaln(length + 1) - pairs * math.log(2) - gammaln(pairs + 1) - gammaln(others + 1)
    return float(np.exp(ways + gammaln(v + 1) - gammaln(v - others - pairs + 1) - length * math.log(v)))


def value_step_recall(
    counts: quadrature.Rule,
    vocabulary: int,
    *,
    amplitude: Float[np.ndarray, " k"],
    competitor_rate: Float[np.ndarray, " k"],
    carries_trigger: bool = False,
) -> Float[np.ndarray, " k"]:
    """Recall after the value step with orthonormal embeddings, for k settings of the attention before it.

    Args:
        counts: rule for a fact's count n.
        vocabulary: V.
        amplitude: A, chance that a training sample of the fact is stored under its key and label.
        competitor_rate: expected count of the queried token under one other label, per sample of a fact.
        carries_trigger: query and values carry the trigger, so a label's total count is added to every logit.

    Source: derived here: docs/theory/retrieval.md, "Orthonormal embeddings".
    """
    n, n_weight = counts
    mean = float(n_weight @ n)
    recall = np.zeros(len(amplitude))
    for i, (a, rate) in enumerate(zip(amplitude, competitor_rate * mean, strict=True)):
        top = int(n.max() + 9 * np.sqrt(n.max())) + int(rate + 9 * np.sqrt(rate)) + 10
        if top * len(n) > 2_000_000:  # counts this large always separate unless attention failed
            recall[i] = _large_counts(n, n_weight, vocabulary, float(a), float(rate), carries_trigger)
            continue
        k = np.arange(top + 1)
        kept = np.stack([binom.pmf(k, round(float(m)), min(float(a), 1.0)) for m in n])
        label = n_weight @ kept
        noise = poisson.pmf(k, rate)
        competitor = np.convolve(noise, label)[: top + 1] if carries_trigger else noise
        below = np.concatenate([[0.0], np.minimum(np.cumsum(competitor), 1.0)])  # below[j] = P(competitor < j)
        reach = np.minimum((2 if carries_trigger else 1) * k, top + 1)
        recall[i] = float(label @ below[reach] ** (vocabulary - 1))
    return recall


def _large_counts(
    n: Float[np.ndarray, " n"], weight: Float[np.ndarray, " n"], v: int, a: float, rate: float, carries_trigger: bool
) -> float:
    x, x_weight = quadrature.normal(15)
    right = (a * n)[:, None] + np.sqrt(n * a * (1 - a))[:, None] * x[None, :]
    others = (a * n if carries_trigger else 0 * n) + rate
    spread = np.sqrt(np.maximum(rate + (a * (1 - a) * n if carries_trigger else 0 * n), 1e-300))
    below = ndtr(((2 if carries_trigger else 1) * right[..., None] - others) / spread) @ weight
    return float(weight @ (np.exp((v - 1) * np.log(np.maximum(below, 1e-300))) @ x_weight))
