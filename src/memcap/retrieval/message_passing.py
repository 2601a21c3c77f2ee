"""Message passing: the posterior mean of the permutation, approximately, from the first gradient.

Not here: the exact and the sampled posterior mean (``posterior``).
"""

from __future__ import annotations

import numpy as np

from memcap.retrieval.embeddings import Embeddings
from memcap.retrieval.linear_decoders import Gradient, Scores, observe

SINKHORN_ROUNDS = 40


def message_passing(
    gradient: Gradient, embeddings: Embeddings, samples: int, length: int, rounds: int = 25, damping: float = 0.6
) -> Scores:
    """Orthogonal approximate message passing with a Sinkhorn posterior of the permutation.

    Alternates the linear estimate in the seen directions with the (approximate) posterior mean over permutations, made
    divergence-free, which is asymptotically the least mean square error for a rotation-invariant design.

    Args:
        gradient: G1, (d, d).
        embeddings: of the task.
        samples: N.
        length: L.
        rounds: iterations.
        damping: share of the new estimate in each round.

    Source: Ma and Ping 2017 (orthogonal AMP); its use here: docs/theory/retrieval.md, "Decoders".
    """
    v = len(embeddings.tokens)
    view = observe(gradient, embeddings, samples, length)
    kappa = v * v / float(np.trace(view.left) * np.trace(view.right))
    estimate = np.zeros((v, v))
    mean_square = (1 - 1 / v) / v
    linear = view.seen
    for _ in range(rounds):
        error = view.seen - view.left @ estimate @ view.right
        linear = estimate + kappa * error
        spread = max((kappa - 1) * mean_square + kappa * view.noise, 1e-9)
        posterior = _sinkhorn(linear / spread)
        variance = float(np.mean(posterior * (1 - posterior)))
        slope = min(variance / spread, 0.999)
        if slope < 1e-9:
            break
        centred = posterior - 1 / v
        clean = (centred - slope * linear) / (1 - slope)
        estimate = damping * clean + (1 - damping) * estimate
        mean_square = damping * variance / (1 - slope) + (1 - damping) * mean_square
    return linear


def _sinkhorn(log_scores: Scores) -> Scores:
    for _ in range(2):  # in the logarithm until the scale is harmless
        log_scores = log_scores - np.logaddexp.reduce(log_scores, axis=0, keepdims=True)
        log_scores = log_scores - np.logaddexp.reduce(log_scores, axis=1, keepdims=True)
    kernel = np.exp(log_scores)
    left = np.ones(len(kernel))
    for _ in range(SINKHORN_ROUNDS):
        right = 1 / np.maximum(kernel.T @ left, 1e-200)
        left = 1 / np.maximum(kernel @ right, 1e-200)
    scaled = left[:, None] * kernel * right[None, :]
    return np.asarray(scaled / np.maximum(scaled.sum(axis=0, keepdims=True), 1e-200))
