"""Moments of the Gram matrix of random embeddings: (1/V) E tr K^p for K = ZᵀZ.

Entries of Z ~ N(0, 1/d): leading order in 1/V at fixed V/d (the Marchenko-Pastur law).  Unit columns: exact up to the
fourth.  Nothing here knows about attention or recall.
"""

from __future__ import annotations

from math import comb


def moment(power: int, ratio: float) -> float:
    """The ``power``-th moment of the Marchenko-Pastur law with unit mean and shape ``ratio`` = V/d.

    The Narayana polynomial Σ_k N(p, k) ratio^(k-1), N(p, k) = C(p, k) C(p, k-1) / p.  At ratio 0 (orthonormal
    embeddings) every moment is 1.

    Source: derived here: docs/theory/retrieval.md, "Moments of the Gram matrix".

    >>> [moment(p, 1.0) for p in (1, 2, 3, 4)]
    [1.0, 2.0, 5.0, 14.0]
    """
    if power < 1:
        raise ValueError(f"power must be at least 1, got {power}")
    return float(sum(comb(power, k) * comb(power, k - 1) // power * ratio ** (k - 1) for k in range(1, power + 1)))


def unit_moment(power: int, vocabulary: float | int, dimension: float | int) -> float:
    """The same for V independent uniform unit vectors in d dimensions: exact up to power 4, else ``moment`` at (V-1)/d.

    Source: derived here: docs/theory/retrieval.md, "Moments of the Gram matrix".

    >>> round(unit_moment(2, 22, 23), 4), round(unit_moment(4, 22, 23), 2)
    (1.913, 12.01)
    """
    v, d = float(vocabulary), float(dimension)
    pairs = (v - 1) / d
    triples = pairs * (v - 2) / d
    if power == 3:
        return 1 + 3 * pairs + triples
    if power == 4:
        return 1 + 6 * pairs + 3 * pairs / (d + 2) + 6 * triples + triples * (v - 3) / d
    return moment(power, pairs)


def unit_mean_bias(vocabulary: float | int, dimension: float | int) -> float:
    """Variance over tokens of K(K1 - its mean) for unit vectors, with its first correction in 1/V.

    Source: derived here: docs/theory/retrieval.md, "Unit-norm embeddings".

    >>> round(unit_mean_bias(22, 23), 2)
    3.31
    """
    v = float(vocabulary)
    m2, m3, m4 = (unit_moment(p, vocabulary, dimension) for p in (2, 3, 4))
    leading = m4 - 2 * m3 + m2 - (m2 - 1) ** 2
    energy = -2 * (m4 - m3) + m2 * (m2 - 1) + 2 * (m3 - m2) + 2 * (m2 - 1) ** 2  # of the mean's square m
    mean = -(m4 - m2 * m2) - 4 * (m2 - 1) + 4 * (m3 - m2)  # of the mean score
    return max(leading + 2 / v * (energy + mean), 0.0)
