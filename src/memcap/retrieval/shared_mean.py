"""Gaussian expectations of an activation over pre-activations that share a mean: what the attention step sees of a φ.

All averaged sequences contain the mean embedding.  A frozen neuron therefore sees μ + ξ with μ one number per neuron,
common to all sequences, and ξ one per sequence.  Not here: what the budget does with the numbers (``mlp_budget``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from memcap.retrieval.activation import activation
from memcap.retrieval.hermite import gaussian_line

_LEGENDRE = np.polynomial.legendre.leggauss(60)
_END = 9.0  # standard deviations of ξ that are integrated


@dataclass(frozen=True)
class SharedMean:
    """Expectations over μ ~ N(0, ``mean``) of expectations over ξ ~ N(0, ``spread``), all at φ(μ + ξ).

    E is over ξ at a given μ, ⟨⟩ over μ; derivatives of E φ and E φφ' are with respect to μ.

    Attributes:
        linear: ⟨(E φ')²⟩, how one sequence's pre-activation drives another's gradient.
        linear_square: ⟨(E φ')⁴⟩.
        crossed: ⟨E φ E φ''⟩.
        own_slope: ⟨E[φ'² + φφ'']⟩, the same for a sequence and itself.
        own_push: ⟨(E φφ')²⟩, mean square of a neuron's push in a sequence's own gradient.
        mixed_push: ⟨E φφ' · E φ E φ'⟩.
        pair_push: ⟨(E φ E φ')²⟩, mean square of a neuron's push between two sequences.
        fact_slope: ⟨(E φ' E φ'')'⟩, how what two sequences share pushes both along the mean.
        fact_push: ⟨(E φ' E φ'')²⟩.
        own_fact_push: ⟨E φφ' · E φ' E φ''⟩.
        pair_fact_push: ⟨E φ E φ' · E φ' E φ''⟩.
        value_noise: ⟨(E φ')² Var φ⟩.
        slope_noise: ⟨(E φ)² Var φ'⟩.
        both_noise: ⟨Var φ Var φ'⟩.
        sum_noise: ⟨Var(E φ' · φ + E φ · φ')⟩.
    """

    linear: float
    linear_square: float
    crossed: float
    own_slope: float
    own_push: float
    mixed_push: float
    pair_push: float
    fact_slope: float
    fact_push: float
    own_fact_push: float
    pair_fact_push: float
    value_noise: float
    slope_noise: float
    both_noise: float
    sum_noise: float


@lru_cache(maxsize=4096)
def shared_mean(name: str, spread: float, mean: float) -> SharedMean:
    """The expectations of ``SharedMean`` for the activation ``name``.

    Derivatives are taken by Gaussian integration by parts, and the line is split where μ + ξ = 0, so that ReLU's kink
    costs no accuracy.

    Args:
        name: of φ.
        spread: variance of ξ, positive.
        mean: variance of μ, positive.

    Source: derived here: docs/theory/retrieval.md, "The frozen MLP".

    >>> round(shared_mean("relu", 0.5, 0.5).linear, 6)  # 1/4 + arcsin(1/2)/2π
    0.333333
    """
    phi = activation(name)
    standard, weight = gaussian_line()
    mu = np.sqrt(mean) * standard
    x, x_weight = _split_line(-mu / np.sqrt(spread))
    at = mu[:, None] + np.sqrt(spread) * x
    value = np.asarray(phi.value(at), dtype=np.float64)
    slope = np.asarray(phi.slope(at), dtype=np.float64)

    def inner(values: Float[np.ndarray, "mu x"]) -> Float[np.ndarray, " mu"]:
        return np.asarray((x_weight * values).sum(axis=1))

    def outer(values: Float[np.ndarray, " mu"]) -> float:
        return float(weight @ values)

    v, s, push = inner(value), inner(slope), inner(value * slope)
    bend = inner(slope * x) / np.sqrt(spread)
    v_noise, s_noise = inner(value**2) - v * v, inner(slope**2) - s * s
    total = spread + mean
    return SharedMean(
        linear=outer(s**2),
        linear_square=outer(s**4),
        crossed=outer(v * bend),
        own_slope=outer(inner(value**2 * (at**2 / total - 1))) / (2 * total),
        own_push=outer(push**2),
        mixed_push=outer(push * v * s),
        pair_push=outer((v * s) ** 2),
        fact_slope=outer(s * bend * mu) / mean,
        fact_push=outer((s * bend) ** 2),
        own_fact_push=outer(push * s * bend),
        pair_fact_push=outer(v * s * s * bend),
        value_noise=outer(s**2 * v_noise),
        slope_noise=outer(v**2 * s_noise),
        both_noise=outer(v_noise * s_noise),
        sum_noise=outer(s**2 * v_noise + v**2 * s_noise + 2 * v * s * (push - v * s)),
    )


def _split_line(
    kink: Float[np.ndarray, " mu"],
) -> tuple[Float[np.ndarray, "mu x"], Float[np.ndarray, "mu x"]]:
    """Nodes and normal weights on [-9, 9], one row for each place of the kink, in two pieces that meet there."""
    nodes, weights = _LEGENDRE
    kink = np.clip(kink, -_END, _END)
    x, w = [], []
    for low, high in ((np.full_like(kink, -_END), kink), (kink, np.full_like(kink, _END))):
        half = ((high - low) / 2)[:, None]
        x.append(low[:, None] + half * (nodes + 1))
        w.append(half * weights * np.exp(-(x[-1] ** 2) / 2) / np.sqrt(2 * np.pi))
    return np.concatenate(x, axis=1), np.concatenate(w, axis=1)
