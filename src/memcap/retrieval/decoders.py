"""Estimators of the permutation from the first gradient (class A) or from label sums of embeddings (class B).

They exist to be plotted under ``lower_bound``: from one gradient step's own read-out to message passing.  All return
scores (V labels x V tokens) or an answer per token; ``decode`` runs them on a task's real data.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp

from memcap.errors import ConfigurationError, nearest
from memcap.retrieval.embeddings import Embeddings, draw_embeddings
from memcap.retrieval.small_step import small_step
from memcap.retrieval.step_sizes import StepSizes
from memcap.retrieval.streams import draw, source
from memcap.retrieval.task import RetrievalTask

Scores = Float[np.ndarray, "labels tokens"]
Answers = Int[np.ndarray, " tokens"]
Gradient = Float[np.ndarray, "d d"]

CHUNK = 4096
SINKHORN_ROUNDS = 40


def matched_filter(gradient: Gradient, embeddings: Embeddings) -> Scores:
    """Z_outᵀ G Z_in: the logits of the first gradient step itself, on clean tokens."""
    return np.asarray(embeddings.labels @ gradient @ embeddings.tokens.T)


def least_squares(gradient: Gradient, embeddings: Embeddings, ridge: float = 0.0) -> Scores:
    """The centred table whose image is closest to G: pseudo-inverses of both embeddings, with an optional ridge.

    Args:
        gradient: G1, (d, d).
        embeddings: of the task.
        ridge: added to the products of squared singular values, relative to their mean.
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
    labels = embeddings.labels - embeddings.labels.mean(axis=0)
    left = _row_space(labels)
    right = _row_space(embeddings.tokens)
    seen = length * v * least_squares(gradient, embeddings)  # the centred permutation, seen through both spaces
    kappa = v * v / (left.shape[1] * right.shape[1])
    noise = max(length - 1, 1e-9) / samples
    estimate = np.zeros((v, v))
    mean_square = (1 - 1 / v) / v
    linear = seen
    for _ in range(rounds):
        error = seen - left @ (left.T @ estimate @ right) @ right.T
        linear = estimate + kappa * error
        spread = max((kappa - 1) * mean_square + kappa * noise, 1e-9)
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


def _row_space(rows: Float[np.ndarray, "v d"]) -> Float[np.ndarray, "v k"]:
    basis, values, _ = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(basis[:, values > 1e-9 * values[0]])


def _sinkhorn(log_scores: Scores) -> Scores:
    for _ in range(2):  # in the logarithm until the scale is harmless
        log_scores = log_scores - logsumexp(log_scores, axis=0, keepdims=True)
        log_scores = log_scores - logsumexp(log_scores, axis=1, keepdims=True)
    kernel = np.exp(log_scores)
    left = np.ones(len(kernel))
    for _ in range(SINKHORN_ROUNDS):
        right = 1 / np.maximum(kernel.T @ left, 1e-200)
        left = 1 / np.maximum(kernel @ right, 1e-200)
    scaled = left[:, None] * kernel * right[None, :]
    return np.asarray(scaled / np.maximum(scaled.sum(axis=0, keepdims=True), 1e-200))


def label_likelihood(
    sums: Float[np.ndarray, "labels d"], counts: Int[np.ndarray, " labels"], embeddings: Embeddings, length: int
) -> Scores:
    """Log-likelihood (up to a constant a label) that a label belongs to a token, from per-label sums (class B).

    A sample's averaged embedding given its token is taken as Gaussian around z_t/L + the mean of the others, with the
    covariance of the L - 1 others.

    Args:
        sums: Σ of averaged embeddings h̄_i over the samples of each label.
        counts: samples of each label.
        embeddings: of the task.
        length: L, at least 2.
    """
    tokens = embeddings.tokens
    v = len(tokens)
    mean = tokens.mean(axis=0)
    centred = tokens - mean
    covariance = (length - 1) / (length**2 * v) * centred.T @ centred
    precision = np.linalg.pinv(covariance, hermitian=True)
    expected = tokens / length
    residual = sums - counts[:, None] * (length - 1) / length * mean
    quadratic = 0.5 * np.einsum("td,de,te->t", expected, precision, expected)
    return np.asarray(residual @ precision @ expected.T - counts[:, None] * quadratic[None, :])


CLASS_A = (
    "matched filter",
    "matched filter + assignment",
    "least squares",
    "least squares + assignment",
    "message passing",
)
CLASS_B = ("matched filter", "likelihood + assignment")


def decode(task: RetrievalTask, *, sees: str = "first gradient", seed: int | None = None) -> dict[str, float]:
    """Recall over all tokens of every decoder on the data of one task.

    Args:
        task: attention only; its training stream is used.
        sees: ``first gradient`` or ``samples``, as in ``lower_bound.recall_bound``.
        seed: replaces the task's own when given.

    Raises:
        ConfigurationError: for another ``sees``, or a task the decoders are not made for.
    """
    classes = ("first gradient", "samples")
    if sees not in classes:
        raise ConfigurationError(f"decoders see one of {', '.join(classes)}, got {sees!r}{nearest(str(sees), classes)}")
    if task.width or task.trigger_in_value or task.data != "empirical" or task.length < 2:
        raise ConfigurationError("decoders need length >= 2, attention only, empirical data, no trigger in the values")
    task = task if seed is None else task.replace(seed=seed)
    embeddings = draw_embeddings(task)
    answers = _class_a(task, embeddings) if sees == "first gradient" else _class_b(task, embeddings)
    return {name: float(np.mean(found == embeddings.permutation)) for name, found in answers.items()}


def _class_a(task: RetrievalTask, embeddings: Embeddings) -> dict[str, Answers]:
    samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
    gradient = small_step(task, embeddings, samples, StepSizes(), steps=1).readout
    filtered = matched_filter(gradient, embeddings)
    solved = least_squares(gradient, embeddings)
    passed = message_passing(gradient, embeddings, task.samples, task.length)
    found: tuple[Callable[[], Answers], ...] = (
        lambda: strict_argmax(filtered),
        lambda: assign(filtered),
        lambda: strict_argmax(solved),
        lambda: assign(solved),
        lambda: assign(passed),
    )
    return {name: run() for name, run in zip(CLASS_A, found, strict=True)}


def _class_b(task: RetrievalTask, embeddings: Embeddings) -> dict[str, Answers]:
    v, d = embeddings.tokens.shape
    sums, counts = np.zeros((v, d)), np.zeros(v, np.int64)
    for start in range(0, task.samples, CHUNK):
        drawn = draw(task, embeddings.permutation, start=start, stop=min(start + CHUNK, task.samples))
        averaged = embeddings.tokens[drawn.tokens].mean(axis=1)
        np.add.at(sums, drawn.labels, averaged)
        counts += np.bincount(drawn.labels, minlength=v)
    filtered = (sums - sums.mean(axis=0)) @ embeddings.tokens.T
    likely = label_likelihood(sums, counts, embeddings, task.length)
    return dict(zip(CLASS_B, (strict_argmax(filtered), assign(likely)), strict=True))
