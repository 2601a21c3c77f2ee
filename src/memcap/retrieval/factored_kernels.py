"""Compiled passes that never hold a V × V table: sums of embeddings by label, O(N L d) time and O(V d) memory.

The counterparts with tables are in ``token_kernels``; tests tie the two.
"""

from __future__ import annotations

from typing import no_type_check

import numba
import numpy as np

from memcap.retrieval.token_kernels import attention_of, empty_row, read


@numba.njit(cache=True, nogil=True)
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


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
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


@numba.njit(cache=True, nogil=True)
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


@numba.njit(cache=True, nogil=True)
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
