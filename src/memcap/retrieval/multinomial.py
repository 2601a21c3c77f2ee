"""Counts drawn directly instead of sequences, exact in law: the first step, and the value step of perfect attention.

Cost does not depend on N (10¹² samples are as cheap as a thousand), but the draws are not those of the streams: equal
in distribution, not in value.  Not here: the attention step, which needs whole sequences.
"""

from __future__ import annotations

import numpy as np

from memcap.errors import ConfigurationError
from memcap.random import stream
from memcap.retrieval.closed_form import reading
from memcap.retrieval.embeddings import Embeddings
from memcap.retrieval.learned import Learned
from memcap.retrieval.ordered import product
from memcap.retrieval.step_sizes import StepSizes
from memcap.retrieval.task import RetrievalTask

LARGEST_VOCABULARY = 2**13


def multinomial(task: RetrievalTask, embeddings: Embeddings, sizes: StepSizes, *, steps: int = 3) -> Learned:
    """The first step (``steps=1`` or uniform attention), or the value step of perfect attention (``oracle``).

    Informative tokens and their labels are multinomial; the other L - 1 tokens of the n_y sequences with label y are
    multinomial(n_y (L - 1), frequencies), independent of everything else.

    Raises:
        ConfigurationError: for an MLP, finite steps, several facts a sequence, a learned attention, or counts beyond
            64 bits.
    """
    first_only = steps == 1 or task.attention == "uniform"
    if task.width or not sizes.limit or not (first_only or (task.attention == "oracle" and steps == 3)):
        raise ConfigurationError(
            "the multinomial engine knows the first step (steps=1 or attention='uniform') and the value step of "
            "attention='oracle', attention only, infinitesimal steps; use another engine"
        )
    if task.facts > 1:
        raise ConfigurationError(
            f"the multinomial engine is for one fact a sequence, got {task.facts}; use closed-form"
        )
    if task.samples * task.length >= 2**62 or task.vocabulary > LARGEST_VOCABULARY:
        raise ConfigurationError(
            f"the multinomial engine needs samples × length < 2^62 and vocabulary <= {LARGEST_VOCABULARY} (it holds a "
            f"table of labels × tokens), got samples={task.samples}, length={task.length}, vocabulary={task.vocabulary}"
        )
    draws = stream(task.seed, "retrieval:multinomial")
    chance, vocabulary = task.token_probabilities(), task.vocabulary
    informative = draws.multinomial(task.samples, chance)
    noisy = draws.binomial(informative, task.label_noise)
    table = np.zeros((vocabulary, vocabulary), np.int64)  # label × token
    table[embeddings.permutation, np.arange(vocabulary)] = informative - noisy
    if task.label_noise:
        table += draws.multinomial(noisy, np.full(vocabulary, 1 / vocabulary)).T
    label_counts = table.sum(axis=1)
    if first_only:
        table = table + draws.multinomial(label_counts * (task.length - 1), chance)
    values = product(table.astype(np.float64), embeddings.tokens)
    if task.trigger_in_value:
        values = values + np.outer(label_counts, embeddings.trigger)
    centred = embeddings.labels - embeddings.labels.mean(axis=0)
    return Learned(
        readout=product(centred.T, values) / (float(task.samples) * (task.length if first_only else 1)),
        direction=np.zeros(task.dimension),
        token_scores=np.zeros(vocabulary),
        trigger_score=0.0,
        scale=0.0,
        alpha=np.zeros(vocabulary),
        drive=0.0,
        seen=informative > 0,
        reading=reading(task, steps),
    )
