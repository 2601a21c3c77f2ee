"""Bucket numbers read off the tent chain without doubling: which thresholds, which digits, how many buckets.

After the warm-up, ``u`` is odd in ``(0, R)``.  An index round folds ``u <- |u - c|`` at an even ``c`` and its bit
``[u < c]`` is added to the bucket number with a weight.  All cells have the same even width; keys of one cell stay
distinct.  With r cells left the fold is after the first ``ceil(r / 2)``: an even r gives two equal halves, an odd r
loses one cell of the upper half, so any ``odd * 2^k`` buckets need ``k + ceil(log2 odd)`` rounds.

Only numbers; `packed_network` writes the neurons.  Derived here: docs/theory/exact.md.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import no_type_check

import numba
import numpy as np
from jaxtyping import Int

from memcap.errors import ConfigurationError


@cache
def _odd_weights(odd: int) -> tuple[tuple[int, ...], int]:
    """Digit weights that number the cells of an odd count contiguously, and the first number."""
    if odd == 1:
        return (), 0
    rounds = []
    left = odd
    while left > 1:
        rounds.append((left + 1) // 2)
        left = (left + 1) // 2
    cells = []
    for cell in range(odd):
        bits, u = [], 2 * cell + 1
        for c in rounds:
            bits.append(int(u < 2 * c))
            u = abs(u - 2 * c)
        cells.append(bits)
    for weights in itertools.product(range(1, odd + 1), repeat=len(rounds)):
        numbers = sorted(sum(w * b for w, b in zip(weights, bits, strict=True)) for bits in cells)
        if numbers == list(range(numbers[0], numbers[0] + odd)):
            return weights, numbers[0]
    raise ConfigurationError(f"no digit weights number {odd} cells without gaps")


BUCKET_FACTORS = (1, 3, 5, 7)
"""Odd factors of bucket counts that are tried; each has contiguous digit weights."""


@dataclass(frozen=True)
class IndexPlan:
    """How a bucket number J in [first, first + buckets) is read from u.

    Attributes:
        buckets: ``odd * 2^k``.
        width: even width of a cell; buckets * width >= the range of u.
        thresholds: even fold positions, one per round.
        weights: what each round's bit adds to J; the first ``log2 group`` ones are 1, 2, 4, ...
        first: smallest J.
    """

    buckets: int
    width: int
    thresholds: tuple[int, ...]
    weights: tuple[int, ...]
    first: int


def plan_index(span: int, odd: int, twos: int) -> IndexPlan:
    """The rounds that split ``(0, span)`` into ``odd * 2^twos`` cells."""
    buckets = odd << twos
    width = -(-span // buckets)
    width += width % 2
    thresholds, weights = [], []
    left = buckets
    for k in range(twos):
        left //= 2
        thresholds.append(left * width)
        weights.append(1 << k)
    digit, first = _odd_weights(odd)
    for weight in digit:
        left = (left + 1) // 2
        thresholds.append(left * width)
        weights.append(weight << twos)
    return IndexPlan(buckets, width, tuple(thresholds), tuple(weights), first << twos)


@numba.njit(cache=True, nogil=True)
@no_type_check
def _chain(
    keys: np.ndarray, modulus: int, rounds: int, thresholds: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    bucket = np.empty(len(keys), dtype=np.int64)
    state = np.empty(len(keys), dtype=np.int64)
    for i in range(len(keys)):
        u = 2 * keys[i] + 1
        for _ in range(rounds):
            u = abs(2 * u - modulus)
        j = 0
        for k in range(len(thresholds)):
            if u < thresholds[k]:
                j += weights[k]
            u = abs(u - thresholds[k])
        bucket[i] = j
        state[i] = u
    return bucket, state


def place(
    keys: Int[np.ndarray, " items"], modulus: int, warmup: int, plan: IndexPlan
) -> tuple[Int[np.ndarray, " items"], Int[np.ndarray, " items"]]:
    """Bucket number (from 0) and remaining odd state of every key."""
    thresholds = np.array(plan.thresholds, dtype=np.int64)
    weights = np.array(plan.weights, dtype=np.int64)
    bucket, state = _chain(keys, modulus, warmup, thresholds, weights)
    return bucket - plan.first, state
