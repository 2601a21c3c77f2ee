"""The echelon basis of `gf2` on packed machine words, compiled: the same rows, the same solutions.

Rows here are sparse in one way only: every item has the same up to 64 hash bits at one offset per table.
Called by `hash_tables`; tests tie it to `gf2.Basis`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numba
import numpy as np
from jaxtyping import Bool, Int, UInt64


@dataclass
class PackedBasis:
    """Independent rows in echelon form.

    Attributes:
        rows: reduced rows, bit c of word w is unknown 64 w + c, (items, words).
        masks: which given rows each reduced row is the sum of, (items, mask words).
        pivots: item whose reduced row has its top bit at an unknown, or -1, (unknowns,).
    """

    rows: UInt64[np.ndarray, "items words"]
    masks: UInt64[np.ndarray, "items mask_words"]
    pivots: Int[np.ndarray, " unknowns"]

    def solve(self, rhs: Bool[np.ndarray, " items"]) -> UInt64[np.ndarray, " words"]:
        """The unknowns with ``parity(row_i & z) = rhs_i``; free unknowns are 0."""
        padded = np.zeros(self.masks.shape[1] * 8, dtype=np.uint8)
        packed = np.packbits(rhs, bitorder="little")
        padded[: len(packed)] = packed
        z = np.zeros(self.rows.shape[1], dtype=np.uint64)
        _solve(self.rows, self.masks, self.pivots, padded.view(np.uint64), z)
        return z


def packed_basis(
    beta: UInt64[np.ndarray, " items"], offsets: Int[np.ndarray, "tables items"], unknowns: int
) -> PackedBasis | None:
    """The basis of rows ``sum_t beta_i << offsets[t, i]`` (offset -1: no such term), or None if they are dependent."""
    items = len(beta)
    rows = np.zeros((items, unknowns // 64 + 2), dtype=np.uint64)  # one word more: a term may straddle the end
    masks = np.zeros((items, max(1, (items + 63) // 64)), dtype=np.uint64)
    pivots = np.full(unknowns, -1, dtype=np.int64)
    rank = _eliminate(beta, offsets, rows, masks, pivots)
    return PackedBasis(rows, masks, pivots) if rank == items else None


def rank_of(beta: UInt64[np.ndarray, " items"]) -> int:
    """Rank of the matrix whose rows are the bits of ``beta``."""
    return int(_rank(beta))


@numba.njit(cache=True, nogil=True)
@no_type_check
def _top_bit(x):
    top = 0
    for step in (32, 16, 8, 4, 2, 1):
        if x >> np.uint64(step):
            x = x >> np.uint64(step)
            top += step
    return top


@numba.njit(cache=True, nogil=True)
@no_type_check
def _rank(beta):
    by_top = np.zeros(64, dtype=np.uint64)
    rank = 0
    for row in beta:
        while row:
            top = _top_bit(row)
            if by_top[top] == 0:
                by_top[top] = row
                rank += 1
                break
            row ^= by_top[top]
    return rank


@numba.njit(cache=True, nogil=True)
@no_type_check
def _eliminate(beta, offsets, rows, masks, pivots):
    """Fills rows, masks, pivots; returns the number of independent rows before the first dependent one."""
    words = rows.shape[1]
    for i in range(beta.shape[0]):
        row, mask = rows[i], masks[i]
        for t in range(offsets.shape[0]):
            at = offsets[t, i]
            if at >= 0:
                word, bit = at // 64, at % 64
                row[word] ^= beta[i] << np.uint64(bit)
                if bit:
                    row[word + 1] ^= beta[i] >> np.uint64(64 - bit)
        mask[i // 64] = np.uint64(1) << np.uint64(i % 64)
        used = i // 64 + 1
        found = False
        for w in range(words - 1, -1, -1):
            while row[w]:
                column = 64 * w + _top_bit(row[w])
                other = pivots[column]
                if other < 0:
                    pivots[column] = i
                    found = True
                    break
                for k in range(w + 1):
                    row[k] ^= rows[other, k]
                for k in range(used):
                    mask[k] ^= masks[other, k]
            if found:
                break
        if not found:
            return i
    return beta.shape[0]


@numba.njit(cache=True, nogil=True)
@no_type_check
def _solve(rows, masks, pivots, rhs, z):
    for column in range(pivots.shape[0]):  # ascending: lower unknowns of a row are known when its top one is set
        i = pivots[column]
        if i < 0:
            continue
        fold = np.uint64(0)
        for k in range(i // 64 + 1):
            fold ^= masks[i, k] & rhs[k]
        for k in range(column // 64 + 1):
            fold ^= rows[i, k] & z[k]
        for step in (32, 16, 8, 4, 2, 1):
            fold ^= fold >> np.uint64(step)
        if fold & np.uint64(1):
            z[column // 64] |= np.uint64(1) << np.uint64(column % 64)
