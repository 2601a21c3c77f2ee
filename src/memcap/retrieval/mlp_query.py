"""How a clean token query overlaps with stored values behind a frozen MLP: Hermite coefficients of the activation."""

from __future__ import annotations

import numpy as np

from memcap.retrieval import quadrature
from memcap.retrieval.hermite import coefficient, fourth, square
from memcap.retrieval.value_theory import Norms, Query


def mlp_query(activation: str, width: int, dimension: int, norms: Norms = "gaussian") -> Query:
    """The query law with φ(W h)/√m in the value path.

    Args:
        activation: name of φ.
        width: m.
        dimension: d.
        norms: law of the embeddings; orthonormal ones overlap only through φ's mean and the finite width.

    Source: derived here: docs/theory/retrieval.md, "The frozen MLP".
    """
    d = float(dimension)
    if norms == "gaussian":
        norm, norm_weight = quadrature.chi_square_ratio(dimension, 4)
    else:
        norm, norm_weight = np.ones(1), np.ones(1)
    cosines = (1 / d, 3 / (d * (d + 2)), 15 / (d * (d + 2) * (d + 4)), 105 / (d * (d + 2) * (d + 4) * (d + 6)))
    if norms == "orthogonal":
        cosines = (0.0, 0.0, 0.0, 0.0)
    c = np.array([[coefficient(activation, k, float(r)) for r in norm] for k in range(5)])
    n2 = np.array([square(activation, float(r)) for r in norm])
    mean = c @ norm_weight
    mean_square = (c * c) @ norm_weight
    constant = c[0] * mean[0] + c[2] * mean[2] * cosines[0]  # every overlap has this mean
    cross = sum(c[k] ** 2 * mean_square[k] * cosines[k - 1] for k in (1, 2, 3, 4))
    cross = cross + 2 * c[1] * c[3] * float((c[1] * c[3]) @ norm_weight) * cosines[1]
    cross = cross + 2 * c[0] * c[2] * (float((c[0] * c[2]) @ norm_weight) - mean[0] * mean[2]) * cosines[0]
    cross = cross + c[0] ** 2 * (mean_square[0] - mean[0] ** 2) - (c[2] * mean[2] * cosines[0]) ** 2
    moment2 = square(activation, 1.0)
    kurtosis = fourth(activation, 1.0) / moment2**2 - 1
    finite, finite_weight = quadrature.gamma(width / kurtosis, 3)
    width_noise = float(n2 @ norm_weight) - mean[0] ** 2
    own = finite[None, :] * n2[:, None] - constant[:, None]
    spread = np.maximum(cross, 0.0)[:, None] + finite[None, :] * n2[:, None] * width_noise / width
    weights = norm_weight[:, None] * finite_weight[None, :]
    return Query(weights.ravel(), own.ravel(), spread.ravel(), np.repeat(constant, len(finite)))
