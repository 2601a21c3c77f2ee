"""Moments of the Gram matrix of random embeddings: (1/V) E tr K^p for K = ZᵀZ, entries of Z ~ N(0, 1/d).

Leading order in 1/V at fixed V/d (the Marchenko-Pastur law).  Nothing here knows about attention or recall.
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
