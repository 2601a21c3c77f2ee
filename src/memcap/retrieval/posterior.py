"""The least mean square error estimate of the permutation from the first gradient: its posterior mean.

Exact by enumeration for a few tokens, by annealed sampling for more.  The entry (y, t) is the chance that token t has
label y; answering with the likeliest label of every token has the largest expected recall of all estimators, under the
Gaussian count noise that ``lower_bound`` assumes too.  ``message_passing`` approximates the same thing faster.
"""

from __future__ import annotations

import functools
import itertools
from typing import no_type_check

import numpy as np
from jaxtyping import Float, Int

from memcap.errors import ConfigurationError
from memcap.random import stream
from memcap.retrieval.linear_decoders import Observation, Scores
from memcap.retrieval.token_kernels import compiled

LARGEST_ENUMERATED = 8
HOTTEST = 16.0
"""Factor on the noise variance where annealing starts: hot enough that every permutation is within reach."""
CHUNK = 2**16


def posterior_mean(observation: Observation, *, proposals: int | None = None, seed: int = 0) -> Scores:
    """P(token t has label y given the first gradient), uniform prior over permutations.

    Args:
        observation: from ``linear_decoders.observe``.
        proposals: swaps proposed by the sampler; None for 256 V².  Not used for V <= 8, which is enumerated.
        seed: of the sampler.

    Raises:
        ConfigurationError: for fewer than 2 proposals.

    Source: derived here: docs/theory/retrieval.md, "Decoders".
    """
    v = len(observation.seen)
    if v <= LARGEST_ENUMERATED:
        return _enumerated(observation)
    proposals = 256 * v * v if proposals is None else proposals
    if proposals < 2:
        raise ConfigurationError(f"proposals must be at least 2, got {proposals}")
    return _sampled(observation, proposals, seed)


def log_posterior(observation: Observation, permutations: Int[np.ndarray, "n tokens"]) -> Float[np.ndarray, " n"]:
    """-|seen - P_left X P_right|² / (2 noise) up to a constant, for the labels of every token in each row.

    Centring X changes nothing: ``left`` is orthogonal to the vector of ones.
    """
    tokens = np.arange(permutations.shape[1])
    agreement = observation.seen[permutations, tokens].sum(axis=1)
    overlap = observation.left[permutations[:, :, None], permutations[:, None, :]] * observation.right
    return np.asarray((agreement - 0.5 * overlap.sum(axis=(1, 2))) / observation.noise)


def _enumerated(observation: Observation) -> Scores:
    v = len(observation.seen)
    every = _every_permutation(v)
    weights = log_posterior(observation, every)
    weights = np.exp(weights - weights.max())
    mean = np.zeros((v, v))
    for token in range(v):
        mean[:, token] = np.bincount(every[:, token], weights=weights, minlength=v)
    return np.asarray(mean / weights.sum())


@functools.cache
def _every_permutation(v: int) -> Int[np.ndarray, "n tokens"]:
    return np.array(list(itertools.permutations(range(v))))


def _sampled(observation: Observation, proposals: int, seed: int) -> Scores:
    """Metropolis swaps of two tokens' labels, annealed over the first half, averaged over the second."""
    v = len(observation.seen)
    generator = stream(seed, "retrieval:posterior")
    labels = generator.permutation(v).astype(np.int64)
    state = np.zeros((v, v))
    state[labels, np.arange(v)] = 1
    residual = np.ascontiguousarray(observation.seen - observation.left @ state @ observation.right)
    kept, since = np.zeros((v, v)), np.zeros(v, np.int64)
    half = proposals // 2
    for start in range(0, proposals, CHUNK):
        stop = min(start + CHUNK, proposals)
        places = np.arange(start, stop)
        heat = HOTTEST ** np.maximum(0.0, 1 - places / half)
        first = generator.integers(0, v, stop - start)
        second = (first + generator.integers(1, v, stop - start)) % v
        bar = np.log(generator.random(stop - start)) * heat * observation.noise
        _swap(first, second, bar, start, half, labels, residual, observation.left, observation.right, kept, since)
    since = np.maximum(since, half)
    kept[labels, np.arange(v)] += proposals - since
    return np.asarray(kept / (proposals - half))


@compiled()
@no_type_check
def _swap(first, second, bar, start, half, labels, residual, left, right, kept, since):
    """Propose swaps; a swap changes X by the rank-one (e_b - e_a)(e_t - e_u)ᵀ, so its gain takes a few look-ups.

    ``kept[y, t]`` counts the proposals from ``half`` on while token t had label y, since ``since[t]``.
    """
    v = labels.shape[0]
    for i in range(first.shape[0]):
        t, u = first[i], second[i]
        a, b = labels[t], labels[u]
        gain = residual[b, t] - residual[a, t] - residual[b, u] + residual[a, u]
        size = (left[a, a] + left[b, b] - 2 * left[a, b]) * (right[t, t] + right[u, u] - 2 * right[t, u])
        if gain - 0.5 * size < bar[i]:
            continue
        now = start + i
        if now > half:
            kept[a, t] += now - max(since[t], half)
            kept[b, u] += now - max(since[u], half)
        since[t], since[u] = now, now
        labels[t], labels[u] = b, a
        for y in range(v):
            step = left[y, b] - left[y, a]
            for k in range(v):
                residual[y, k] -= step * (right[k, t] - right[k, u])
