"""Decoders of the permutation that are linear in the first gradient, and the two ways to answer from scores.

Scores are (V labels x V tokens).  Not here: decoders that know it is a permutation (``message_passing``,
``posterior``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from memcap.retrieval.embeddings import Embeddings

Scores = Float[np.ndarray, "labels tokens"]
Answers = Int[np.ndarray, " tokens"]
Gradient = Float[np.ndarray, "d d"]
Projection = Float[np.ndarray, "v v"]


@dataclass(frozen=True)
class Observation:
    """What the first gradient shows of the permutation matrix X: P_left (X + noise) P_right.

    Attributes:
        seen: (V, V) the observation, rows labels; the least squares scores in units in which X is 0 and 1.
        left, right: (V, V) orthogonal projections on the seen directions of labels (centred) and of tokens.
        noise: variance of an entry of the noise, (L-1)/N.
    """

    seen: Scores
    left: Projection
    right: Projection
    noise: float


def matched_filter(gradient: Gradient, embeddings: Embeddings) -> Scores:
    """Z_outᵀ G Z_in: the logits of the first gradient step itself, on clean tokens."""
    return np.asarray(embeddings.labels @ gradient @ embeddings.tokens.T)


def least_squares(gradient: Gradient, embeddings: Embeddings, ridge: float = 0.0) -> Scores:
    """The centred table whose image is closest to G: pseudo-inverses of both embeddings, with an optional ridge.

    Args:
        gradient: G1, (d, d).
        embeddings: of the task.
        ridge: added to the products of squared singular values, relative to their mean.  Count noise is white before
            the embeddings, so the best linear estimate is the pseudo-inverse times a number: a ridge gains nothing
            beyond a stable inverse.
    """
    labels = embeddings.labels - embeddings.labels.mean(axis=0)
    left, left_values, left_basis = np.linalg.svd(labels, full_matrices=False)
    right, right_values, right_basis = np.linalg.svd(embeddings.tokens, full_matrices=False)
    gain = left_values[:, None] * right_values[None, :]
    floor = 1e-10 * gain.max()
    inverse = np.where(gain > floor, gain / (gain**2 + ridge * float(np.mean(gain**2)) + floor**2), 0.0)
    inner = inverse * (left_basis @ gradient @ right_basis.T)
    return np.asarray(left @ inner @ right.T)


def assign(scores: Scores) -> Answers:
    """The permutation of largest total score: one label a token, each label once."""
    labels, tokens = linear_sum_assignment(scores, maximize=True)
    answers = np.empty(scores.shape[1], np.int64)
    answers[tokens] = labels
    return answers


def strict_argmax(scores: Scores) -> Answers:
    """The label of largest score for every token; -1 where the largest is not unique."""
    top = scores.max(axis=0)
    unique = (scores == top).sum(axis=0) == 1
    return np.where(unique, scores.argmax(axis=0), -1)


def observe(gradient: Gradient, embeddings: Embeddings, samples: int, length: int) -> Observation:
    """The first gradient with both embeddings undone; nothing that it shows of X is lost.

    Args:
        gradient: G1, (d, d).
        embeddings: of the task.
        samples: N.
        length: L.
    """
    left = _row_space(embeddings.labels - embeddings.labels.mean(axis=0))
    right = _row_space(embeddings.tokens)
    seen = length * len(embeddings.tokens) * least_squares(gradient, embeddings)
    return Observation(seen, left @ left.T, right @ right.T, max(length - 1, 1e-9) / samples)


def _row_space(rows: Float[np.ndarray, "v d"]) -> Float[np.ndarray, "v k"]:
    basis, values, _ = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(basis[:, values > 1e-9 * values[0]])
