"""Three steps together: recall when the value step is trained with the attention that the second step produced.

Everything depends on a run only through its gap z = τ/s, and on the queried token through its own score g, so recall
is tabulated on a grid of gaps and interpolated at the runs' gaps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtr

from memcap.retrieval import quadrature
from memcap.retrieval.attention_theory import TOKEN_NODES, Gaps, beats, success, success_given
from memcap.retrieval.stray_samples import stray_samples
from memcap.retrieval.value_theory import Norms, Query, clean_recall

GRID = 10
OWN_NODES = 11
NEGLIGIBLE = 1e-4  # a setting of smaller weight is not evaluated
RESOLUTION = 3  # decimals (of the largest) to which settings of the value step are told apart


@dataclass(frozen=True)
class Outcome:
    """What runs come out with: expectation over runs, and the spread between them.

    Attributes:
        recall: of fresh sequences.
        clean_recall: of clean token queries.
        attention_success: the informative position has the strictly largest score.
        recall_spread: standard deviation over runs of a run's expected recall (training-set and embedding luck that
            is shared by all tokens; sampling of test items is not in it).
        attention_spread: the same for attention success.
    """

    recall: float
    clean_recall: float
    attention_success: float
    recall_spread: float = 0.0
    attention_spread: float = 0.0


def outcome(
    law: Gaps,
    query: Query,
    counts: quadrature.Rule,
    samples: float | int,
    vocabulary: int,
    length: int,
    dimension: int,
    *,
    keep: float = 1.0,
    coverage_noise: float = 1.0,
    norms: Norms = "gaussian",
    clean_query: Query | None = None,
) -> Outcome:
    """Recall after three steps with hard attention.

    Args:
        law: of the runs' gaps.
        query: overlaps of a fresh sequence's query.
        counts: rule for a fact's count under its own label.
        samples: N (or V with ``counts`` at 1 for the population).
        vocabulary: V.
        length: L.
        dimension: d.
        keep: share of training labels that are the fact's (1 - label noise).
        coverage_noise: 1 for samples, 0 for the population (counts do not fluctuate).
        norms: law of the embeddings.
        clean_query: overlaps of a clean query where they differ from a fresh sequence's (trigger in the value path).

    Source: derived here: docs/theory/retrieval.md, "End to end".
    """
    attention = success(law, vocabulary, length)
    z = gap_grid(law)
    own, own_weight = law.own_scores(OWN_NODES)
    chance, share = two_point(z, own, vocabulary, length, law.cosines)
    weight = share * own_weight[None, :, None]
    mean = np.einsum("zgp,zgp->z", chance, weight)
    sampled = coverage_noise / (samples * vocabulary)
    strength = keep**2 * np.einsum("zgp,zgp->z", chance**2, weight) / vocabulary**2 + keep * mean * sampled
    present = -np.expm1((length - 1) * np.log1p(-1.0 / vocabulary))
    lost = ndtr(own[None, :] - z[:, None])  # a token of score g beats the informative one, whose score is random
    capture = present * beats(own, vocabulary, length, law.cosines)[None, :] * lost
    own_coherent = (
        present**2 * beats(own, vocabulary, 2 * length - 1, law.cosines)[None, :] * lost * (1 - lost) / vocabulary**2
    )
    coherent = _coherence(z, vocabulary, length) / vocabulary**2
    settings = np.stack(
        [
            chance,
            *(np.broadcast_to(t[:, None, None], chance.shape) for t in (strength, mean)),
            np.broadcast_to((capture * sampled + own_coherent)[:, :, None], chance.shape),
            np.broadcast_to(((1 - mean) * sampled + coherent)[:, None, None], chance.shape),
        ]
    ).reshape(5, -1)
    scale = np.maximum(settings.max(axis=1, keepdims=True), 1e-300)
    counted = (weight > NEGLIGIBLE) & (chance > NEGLIGIBLE)  # the rest recalls nothing that would be seen
    rounded = np.round(settings[:, counted.ravel()] / scale, RESOLUTION)
    distinct, where = np.unique(rounded, axis=1, return_inverse=True)
    distinct = distinct * scale

    def recall_of(asked: Query) -> Float[np.ndarray, "z g p"]:
        values = clean_recall(
            asked,
            counts,
            samples,
            vocabulary,
            dimension,
            amplitude=distinct[0],
            strength_square=distinct[1],
            wrong_own=distinct[3],
            wrong_cross=distinct[4],
            norms=norms,
            strays=stray_samples(samples, vocabulary, keep, distinct[0], distinct[2]) if coverage_noise else None,
        )
        table = np.zeros(chance.shape)
        table[counted] = values[where]
        return table

    recall = recall_of(query)
    clean_by_token = recall if clean_query is None else recall_of(clean_query)
    clean = at_gaps(z, np.einsum("zgp,zgp->z", clean_by_token, weight), law)
    fresh = at_gaps(z, np.einsum("zgp,zgp->z", chance * recall, weight), law)
    return Outcome(
        recall=float(law.weights @ fresh),
        clean_recall=float(law.weights @ clean),
        attention_success=float(law.weights @ attention),
        recall_spread=spread_over_runs(fresh, law),
        attention_spread=spread_over_runs(attention, law),
    )


def _coherence(z: Float[np.ndarray, " grid"], vocabulary: int, length: int) -> Float[np.ndarray, " grid"]:
    """Σ over wrong tokens t' of Var_y(chance that a sample of label y attends t'), for each gap.

    The failures of a run are not spread over random tokens: labels whose own token scores low all attend the run's
    highest scores.  What is common to all labels is removed by centring; this variance over labels stays.
    """
    score, weight = quadrature.normal(TOKEN_NODES)
    present = -np.expm1((length - 1) * np.log1p(-1.0 / vocabulary))
    top = present**2 * beats(score, vocabulary, 2 * length - 1)
    lost = ndtr(score[None, :] - z[:, None])
    return np.asarray(vocabulary * ((lost * (1 - lost)) @ (weight * top)))


def two_point(
    z: Float[np.ndarray, " grid"],
    own: Float[np.ndarray, " own"],
    vocabulary: int,
    length: int,
    cosines: int | None = None,
) -> tuple[Float[np.ndarray, "grid own 2"], Float[np.ndarray, "grid own 2"]]:
    """A two-point law of the chance that attention succeeds on a token, with the right first three moments.

    Given its gap, a token's chance still depends on how many of the run's tokens score above it, j: (1 - j/V)^(L-1).
    For L << V that is one number; for L >> V every token is present and the chance is 0 or 1.  The p-th moment is
    ``beats`` at p(L - 1) draws.
    """
    factor = [success_given(z, own, vocabulary, p * (length - 1) + 1, cosines) for p in (1, 2, 3)]
    m1, m2, m3 = factor
    variance = m2 - m1 * m1
    spread = np.sqrt(np.maximum(variance, 0.0))
    solid = spread > 1e-4
    skew = np.where(solid, (m3 - 3 * m1 * m2 + 2 * m1**3) / np.where(solid, spread, 1.0) ** 3, 0.0)
    root = np.sqrt(skew * skew + 4)
    low, high = m1 + spread * (skew - root) / 2, m1 + spread * (skew + root) / 2
    share = 0.5 * (1 + skew / root)  # of the low point
    points = np.stack([np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)], axis=-1)
    return points, np.stack([share, 1 - share], axis=-1)


def gap_grid(law: Gaps) -> Float[np.ndarray, " grid"]:
    likely = law.values[law.weights > 1e-7]
    low, high = float(likely.min()), float(likely.max())
    # below -1 attention has failed for every V >= 2 worth a table; above 12 it has succeeded for every V < 2^31
    low, high = max(low, -1.0), min(high, 12.0)
    if high - low < 1e-9:
        return np.array([high])
    points = np.linspace(low, high, GRID)
    if low < 0 < high:  # the sign of the trigger score is a jump
        points = np.unique(np.concatenate([points, [0.0, 1e-9]]))
    return points


def at_gaps(z: Float[np.ndarray, " grid"], value: Float[np.ndarray, " grid"], law: Gaps) -> Float[np.ndarray, " runs"]:
    if len(z) == 1:
        return np.full_like(law.values, value[0])
    return np.asarray(PchipInterpolator(z, value)(np.clip(law.values, z[0], z[-1])))


def spread_over_runs(value: Float[np.ndarray, " runs"], law: Gaps) -> float:
    mean = float(law.weights @ value)
    return float(np.sqrt(max(float(law.weights @ (value - mean) ** 2), 0.0)))
