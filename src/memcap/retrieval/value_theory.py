"""The read-out: chance that the right label's logit is the largest, given how strongly each fact was stored.

One routine serves all cases (perfect attention, wrong attention, MLP, first step alone): it takes the law of the right
row's correlation and of a competitor's, and integrates the geometry of Gaussian output embeddings exactly in law.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import betainc, ndtr

from memcap.retrieval import quadrature
from memcap.retrieval.stray_samples import Strays, with_strays

COMPETITOR_NODES = 4
STORED_NODES = 5  # of a query's overlap with a trigger that only the stored values carry: either sign
Norms = str  # "gaussian" | "sphere" | "orthogonal", as in RetrievalTask.embeddings


@dataclass(frozen=True)
class Query:
    """How a clean token query overlaps with stored keys; one entry a quadrature node (norm, finite width).

    Attributes:
        weights: of the nodes, sum 1.
        own: K_d, overlap with the same token's key.
        cross: K_v, variance of the overlap with another token's key.
        constant: K_c, the part of every overlap that does not depend on the key's token.
        skew: standardised third cumulant of the overlap with another token's key; None where it is Gaussian.
        tail: standardised fourth cumulant of it; None where it is Gaussian.
    """

    weights: Float[np.ndarray, " q"]
    own: Float[np.ndarray, " q"]
    cross: Float[np.ndarray, " q"]
    constant: Float[np.ndarray, " q"]
    skew: Float[np.ndarray, " q"] | None = None
    tail: Float[np.ndarray, " q"] | None = None


@dataclass(frozen=True)
class Competitor:
    """A competitor's correlation: a mixture of Gaussians, components along the last axis.

    Attributes:
        weights: of the components, sum 1 along the last axis; broadcastable against (nodes, components).
        means: the same.
        variances: the same.
    """

    weights: Float[np.ndarray, "..."]
    means: Float[np.ndarray, "..."]
    variances: Float[np.ndarray, "..."]


def attention_only_query(dimension: int, norms: Norms = "gaussian", trigger: str = "none") -> Query:
    """The query law without an MLP: K_d = ρ, K_v = ρ/d, ρ = |z_t|².

    Args:
        dimension: d.
        norms: law of the embeddings.
        trigger: ``none``; ``stored`` if only the stored values carry the trigger (a clean query: its overlap with the
            trigger is a constant of variance ρ/d); ``both`` if the query carries it too (constant overlap 1).
    """
    if norms == "gaussian":
        rho, weights = quadrature.chi_square_ratio(dimension, 3)
    else:
        rho, weights = np.ones(1), np.ones(1)
    cross = np.zeros_like(rho) if norms == "orthogonal" else rho / dimension
    if trigger == "both":
        return Query(weights, rho, cross + (0.0 if norms == "orthogonal" else 1.0 / dimension), np.ones_like(rho))
    if trigger == "stored":
        x, x_weight = quadrature.normal(STORED_NODES)
        overlap = (np.sqrt(cross)[:, None] * x).ravel()
        return Query((weights[:, None] * x_weight).ravel(), np.repeat(rho, len(x)), np.repeat(cross, len(x)), overlap)
    return Query(weights, rho, cross, np.zeros_like(rho))


def readout(
    right: Float[np.ndarray, " nodes"],
    energy: Float[np.ndarray, " nodes"],
    competitor: Competitor,
    vocabulary: int,
    dimension: int,
    norms: Norms = "gaussian",
) -> Float[np.ndarray, " nodes"]:
    """Chance that the right label wins, for each node.

    Args:
        right: Q, the right row's correlation with the query.
        energy: v_q, mean square of all other rows' correlations.
        competitor: law of one competitor's correlation.
        vocabulary: V.
        dimension: d of the Gaussian output embeddings.
        norms: law of the output embeddings: ``gaussian``, ``sphere`` (norm 1) or ``orthogonal`` (a label's logit is
            then its own row's correlation and nothing else).

    Source: derived here: docs/theory/retrieval.md, "The read-out".
    """
    if norms == "orthogonal":
        deviation = np.sqrt(np.maximum(competitor.variances, 1e-300))
        shares = (competitor.weights * ndtr((right[:, None] - competitor.means) / deviation)).sum(axis=1)
        return np.asarray(np.exp((vocabulary - 1) * np.log(np.maximum(shares, 1e-300))))
    bulk, bulk_weight = quadrature.chi_square_ratio(dimension, 2)
    if norms == "sphere":
        rho_o, rho_weight = np.ones(1), np.ones(1)
    else:
        rho_o, rho_weight = quadrature.chi_square_ratio(dimension, 3)
    u, u_weight = quadrature.cosine(dimension, 5)
    q = right[:, None, None, None]
    v = max(vocabulary - 2, 1) * energy[:, None, None, None]  # V - 1 other rows, centred over labels
    ro, w, cos = rho_o[None, :, None, None], bulk[None, None, :, None], u[None, None, None, :]
    cross = np.sqrt(ro * v * w) * cos
    length_square = np.maximum(q * q * ro + v * w + 2 * q * cross, 0.0)
    logit = q * ro + cross
    kappa = w + q * cross / np.maximum(v, 1e-300)
    weight = rho_weight[:, None, None] * bulk_weight[None, :, None] * u_weight[None, None, :]
    shape = (len(right), competitor.weights.shape[-1])
    means = np.broadcast_to(competitor.means, shape)
    variances = np.broadcast_to(competitor.variances, shape)
    shares = np.broadcast_to(competitor.weights, shape)
    below = np.zeros_like(logit)
    for k in range(shape[1]):
        share = shares[:, k, None, None, None]
        mean = means[:, k, None, None, None]
        variance = variances[:, k, None, None, None]
        stored, direct = kappa * kappa * variance, length_square / dimension
        if norms == "sphere":  # a competitor of norm 1 has no share of its own in what it overlaps with
            direct = np.maximum(length_square - energy[:, None, None, None], 0.0) / dimension
        scale = np.sqrt(np.maximum(stored + direct, 1e-300))
        gap = (logit - kappa * mean) / scale
        below += share * (_cosine_cdf(gap, stored / scale**2, dimension) if norms == "sphere" else ndtr(gap))
    wins = np.exp((vocabulary - 1) * np.log(np.maximum(below, 1e-300)))
    return np.asarray(np.einsum("nabc,abc->n", wins, weight))


def two_points(
    skew: Float[np.ndarray, " q"], tail: Float[np.ndarray, " q"]
) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q 2"], Float[np.ndarray, "q 2"]]:
    """A law of mean 0 and variance 1 with given third and fourth cumulants: a Gaussian plus one of two points.

    With w the points' share of the variance and s their skewness, the cumulants are w^1.5 s and w²(s² - 2), so w is the
    positive root of 2w³ + tail·w = skew².  The share is kept within [0.001, 0.95]: outside, the tail is not met.

    Returns:
        Share w of the variance, the points (scaled by √w), their probabilities.
    """
    share = np.zeros(len(skew))
    for i, (third, fourth) in enumerate(zip(skew, tail, strict=True)):
        roots = np.roots([2.0, 0.0, float(fourth), -(float(third) ** 2)])
        share[i] = max((float(x.real) for x in roots if abs(x.imag) < 1e-9), default=0.0)
    share = np.clip(share, 0.001, 0.95)
    third = skew / share**1.5
    root = np.sqrt(third**2 + 4)
    points = np.stack([third - root, third + root], axis=-1) / 2 * np.sqrt(share)[:, None]
    low = 0.5 * (1 + third / root)
    return share, points, np.stack([low, 1 - low], axis=-1)


def _finer(counts: quadrature.Rule, nodes: int) -> quadrature.Rule:
    """The law of a count with at least ``nodes`` nodes: five Hermite nodes are too few for a competitor's tail."""
    n, weight = counts
    if len(n) >= nodes or len(n) == 1:
        return n, weight
    mean = float(weight @ n)
    spread = np.sqrt(max(float(weight @ (n - mean) ** 2), 0.0))
    x, x_weight = quadrature.normal(nodes)
    return np.maximum(mean + spread * x + (x * x - 1) / 6.0, 0.0), x_weight


def _cosine_cdf(
    gap: Float[np.ndarray, "..."], share: Float[np.ndarray, "..."], dimension: int
) -> Float[np.ndarray, "..."]:
    """Cdf at ``gap`` standard deviations of a sum of two overlaps of unit vectors, ``share`` of the variance in one.

    A cosine has lighter tails than a Gaussian (excess kurtosis -6/(d+2)); the sum is taken as a cosine in as many
    dimensions as have its kurtosis.
    """
    effective = (dimension + 2) / (share**2 + (1 - share) ** 2) - 2
    square = np.minimum(gap * gap / effective, 1.0)
    return np.asarray(0.5 + 0.5 * np.sign(gap) * betainc(0.5, (effective - 1) / 2, square))


def clean_recall(
    query: Query,
    counts: quadrature.Rule,
    samples: float | int,
    vocabulary: int,
    dimension: int,
    *,
    amplitude: Float[np.ndarray, " k"],
    strength_square: Float[np.ndarray, " k"],
    wrong_own: Float[np.ndarray, " k"],
    wrong_cross: Float[np.ndarray, " k"],
    norms: Norms = "gaussian",
    strays: Strays | None = None,
) -> Float[np.ndarray, " k"]:
    """Expected recall of a clean token query after the value step, for k settings of the attention before it.

    Args:
        query: overlaps of the query.
        counts: rule for a fact's count n (under its own label); for the population one node at ``samples``/V.
        samples: N; only ratios n/N enter, so any positive number for the population.
        vocabulary: V.
        dimension: d.
        amplitude: A, chance that attention succeeds on the queried fact.
        strength_square: E s², mean square strength n A / N of a fact.
        wrong_own: w, so that wrong attention on this very token adds variance w·K_d² to each row.
        wrong_cross: the same for other tokens: adds variance w·K_v.
        norms: law of the embeddings, as in ``readout``.
        strays: samples under a wrong label, by count.

    Source: derived here: docs/theory/retrieval.md, "The value step".
    """
    n, n_weight = counts
    column = np.s_[:, None, None, None]
    own, cross, constant = (t[None, :, None, None] for t in (query.own, query.cross, query.constant))
    noise = wrong_own[column] * own**2 + wrong_cross[column] * cross
    mean_square = float(n_weight @ n**2) / samples**2
    # a constant overlap adds its share of a label's own count, for the right label and for competitors alike
    mean = float(n_weight @ n)
    imbalance = max(mean_square - mean**2 / samples**2, 0.0)
    stray = 0.0 * noise if strays is None else strays.rows[column] / samples**2 * (cross + constant**2)
    copies = 0.0 * noise if strays is None else strays.copies[column] * (own / samples) ** 2
    spread = noise + stray + copies  # of the right row
    x, x_weight = quadrature.normal(3 if spread.max() > 0 else 1)
    shape = (len(amplitude), len(query.weights), len(n), len(x))
    right = (amplitude[column] * own * n[:, None] + constant * (n[:, None] - mean)) / samples + np.sqrt(spread) * x
    energy = strength_square[column] * cross + spread + constant**2 * imbalance
    weight = query.weights[None, :, None, None] * n_weight[None, None, :, None] * x_weight[None, None, None, :]
    nodes = 2 * COMPETITOR_NODES if constant.any() else COMPETITOR_NODES  # of the competitor's own count
    other, other_weight = quadrature.merge(*_finer(counts, nodes), nodes)
    relative = (other / samples) ** 2 / mean_square
    stored = np.broadcast_to((strength_square[column] * cross)[..., None] * relative, (*shape, len(other)))
    variances = stored + np.broadcast_to(noise[..., None], (*shape, len(other)))
    means = np.broadcast_to(constant[..., None] * (other - mean) / samples, (*shape, len(other)))
    shares = other_weight
    if query.skew is not None and query.tail is not None:  # each count's overlap is a Gaussian plus one of two points
        part, points, chances = (t[(None, slice(None), None, None)] for t in two_points(query.skew, query.tail))
        variances = np.repeat(variances - stored * part[..., None], 2, axis=-1)
        shift = np.sqrt(stored)[..., None] * points[..., None, :]
        means = (means[..., None] + shift).reshape(*shape, -1)
        shares = np.broadcast_to(other_weight[:, None] * chances[..., None, :], (*stored.shape, 2)).reshape(*shape, -1)
        shares = shares.reshape(-1, shares.shape[-1])
    if strays is not None:
        every = np.broadcast_to(shares, (int(np.prod(shape)), means.shape[-1])).reshape(means.shape)
        shares, means, variances = with_strays(
            (every, means, variances),
            strays,
            vocabulary,
            np.broadcast_to(stray, shape),
            np.broadcast_to(own / samples, shape),
        )
        shares = shares.reshape(-1, shares.shape[-1])
    wins = readout(
        np.broadcast_to(right, shape).reshape(-1),
        np.broadcast_to(energy, shape).reshape(-1),
        Competitor(shares, means.reshape(-1, shares.shape[-1]), variances.reshape(-1, shares.shape[-1])),
        vocabulary,
        dimension,
        norms,
    ).reshape(shape)
    return np.asarray(np.einsum("kqnx,kqnx->k", wins, np.broadcast_to(weight, shape)))
