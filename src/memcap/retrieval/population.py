"""Infinite data: the three infinitesimal steps on the gradient of the expected loss, attention only, O(V d) memory.

Every expectation over sequences is in closed form; soft attention needs one quadrature (``soft_attention``).
Not here: finite samples (``small_step``).  Source: derived here: docs/theory/retrieval-engines.md.
"""

from __future__ import annotations

import math

import numpy as np

from memcap.errors import ConfigurationError
from memcap.retrieval.closed_form import reading
from memcap.retrieval.embeddings import Embeddings
from memcap.retrieval.learned import Learned, score_ranks
from memcap.retrieval.ordered import product
from memcap.retrieval.step_sizes import StepSizes, score_scale
from memcap.retrieval.task import RetrievalTask

CERTAIN = 20.0
"""Log of u w beyond which e^(-u w) is 0 in float64."""


def population(task: RetrievalTask, embeddings: Embeddings, sizes: StepSizes, *, steps: int = 3) -> Learned:
    """Take one, two or three infinitesimal steps on infinite data; arguments as in ``small_step``.

    Label noise only shrinks every label's mean by (1 - noise).

    Raises:
        ConfigurationError: for a task with an MLP or finite step sizes.
    """
    if task.width or not sizes.limit:
        raise ConfigurationError(
            "population gradients are in closed form for attention only and infinitesimal steps; "
            "for an MLP or finite steps use data='empirical' with many samples"
        )
    if task.facts > 1:
        raise ConfigurationError(
            f"population gradients are for one fact a sequence, got {task.facts}; use data='empirical' and many samples"
        )
    tokens, trigger = embeddings.tokens, embeddings.trigger * task.trigger_in_value
    length, chance = task.length, task.token_probabilities()
    answers = (1 - task.label_noise) * (embeddings.labels - embeddings.labels.mean(axis=0))[embeddings.permutation]
    mean = product(chance, tokens)

    def readout(values: np.ndarray) -> np.ndarray:
        """Σ_s p_s answer_s ⊗ E[value | s]."""
        return product((chance[:, None] * answers).T, values)

    first = readout((tokens + (length - 1) * mean + trigger) / length)
    alpha, beta = np.zeros(task.vocabulary), 0.0
    if steps > 1 and task.attention not in ("uniform", "oracle"):
        vectors = product(answers, first)
        own = (vectors * tokens).sum(axis=1) + product(vectors, trigger)  # r at the informative position
        other = product(vectors, mean)  # mean r elsewhere
        share = 1 - 1 / length
        elsewhere = (
            share * product(tokens, product(chance, vectors)) - (chance * (own + (length - 2) * other)).sum() / length
        )
        alpha = chance * (share * (own - other) + (length - 1) * elsewhere) / length
        beta = float((chance * (own - other)).sum()) * share / length
    direction = product(tokens.T, alpha) + beta * embeddings.trigger
    token_scores, trigger_score = product(tokens, direction), float(embeddings.trigger @ direction)
    scale = score_scale(task, sizes, float(embeddings.end @ embeddings.end))
    final = first
    if task.attention != "uniform" and steps == 3:
        if task.attention == "oracle" or length == 1:
            own_mass, wrong = np.ones(task.vocabulary), np.zeros_like(tokens)
        elif math.isinf(scale):
            own_mass, wrong = hard_attention(tokens, chance, token_scores, trigger_score, length)
        else:
            own_mass, wrong = soft_attention(tokens, chance, scale * token_scores, scale * trigger_score, length)
        final = readout(own_mass[:, None] * (tokens + trigger) + wrong)
    return Learned(
        readout=final,
        direction=direction,
        token_scores=token_scores,
        trigger_score=trigger_score,
        scale=scale,
        alpha=alpha,
        drive=beta,
        seen=np.ones(task.vocabulary, bool),
        reading=reading(task, steps),
    )


def hard_attention(
    tokens: np.ndarray, chance: np.ndarray, token_scores: np.ndarray, trigger_score: float, length: int
) -> tuple[np.ndarray, np.ndarray]:
    """For every informative token: the chance that its position wins, and the mean value read when it does not.

    The largest of L - 1 independent ranks has distribution F^(L-1); ties go to the informative position, which comes
    first in canonical order, and otherwise to each tied token in proportion to its frequency.
    """
    rank, rank_marked = score_ranks(token_scores, trigger_score)
    levels = int(max(rank.max(), rank_marked.max())) + 1
    at = np.bincount(rank, weights=chance, minlength=levels)
    below = np.minimum(np.cumsum(at), 1.0)
    largest = np.diff(below ** (length - 1), prepend=0.0)
    share = np.where(at[rank] > 0, chance / np.where(at[rank] > 0, at[rank], 1), 0)
    read = np.zeros((levels + 1, tokens.shape[1]))
    np.add.at(read, rank, (share * largest[rank])[:, None] * tokens)
    above = read[::-1].cumsum(axis=0)[::-1]
    return below[rank_marked] ** (length - 1), above[rank_marked + 1]


def soft_attention(
    tokens: np.ndarray, chance: np.ndarray, scores: np.ndarray, trigger_score: float, length: int, step: float = 0.05
) -> tuple[np.ndarray, np.ndarray]:
    """For every informative token: the mean attention on its position, and the mean value read elsewhere.

    With weights w = e^score and S the sum of L - 1 independent ones, E[w_s/(w_s + S)] = ∫ w_s e^(-u w_s) φ(u)^(L-1) du
    and likewise for each other token, φ(u) = E e^(-u w); by the trapezoid rule in ln u, whose error is far below 1e-10.
    """
    marked = scores + trigger_score
    top, bottom = max(scores.max(), marked.max()), marked.min()
    logs = np.arange(-top - math.log(length) - 40.0, -bottom + 5.0, step)
    own_mass, wrong = np.zeros(len(scores)), np.zeros_like(tokens)
    for start in range(0, len(logs), 64):
        log_u = logs[start : start + 64]
        products = np.exp(np.minimum(scores[:, None] + log_u, CERTAIN))  # u w, (V, nodes)
        own_products = np.exp(np.minimum(marked[:, None] + log_u, CERTAIN))
        decay, own_decay = np.exp(-products), np.exp(-own_products)
        phi = product(chance, decay)
        own_mass += product(own_products * own_decay, phi ** (length - 1)) * step
        rate = chance[:, None] * products * decay
        elsewhere = (length - 1) * phi ** (length - 2) * step
        wrong += product(own_decay * elsewhere, product(rate.T, tokens))
    return own_mass, wrong
