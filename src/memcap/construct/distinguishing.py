"""Distinguishing tokens: a few tokens whose counts alone tell all sequences apart (Bondy's theorem, made small).

Partition refinement: tokens are visited by decreasing collision entropy of their counts; a token is accepted when it
splits a group of sequences that are still equal.  Every accepted token splits, so at most N - 1 are needed; real text
needs far fewer.  A reverse pass drops tokens that later ones made useless.

Source: Bondy (1972); order of visits and pruning derived here, docs/theory/tokens.md.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from memcap.errors import DataError
from memcap.random import stream


def count_matrix(symbols_per_row: NDArray[np.int64], symbols: int) -> sp.csc_matrix:
    """Counts of every symbol in every row, sparse (rows x symbols)."""
    rows, length = symbols_per_row.shape
    index = np.repeat(np.arange(rows), length)
    ones = np.ones(rows * length, dtype=np.int64)
    return sp.csc_matrix((ones, (index, symbols_per_row.ravel())), shape=(rows, symbols))


def _collision_entropy(counts: sp.csc_matrix) -> NDArray[np.float64]:
    """-log2 of the chance that two random rows carry the same count, per symbol."""
    rows, symbols = counts.shape
    entropy = np.zeros(symbols)
    for symbol in range(symbols):
        values = counts.data[counts.indptr[symbol] : counts.indptr[symbol + 1]]
        if len(values):
            frequencies = np.bincount(values).astype(np.float64)
            frequencies[0] = rows - len(values)
            entropy[symbol] = -np.log2(np.sum((frequencies / rows) ** 2))
    return entropy


def _refine(counts: sp.csc_matrix, order: NDArray[np.int64]) -> list[int]:
    rows = counts.shape[0]
    group = np.zeros(rows, dtype=np.int64)
    size = [rows]  # rows in every group
    singles = 1 if rows == 1 else 0
    accepted = []
    for symbol in order:
        if singles == rows:
            break
        begin, end = counts.indptr[symbol], counts.indptr[symbol + 1]
        members, values = counts.indices[begin:end], counts.data[begin:end]
        alive = np.array([size[g] > 1 for g in group[members]], dtype=bool)
        if not alive.any():
            continue
        members, values = members[alive], values[alive]
        pairs, inverse, tally = np.unique(
            np.stack([group[members], values]), axis=1, return_inverse=True, return_counts=True
        )
        inverse = inverse.ravel()
        split = False
        taken: dict[int, int] = {}
        targets = np.empty(pairs.shape[1], dtype=np.int64)
        covered: dict[int, int] = {}
        for parent, number in zip(pairs[0], tally, strict=True):
            covered[int(parent)] = covered.get(int(parent), 0) + int(number)
        for place, (parent, number) in enumerate(zip(pairs[0], tally, strict=True)):
            parent, number = int(parent), int(number)
            whole = covered[parent] == size[parent]
            if whole and parent not in taken:  # every row of the group carries it: the first part keeps the number
                targets[place] = parent
                taken[parent] = number
            else:
                targets[place] = len(size)
                size.append(number)
                split = True
                singles += number == 1
        for parent, number in covered.items():
            before = size[parent]
            size[parent] = taken.get(parent, before - number)
            singles += (size[parent] == 1) and before != 1
        group[members] = targets[inverse]
        if split:
            accepted.append(int(symbol))
    if singles != rows:
        raise DataError(f"{rows - singles} sequences are equal as multisets of tokens and cannot be told apart")
    return accepted


def distinguishing_tokens(symbols_per_row: NDArray[np.int64], symbols: int, *, prune: bool = True) -> NDArray[np.int64]:
    """Symbols whose counts tell all rows apart.

    Args:
        symbols_per_row: int64 (rows, length), no two rows equal as multisets.
        symbols: number of symbols.
        prune: run the refinement again in reverse order of acceptance, which drops 8 to 20 per cent.

    Returns:
        int64 (k,), k <= rows - 1.

    Raises:
        DataError: if two rows are equal as multisets.
    """
    counts = count_matrix(symbols_per_row, symbols)
    accepted = _refine(counts, np.argsort(-_collision_entropy(counts), kind="stable"))
    if prune:
        accepted = _refine(counts, np.array(accepted[::-1], dtype=np.int64))
    return np.array(sorted(accepted), dtype=np.int64)


def distinct_values(symbols_per_row: NDArray[np.int64], chosen: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Random positive integers for the chosen symbols, as narrow as still gives distinct sums.

    Raises:
        DataError: if no width up to 40 bits does.
    """
    rows = len(symbols_per_row)
    start = max(4, 2 * int(np.ceil(np.log2(max(rows, 2)))) - 6)
    for bits in range(start, 41):
        for attempt in range(3):
            values = stream(seed, "token-table", bits, attempt).integers(1, 2**bits, size=len(chosen))
            table = np.zeros(int(symbols_per_row.max()) + 1, dtype=np.int64)
            table[chosen] = values
            sums = table[symbols_per_row].sum(axis=1)
            if len(np.unique(sums)) == rows:
                return values
    raise DataError("no random values of up to 40 bits give the sequences distinct sums")
