"""Gaussian expectations of an activation: Hermite coefficients and moments at a given pre-activation variance.

Not here: the activations themselves (``activation``), what the attention step sees (``shared_mean``), or what the
theory does with the numbers.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from numpy.polynomial.hermite_e import hermeval

from memcap.retrieval.activation import Activation, activation
from memcap.retrieval.quadrature import Rule


@lru_cache(maxsize=1)
def gaussian_line() -> Rule:
    """Gauss-Legendre pieces on [-12, 12] that meet at 0, where ReLU has its kink, weighted by the normal density."""
    x, w = np.polynomial.legendre.leggauss(40)
    edges = np.array([-12.0, -6.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0, 12.0])
    half = np.diff(edges) / 2
    nodes = ((edges[:-1] + half)[:, None] + half[:, None] * x).ravel()
    weights = (half[:, None] * w).ravel() * np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi)
    return nodes, np.asarray(weights)


def _hermite(degree: int, x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    return np.asarray(hermeval(x, [0.0] * degree + [1.0]) / math.sqrt(math.factorial(degree)))


@lru_cache(maxsize=4096)
def coefficient(name: str, degree: int, variance: float) -> float:
    """c_k(r) = E[φ(√r g) h_k(g)] for the activation ``name``, ``degree`` k and ``variance`` r; h_k normalised.

    >>> round(coefficient("relu", 1, 1.0), 12), round(coefficient("h1+h2", 2, 1.0), 12)
    (0.5, 1.0)
    """
    return _expect(activation(name), degree, variance, power=1)


@lru_cache(maxsize=4096)
def square(name: str, variance: float) -> float:
    """n2(r) = E φ(√r g)²."""
    return _expect(activation(name), 0, variance, power=2)


@lru_cache(maxsize=4096)
def fourth(name: str, variance: float) -> float:
    """E φ(√r g)⁴."""
    return _expect(activation(name), 0, variance, power=4)


@lru_cache(maxsize=4096)
def power_mean(name: str, power: int, variance: float) -> float:
    """E φ(√r g)^power."""
    return _expect(activation(name), 0, variance, power=power)


@lru_cache(maxsize=4096)
def square_slope(name: str, variance: float) -> float:
    """E[φ(√r g)² g]."""
    return _expect(activation(name), 1, variance, power=2)


def _expect(phi: Activation, degree: int, variance: float, power: int) -> float:
    nodes, weights = gaussian_line()
    values = np.asarray(phi.value(np.sqrt(variance) * nodes), dtype=np.float64) ** power
    return float(weights @ (values * _hermite(degree, nodes)))
