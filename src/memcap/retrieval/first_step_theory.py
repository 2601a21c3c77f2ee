"""The first gradient step alone: recall of a clean token query from counts of labels and tokens (uniform attention)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.stats import poisson

from memcap.retrieval import quadrature
from memcap.retrieval.value_theory import Competitor, Norms, readout

_ENUMERATE_BELOW = 4.0
_COMPONENTS = 40  # most components of a competitor's mixture that are kept apart


@dataclass(frozen=True)
class _Row:
    """Everything a label row's law depends on, for one node of the query's norm and shared overlap.

    Attributes:
        n: nodes of the label count.
        n_weight: their weights.
        norm: ρ, squared norm of the query.
        shared: overlap of the query with everything that every sample of a label adds alike.
        common: k̄, expected count of the queried token under another label.
        mean: λ = N/V.
        others: L - 1.
        vocabulary: V.
        cross: ρ/d, variance of the overlap of two tokens (0 for orthonormal embeddings).
        keep: share of training labels that are the fact's.
    """

    n: Float[np.ndarray, " n"]
    n_weight: Float[np.ndarray, " n"]
    norm: float
    shared: float
    common: float
    mean: float
    others: int
    vocabulary: int
    cross: float
    keep: float


def first_step_recall(
    samples: float | int,
    vocabulary: int,
    length: int,
    dimension: int,
    *,
    norms: Norms = "gaussian",
    population: bool = False,
    trigger_in_value: bool = False,
    keep: float = 1.0,
) -> float:
    """Expected recall of clean token queries after one gradient step.

    Args:
        samples: N.
        vocabulary: V.
        length: L.
        dimension: d.
        norms: ``gaussian`` or ``sphere`` (orthonormal embeddings: ``orthogonal_law``).
        population: the gradient of the expected loss (counts do not fluctuate).
        trigger_in_value: the trigger is also in the value path.
        keep: share of training labels that are the fact's.

    Source: derived here: docs/theory/retrieval.md, "The first step alone".
    """
    v, d = vocabulary, dimension
    rho, rho_weight = (np.ones(1), np.ones(1)) if norms == "sphere" else quadrature.chi_square_ratio(d, 3)
    if population:
        flat = Competitor(np.ones(1), np.zeros((1, 1)), np.ones((1, 1)))
        return float(
            sum(
                w
                * readout(
                    np.array([r]), np.array([r / d]), replace(flat, variances=np.full((1, 1), r / d)), v, d, norms
                )[0]
                for r, w in zip(rho, rho_weight, strict=True)
            )
        )
    n, n_weight = quadrature.label_count(int(samples), v)
    mean, others = samples / v, length - 1
    one_number = 16 * length > v or trigger_in_value
    shared, shared_weight = quadrature.normal(5) if one_number else (np.zeros(1), np.ones(1))
    total = 0.0
    for r, r_weight in zip(rho, rho_weight, strict=True):
        deviation = np.sqrt(r / d * (others**2 / v + float(trigger_in_value)))
        for m, m_weight in zip(shared * deviation, shared_weight, strict=True):
            row = _Row(n, n_weight, float(r), float(m), mean * others / v, mean, others, v, float(r) / d, keep)
            right, right_weight = _right_row(row)
            energy = (
                ((keep * mean) ** 2 + mean) * row.cross
                + mean * others * row.cross
                + r * r * row.common
                + mean * (others * r / v + m) ** 2
            )
            wins = readout(right, np.full_like(right, energy), _competitor(row), v, d, norms)
            total += float(r_weight * m_weight * (right_weight @ wins))
    return total


def _tokens_given_label(n: float, others: int, v: int) -> quadrature.Rule:
    """Rule for k | n: how often the token appears beside n samples of a label."""
    rate = n * others / v
    if rate < _ENUMERATE_BELOW:
        k = np.arange(int(poisson.isf(1e-9, rate)) + 2, dtype=float)
        w = poisson.pmf(k, rate)
        return k, w / w.sum()
    x, w = quadrature.normal(5)
    return rate + np.sqrt(rate) * x + (x * x - 1) / 6.0, w


def _right_row(row: _Row) -> quadrature.Rule:
    x, x_weight = quadrature.normal(5)
    values, weights = [], []
    for count, share in zip(row.n, row.n_weight, strict=True):
        k, k_weight = _tokens_given_label(float(count), row.others, row.vocabulary)
        base = row.keep * count * row.norm + (k - row.common) * row.norm + (count - row.mean) * row.shared
        noisy = row.keep * (1 - row.keep) * count * row.norm**2  # labels kept by chance
        noise = np.sqrt(count * (row.others + 1 - row.keep) * row.cross + noisy) * x
        values.append((base[:, None] + noise).ravel())
        weights.append((share * k_weight[:, None] * x_weight).ravel())
    return quadrature.merge(np.concatenate(values), np.concatenate(weights), 12)


def _competitor(row: _Row) -> Competitor:
    weights, means, variances = [], [], []
    for count, share in zip(row.n, row.n_weight, strict=True):
        k, k_weight = _tokens_given_label(float(count), row.others, row.vocabulary)
        means.append((k - row.common) * row.norm + (count - row.mean) * row.shared)
        weights.append(share * k_weight)
        kept = row.keep**2 * count**2 + row.keep * (1 - row.keep) * count
        variances.append(np.full_like(k, (kept + count * (row.others + 1 - row.keep)) * row.cross))
    w, mu, var = np.concatenate(weights), np.concatenate(means), np.concatenate(variances)
    keep = w > 1e-9
    w, mu, var = w[keep] / w[keep].sum(), mu[keep], var[keep]
    if len(w) > _COMPONENTS:
        w, mu, var = _merge_components(w, mu, var)
    return Competitor(w, mu[None, :], var[None, :])


def _merge_components(
    w: Float[np.ndarray, " n"], mu: Float[np.ndarray, " n"], var: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Join components of nearly equal mean, keeping mean and variance of each group exactly."""
    edges = np.linspace(mu.min(), mu.max(), _COMPONENTS + 1)
    group = np.clip(np.digitize(mu, edges) - 1, 0, _COMPONENTS - 1)
    weight = np.bincount(group, w, _COMPONENTS)
    used = weight > 0
    first = np.bincount(group, w * mu, _COMPONENTS)[used] / weight[used]
    second = np.bincount(group, w * (mu**2 + var), _COMPONENTS)[used] / weight[used]
    return weight[used], first, np.maximum(second - first**2, 0.0)
