"""Compiled passes over the samples of a source: regenerate a sequence, use it, forget it.

Each kernel reads a packed source and a range of samples, and adds to arrays it is given.  The informative token is at
position 0.  The plain counterparts are ``philox``, ``streams.draw`` and ``closed_form``; tests tie each kernel to them.
Kernels with a ``table`` (labels × tokens) have a twin that sums embeddings by label: O(N L d) time, O(V d) memory.

All compiled code stands in this one file on purpose: the compiler's cache notices a change of a kernel's own file only.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numba
import numpy as np
from jaxtyping import Int

from memcap.retrieval.philox import M0, M1, W0, W1
from memcap.retrieval.streams import Source

_LOW, _HALF, _ZERO = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(0)
_M0, _M1, _W0, _W1 = np.uint64(M0), np.uint64(M1), np.uint64(W0), np.uint64(W1)


def compiled(**options: Any) -> Any:
    """``numba.njit`` without the interpreter lock, cached on disk where a place for the cache can be written."""

    def decorate(function: Any) -> Any:
        try:
            return numba.njit(nogil=True, cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache function" not in str(error):
                raise
            return numba.njit(nogil=True, **options)(function)

    return decorate


def pack(source: Source) -> tuple[Any, ...]:
    """A source as the flat tuple that kernels read."""
    key = tuple(np.uint64(word) for word in (*source.key, *source.noise_key))
    noise, vocabulary = np.uint64(source.noise), np.uint64(source.vocabulary)
    frozen = (source.thresholds, source.permutation, source.tokens, source.labels)
    return (*key, noise, vocabulary, np.int64(source.length), *frozen, np.int64(source.fact))


def materialise(source: Source, start: int, stop: int) -> tuple[Int[np.ndarray, "n length"], Int[np.ndarray, " n"]]:
    """Tokens (n, L) in canonical order and labels (n,) of samples ``start`` … ``stop``."""
    return materialise_rows(source, np.arange(start, stop))


def materialise_rows(
    source: Source, rows: Int[np.ndarray, " n"]
) -> tuple[Int[np.ndarray, "n length"], Int[np.ndarray, " n"]]:
    """Tokens (n, L) in canonical order and labels (n,) of the samples with these numbers."""
    tokens = np.empty((len(rows), source.length), np.int64)
    labels = np.empty(len(rows), np.int64)
    fill(pack(source), rows, tokens, labels)
    return tokens, labels


@compiled(inline="always")
@no_type_check
def philox_words(c0, c1, c2, c3, k0, k1):
    """Compiled: four words (as uint64 below 2^32) for one counter; every argument a uint64 below 2^32."""
    for _ in range(10):
        first = _M0 * c0
        second = _M1 * c2
        c0, c1, c2, c3 = (second >> _HALF) ^ c1 ^ k0, second & _LOW, (first >> _HALF) ^ c3 ^ k1, first & _LOW
        k0 = (k0 + _W0) & _LOW
        k1 = (k1 + _W1) & _LOW
    return c0, c1, c2, c3


@compiled()
@no_type_check
def read(packed, sample, row):
    """Write the tokens of one sample to ``row`` (length rounded up to 4) and return the label of the fact asked for.

    The fact's token is swapped to position 0.
    """
    k0, k1, n0, n1, noise, vocabulary, length, thresholds, permutation, tokens, labels, fact = packed
    if tokens.shape[0]:
        row[:length] = tokens[sample]
        row[0], row[fact] = row[fact], row[0]
        return labels[sample, fact]
    low, high = np.uint64(sample) & _LOW, np.uint64(sample) >> _HALF
    for block in range(row.shape[0] // 4):
        w0, w1, w2, w3 = philox_words(low, high, np.uint64(block), _ZERO, k0, k1)
        row[4 * block] = (w0 * vocabulary) >> _HALF
        row[4 * block + 1] = (w1 * vocabulary) >> _HALF
        row[4 * block + 2] = (w2 * vocabulary) >> _HALF
        row[4 * block + 3] = (w3 * vocabulary) >> _HALF
        if thresholds.shape[0]:
            words = (w0, w1, w2, w3)
            for j in range(4):
                row[4 * block + j] = np.searchsorted(thresholds, words[j], side="right")
    row[0], row[fact] = row[fact], row[0]
    label = permutation[row[0]]
    if noise:
        coin, other, _, _ = philox_words(low, high, np.uint64(fact), _ZERO, n0, n1)
        if coin < noise:
            label = np.int64((other * vocabulary) >> _HALF)
    return label


@compiled()
@no_type_check
def empty_row(packed):
    """Room for one sequence."""
    return np.empty(4 * ((packed[6] + 3) // 4), np.int32)


@compiled()
@no_type_check
def fill(packed, samples, tokens, labels):
    """Materialise samples."""
    row, length = empty_row(packed), packed[6]
    for i in range(samples.shape[0]):
        labels[i] = read(packed, samples[i], row)
        tokens[i] = row[:length]


@compiled()
@no_type_check
def count_pairs(packed, start, stop, table, seen, label_counts):
    """table[y, t] += occurrences of token t under label y; seen[t] += 1 if informative; label_counts[y] += 1."""
    row, length = empty_row(packed), packed[6]
    for sample in range(start, stop):
        label = read(packed, sample, row)
        seen[row[0]] += 1
        label_counts[label] += 1
        for j in range(length):
            table[label, row[j]] += 1


@compiled()
@no_type_check
def gains_from_table(packed, start, stop, table, marked_gain, alpha):
    """alpha[t] += r_ij - mean_j r_ij over x_ij = t, with r_ij = table[y_i, x_ij]; returns the sum at position 0."""
    row, length, total = empty_row(packed), packed[6], 0.0
    for sample in range(start, stop):
        label = read(packed, sample, row)
        mean = marked_gain[label]
        for j in range(length):
            mean += table[label, row[j]]
        mean /= length
        own = table[label, row[0]] + marked_gain[label] - mean
        total += own
        alpha[row[0]] += own
        for j in range(1, length):
            alpha[row[j]] += table[label, row[j]] - mean
    return total


@compiled()
@no_type_check
def count_winners(packed, start, stop, rank, rank_marked, table, won):
    """Hard attention: table[y, winning token] += 1, won[y] += 1 when the informative position wins.

    The first position with the largest rank wins.
    """
    row, length = empty_row(packed), packed[6]
    for sample in range(start, stop):
        label = read(packed, sample, row)
        best, where = rank_marked[row[0]], 0
        for j in range(1, length):
            if rank[row[j]] > best:
                best, where = rank[row[j]], j
        table[label, row[where]] += 1
        if where == 0:
            won[label] += 1


@compiled()
@no_type_check
def attention_of(row, length, weight, weight_marked, score, score_marked, out):
    """Softmax weights of one sequence into ``out``; redone with its own maximum if the shared one underflows."""
    total = weight_marked[row[0]]
    out[0] = total
    for j in range(1, length):
        out[j] = weight[row[j]]
        total += out[j]
    if total < 1e-250:
        top = score_marked[row[0]]
        for j in range(1, length):
            top = max(top, score[row[j]])
        out[0] = np.exp(score_marked[row[0]] - top)
        total = out[0]
        for j in range(1, length):
            out[j] = np.exp(score[row[j]] - top)
            total += out[j]
    for j in range(length):
        out[j] /= total


@compiled()
@no_type_check
def weigh_pairs(packed, start, stop, weight, weight_marked, score, score_marked, table, won):
    """Soft attention: table[y, t] += attention on token t, won[y] += attention on the informative position."""
    row, length = empty_row(packed), packed[6]
    attention = np.empty(length)
    for sample in range(start, stop):
        label = read(packed, sample, row)
        attention_of(row, length, weight, weight_marked, score, score_marked, attention)
        won[label] += attention[0]
        for j in range(length):
            table[label, row[j]] += attention[j]


@compiled()
@no_type_check
def sum_embeddings(packed, start, stop, embeddings, sums, seen, label_counts):
    """sums[y] += Σ_j z[x_ij]; seen[t] += 1 if informative; label_counts[y] += 1."""
    row, length = empty_row(packed), packed[6]
    for sample in range(start, stop):
        label = read(packed, sample, row)
        seen[row[0]] += 1
        label_counts[label] += 1
        for j in range(length):
            token = row[j]
            for k in range(embeddings.shape[1]):
                sums[label, k] += embeddings[token, k]


@compiled(fastmath={"reassoc", "contract"})
@no_type_check
def gains_from_vectors(packed, start, stop, embeddings, vectors, marked_gain, alpha):
    """As ``gains_from_table`` with r_ij = vectors[y_i] · z[x_ij]."""
    row, length, total = empty_row(packed), packed[6], 0.0
    gains = np.empty(length)
    for sample in range(start, stop):
        label = read(packed, sample, row)
        mean = 0.0
        for j in range(length):
            token, gain = row[j], 0.0
            for k in range(embeddings.shape[1]):
                gain += vectors[label, k] * embeddings[token, k]
            gains[j] = gain
        gains[0] += marked_gain[label]
        for j in range(length):
            mean += gains[j]
        mean /= length
        total += gains[0] - mean
        for j in range(length):
            alpha[row[j]] += gains[j] - mean
    return total


@compiled()
@no_type_check
def sum_winners(packed, start, stop, embeddings, rank, rank_marked, sums, won):
    """Hard attention: sums[y] += z[winning token], won[y] += 1 when the informative position wins."""
    row, length = empty_row(packed), packed[6]
    for sample in range(start, stop):
        label = read(packed, sample, row)
        best, where = rank_marked[row[0]], 0
        for j in range(1, length):
            if rank[row[j]] > best:
                best, where = rank[row[j]], j
        if where == 0:
            won[label] += 1
        token = row[where]
        for k in range(embeddings.shape[1]):
            sums[label, k] += embeddings[token, k]


@compiled()
@no_type_check
def sum_weighted(packed, start, stop, embeddings, weight, weight_marked, score, score_marked, sums, won):
    """Soft attention: sums[y] += Σ_j a_ij z[x_ij], won[y] += attention on the informative position."""
    row, length = empty_row(packed), packed[6]
    attention = np.empty(length)
    for sample in range(start, stop):
        label = read(packed, sample, row)
        attention_of(row, length, weight, weight_marked, score, score_marked, attention)
        won[label] += attention[0]
        for j in range(length):
            token = row[j]
            for k in range(embeddings.shape[1]):
                sums[label, k] += attention[j] * embeddings[token, k]
