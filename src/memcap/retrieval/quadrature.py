"""Small Gauss rules for the random numbers of the retrieval theory: norms, cosines, counts, Gaussians.

Every rule is a pair (nodes, weights) whose weights sum to 1, so an expectation is a dot product.  The rules come from
the three-term recurrences (Golub and Welsch), which stay finite where SciPy's generalised Laguerre routine overflows
(shape above about 100).  Nothing here is random.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from jaxtyping import Float
from scipy.linalg import eigh_tridiagonal
from scipy.stats import binom

Rule = tuple[Float[np.ndarray, " _"], Float[np.ndarray, " _"]]

_ENUMERATE_BELOW = 7.0  # mean count under which a binomial is enumerated exactly
_NEGLIGIBLE = 1e-6


def _golub_welsch(diagonal: Float[np.ndarray, " n"], off_diagonal: Float[np.ndarray, " m"]) -> Rule:
    if len(diagonal) == 1:
        return diagonal.copy(), np.ones(1)
    nodes, vectors = eigh_tridiagonal(diagonal, off_diagonal)
    return nodes, vectors[0] ** 2


@lru_cache(maxsize=256)
def normal(count: int) -> Rule:
    """Gauss rule with ``count`` nodes for N(0, 1)."""
    return _golub_welsch(np.zeros(count), np.sqrt(np.arange(1.0, count)))


@lru_cache(maxsize=256)
def chi_square_ratio(degrees: int, count: int) -> Rule:
    """Gauss rule for χ²_degrees / degrees, the squared norm of a Gaussian embedding with ``degrees`` entries."""
    return gamma(degrees / 2.0, count)


@lru_cache(maxsize=256)
def gamma(shape: float, count: int) -> Rule:
    """Gauss rule for a Gamma variable with mean 1 and variance 1/``shape`` (generalised Laguerre)."""
    k = np.arange(float(count))
    nodes, weights = _golub_welsch(2 * k + shape, np.sqrt(k[1:] * (k[1:] + shape - 1)))
    return nodes / shape, weights


@lru_cache(maxsize=256)
def cosine(dimension: int, count: int) -> Rule:
    """Gauss rule for the cosine between a fixed and a uniform direction in ``dimension`` dimensions (Gegenbauer)."""
    if dimension == 1:
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    order = dimension / 2.0 - 1.0
    k = np.arange(1.0, count)
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = k * (k + 2 * order - 1) / (4 * (k + order) * (k + order - 1))
    squared[:1] = 1.0 / dimension  # the formula is 0/0 at dimension 2
    return _golub_welsch(np.zeros(count), np.sqrt(squared))


def merge(nodes: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"], count: int) -> Rule:
    """The ``count``-node Gauss rule of a discrete measure: same moments up to 2·count - 1 (Lanczos)."""
    keep = weights > 0
    nodes, weights = nodes[keep], weights[keep] / weights[keep].sum()
    if len(nodes) <= count:
        return nodes, weights
    centre = float(weights @ nodes)
    scale = float(np.sqrt(weights @ (nodes - centre) ** 2))
    if scale <= 1e-13 * max(abs(centre), 1e-300):
        return np.array([centre]), np.ones(1)
    x = (nodes - centre) / scale
    basis = [np.sqrt(weights)]
    diagonal, off_diagonal = [], []
    for step in range(count):
        vector = x * basis[-1]
        diagonal.append(float(basis[-1] @ vector))
        for _ in range(2):  # orthogonalise twice: plain Lanczos loses the weights' small tail
            for other in basis:
                vector = vector - (other @ vector) * other
        length = float(np.sqrt(vector @ vector))
        if step == count - 1 or length < 1e-10:
            break
        off_diagonal.append(length)
        basis.append(vector / length)
    merged, merged_weights = _golub_welsch(np.array(diagonal), np.array(off_diagonal[: len(diagonal) - 1]))
    return centre + scale * merged, merged_weights


def log_normal(mean: float, variance: float, count: int) -> Rule:
    """Rule for a log-normal variable with the given mean and variance."""
    spread = np.log1p(variance / mean**2)
    nodes, weights = normal(count)
    return mean * np.exp(np.sqrt(spread) * nodes - spread / 2), weights


@lru_cache(maxsize=256)
def label_count(samples: int, vocabulary: int, count: int = 5, keep: float = 1.0) -> Rule:
    """Rule for the number of samples that carry a given fact, n ~ Binomial(samples, keep/vocabulary).

    Exact enumeration for small means; otherwise ``count`` Hermite nodes with the skewness of a Poisson variable,
    clipped at 0.
    """
    chance = keep / vocabulary
    mean = samples * chance if keep < 1 else samples / vocabulary
    if mean < _ENUMERATE_BELOW:
        top = int(binom.isf(_NEGLIGIBLE, samples, chance)) + 1
        values = np.arange(min(top, samples) + 1)
        weights = binom.pmf(values, samples, chance)
        return values.astype(float), weights / weights.sum()
    x, weights = normal(count)
    return np.maximum(mean + np.sqrt(mean * (1 - chance)) * x + (x * x - 1) / 6.0, 0.0), weights
