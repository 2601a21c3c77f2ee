"""Estimators of the permutation from the first gradient (class A) or from label sums of embeddings (class B).

They exist to be plotted under ``lower_bound``: from one gradient step's own read-out to the posterior mean.  ``decode``
runs them on a task's real data.  Not here: how the class A decoders work (``linear_decoders``, ``message_passing``,
``posterior``).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from memcap.errors import ConfigurationError, nearest
from memcap.retrieval.embeddings import Embeddings, draw_embeddings
from memcap.retrieval.linear_decoders import (
    Answers,
    Scores,
    assign,
    least_squares,
    matched_filter,
    observe,
    strict_argmax,
)
from memcap.retrieval.message_passing import message_passing
from memcap.retrieval.posterior import LARGEST_ENUMERATED, posterior_mean
from memcap.retrieval.small_step import small_step
from memcap.retrieval.step_sizes import StepSizes
from memcap.retrieval.streams import draw, source
from memcap.retrieval.task import RetrievalTask

CHUNK = 4096
RIDGE = 0.01


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
    "regularised least squares",
    "regularised least squares + assignment",
    "message passing",
)
MMSE = "posterior mean (MMSE)"
CLASS_B = ("matched filter", "likelihood + assignment")


def decode(
    task: RetrievalTask, *, sees: str = "first gradient", seed: int | None = None, proposals: int | None = None
) -> dict[str, float]:
    """Recall over all tokens of every decoder on the data of one task.

    Args:
        task: attention only; its training stream is used.
        sees: ``first gradient`` or ``samples``, as in ``lower_bound.recall_bound``.
        seed: replaces the task's own when given.
        proposals: of the sampled posterior mean.  None leaves the posterior mean out above the 8 tokens up to which it
            is enumerated: sampling takes seconds.

    Raises:
        ConfigurationError: for another ``sees``, or a task the decoders are not made for.
    """
    classes = ("first gradient", "samples")
    if sees not in classes:
        raise ConfigurationError(f"decoders see one of {', '.join(classes)}, got {sees!r}{nearest(str(sees), classes)}")
    if task.width or task.trigger_in_value or task.data != "empirical" or task.length < 2 or task.facts > 1:
        raise ConfigurationError(
            "decoders need length >= 2, attention only, empirical data, one fact a sequence, no trigger in the values"
        )
    task = task if seed is None else task.replace(seed=seed)
    embeddings = draw_embeddings(task)
    answers = _class_a(task, embeddings, proposals) if sees == "first gradient" else _class_b(task, embeddings)
    return {name: float(np.mean(found == embeddings.permutation)) for name, found in answers.items()}


def _class_a(task: RetrievalTask, embeddings: Embeddings, proposals: int | None) -> dict[str, Answers]:
    samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
    gradient = small_step(task, embeddings, samples, StepSizes(), steps=1).readout
    filtered, solved = matched_filter(gradient, embeddings), least_squares(gradient, embeddings)
    regular = least_squares(gradient, embeddings, RIDGE)
    passed = message_passing(gradient, embeddings, task.samples, task.length)
    found = [strict_argmax(filtered), assign(filtered), strict_argmax(solved), assign(solved)]
    found += [strict_argmax(regular), assign(regular), assign(passed)]
    answers = dict(zip(CLASS_A, found, strict=True))
    if proposals is not None or task.vocabulary <= LARGEST_ENUMERATED:
        view = observe(gradient, embeddings, task.samples, task.length)
        answers[MMSE] = strict_argmax(posterior_mean(view, proposals=proposals, seed=task.seed))
    return answers


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
