"""How a clean token query overlaps with stored values behind a frozen MLP: Hermite coefficients of the activation."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from memcap.retrieval import quadrature
from memcap.retrieval.hermite import coefficient, fourth, power_mean, square, square_slope
from memcap.retrieval.value_theory import Norms, Query

DEGREES = 6  # of the Hermite expansion, from 0
COSINES = 12  # nodes: fourth powers of a polynomial of degree 5


def mlp_query(activation: str, width: int, dimension: int, norms: Norms = "gaussian") -> Query:
    """The query law with φ(W h)/√m in the value path.

    Args:
        activation: name of φ.
        width: m.
        dimension: d.
        norms: law of the embeddings; orthonormal ones overlap only through φ's mean and the finite width.

    Source: derived here: docs/theory/retrieval.md, "The frozen MLP".
    """
    if norms == "gaussian":
        norm, weight = quadrature.chi_square_ratio(dimension, 4)
    else:
        norm, weight = np.ones(1), np.ones(1)
    if norms == "orthogonal":
        cos, cos_weight = np.zeros(1), np.ones(1)
    else:
        cos, cos_weight = quadrature.cosine(dimension, COSINES)
    c = np.array([[coefficient(activation, k, float(r)) for r in norm] for k in range(DEGREES)])
    n2 = np.array([square(activation, float(r)) for r in norm])
    # overlap of infinitely many neurons, for each query norm (first axis), over key norms and cosines
    overlap = np.einsum("kq,kn,kx->qnx", c, c, cos ** np.arange(DEGREES)[:, None])
    law = weight[:, None] * cos_weight[None, :]
    constant = np.einsum("qnx,nx->q", overlap, law)
    kernel = [np.einsum("qnx,nx->q", (overlap - constant[:, None, None]) ** p, law) for p in (2, 3, 4)]
    moment2 = square(activation, 1.0)
    kurtosis = fourth(activation, 1.0) / moment2**2 - 1
    finite, finite_weight = quadrature.gamma(width / kurtosis, 3)
    # a key closer to the query has more active neurons in common with it, and so more noise
    steep = np.array([square_slope(activation, float(r)) for r in norm])
    joint = 0.0 if norms == "orthogonal" else 3 / (dimension * width)
    coupled = joint * c[1] * steep * float((c[1] * (steep - 2 * c[0] * c[1])) @ weight)
    relative = [finite ** (p / 2) / (finite_weight @ finite ** (p / 2)) for p in (2, 3, 4)]
    neurons = _neurons(activation, norm, weight, width)
    neurons[1] = neurons[1] + coupled
    noise = [x[:, None] * r[None, :] for x, r in zip(neurons, relative, strict=True)]
    own = finite[None, :] * n2[:, None] - constant[:, None]
    spread = np.maximum(kernel[0], 0.0)[:, None] + noise[0]
    skew = (kernel[1][:, None] + noise[1]) / spread**1.5
    tail = (kernel[2] - 3 * kernel[0] ** 2)[:, None] / spread**2 + noise[2] / spread**2
    weights = weight[:, None] * finite_weight[None, :]
    return Query(
        weights.ravel(), own.ravel(), spread.ravel(), np.repeat(constant, len(finite)), skew.ravel(), tail.ravel()
    )


def _neurons(
    activation: str, norm: Float[np.ndarray, " q"], weight: Float[np.ndarray, " q"], width: int
) -> list[Float[np.ndarray, " q"]]:
    """Second to fourth cumulant of what finitely many neurons add to an overlap: m independent terms φ(φ' - E φ)/m.

    One entry per query norm; φ is the query's neuron, φ' the key's.
    """
    key = [float(np.dot([power_mean(activation, p, float(r)) for r in norm], weight)) for p in (1, 2, 3, 4)]
    e1, e2, e3, e4 = key
    variance, third = e2 - e1**2, e3 - 3 * e1 * e2 + 2 * e1**3
    centred4 = e4 - 4 * e1 * e3 + 6 * e1**2 * e2 - 3 * e1**4
    of_key = (variance, third, centred4 - 3 * variance**2)
    return [
        np.array([power_mean(activation, p, float(r)) for r in norm]) * cumulant / width ** (p - 1)
        for p, cumulant in zip((2, 3, 4), of_key, strict=True)
    ]
