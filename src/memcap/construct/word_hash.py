"""The hash values of packed words: what each fold of a word is multiplied by, and the GF(2) systems of all buckets.

One label bit: K *kinks*, ``relu(c - u)`` with even c, several per tent round, and ``relu(M - 2u)`` (which also folds u)
last in its round.  More label bits: one value per tent round, ``(u - centre) / 2``, shared by all label bits.
A value e is centred, so that ``|e| <= reach``; its parity is the hash bit, its residue what a flip of the sign changes.
Called by `packed`; `packed_network` writes the neurons.  Derived here: docs/theory/exact.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numba
import numpy as np
from jaxtyping import Int, UInt64

from memcap.construct.tent import choose_prime
from memcap.random import stream

KINK_LOW, KINK_HIGH = 0.12, 0.5
"""Kinks lie at these fractions of the range: lower ones make less noise, too low ones sparse systems."""


@dataclass(frozen=True)
class HashPlan:
    """Hash values f = 0..values-1, in the order of their use.

    Attributes:
        modulus: odd prime M above every remaining state u.
        rounds: tent rounds.
        thresholds: per value: even c for ``relu(c - u)``, 0 for the tent neuron ``relu(M - 2u)``, -1 for the linear
            value read after a tent round.
        centres: per value: what is subtracted; even for kinks and tents, odd for linear values.
        reach: per value: largest magnitude after centring.
    """

    modulus: int
    rounds: int
    thresholds: tuple[int, ...]
    centres: tuple[int, ...]
    reach: tuple[int, ...]

    @property
    def values(self) -> int:
        return len(self.thresholds)


def _even_half(largest: int) -> int:
    half = largest // 2
    return half - half % 2


def kinks_of_rounds(values: int, rounds: int) -> list[int]:
    """How many of ``values - rounds`` kinks each tent round gets: as evenly as possible, later rounds first."""
    kinks = [0] * rounds
    for i in range(values - rounds):
        kinks[rounds - 1 - i % rounds] += 1
    return kinks


def plan_hash(span: int, values: int, rounds: int, planes: int, seed: int, variant: int) -> HashPlan:
    """A hash of states below ``span``: the prime and the kink positions are drawn for (seed, variant)."""
    numbers = stream(seed, "word-hash", variant)
    start = span + 1 + int(numbers.integers(0, max(2, span // 64)))
    modulus = choose_prime(start, rounds=rounds + 2)
    thresholds, centres, reach = [], [], []
    if planes > 1:
        centre = modulus // 2 | 1
        thresholds = [-1] * values
        centres = [centre] * values
        reach = [max(modulus - centre, centre) // 2 + 1] * values
        return HashPlan(modulus, values, tuple(thresholds), tuple(centres), tuple(reach))
    for kinks in kinks_of_rounds(values, rounds):
        strata = (np.arange(kinks) + numbers.random(kinks)) / max(kinks, 1)
        for c in KINK_LOW + (KINK_HIGH - KINK_LOW) * strata:
            thresholds.append(max(2, 2 * int(span * c / 2)))
        thresholds.append(0)
    for c in thresholds:
        largest = c - 1 if c else modulus - 2
        centre = _even_half(largest)
        centres.append(centre)
        reach.append(max(centre, largest - centre))
    return HashPlan(modulus, rounds, tuple(thresholds), tuple(centres), tuple(reach))


@numba.njit(cache=True, nogil=True)
@no_type_check
def _values(u: int, modulus: int, thresholds: np.ndarray, centres: np.ndarray, out: np.ndarray) -> None:
    for f in range(len(thresholds)):
        c = thresholds[f]
        if c > 0:
            out[f] = max(c - u, 0) - centres[f]
        elif c == 0:
            out[f] = max(modulus - 2 * u, 0) - centres[f]
            u = abs(2 * u - modulus)
        else:
            u = abs(2 * u - modulus)
            out[f] = (u - centres[f]) // 2


@numba.njit(cache=True, nogil=True)
@no_type_check
def _parity(x: np.uint64) -> int:
    x ^= x >> np.uint64(32)
    x ^= x >> np.uint64(16)
    x ^= x >> np.uint64(8)
    x ^= x >> np.uint64(4)
    x ^= x >> np.uint64(2)
    x ^= x >> np.uint64(1)
    return int(x & np.uint64(1))


@numba.njit(cache=True, nogil=True)
@no_type_check
def _solve(
    order: np.ndarray,
    starts: np.ndarray,
    state: np.ndarray,
    targets: np.ndarray,
    modulus: int,
    thresholds: np.ndarray,
    centres: np.ndarray,
    planes: int,
    flips: np.ndarray,
    full_rank: bool,
) -> int:
    """Fill ``flips`` (bucket, plane, value); returns the first bucket without a solution, or -1."""
    values = len(thresholds)
    words = (values + 63) // 64
    mask = (1 << (planes + 1)) - 1
    one = np.uint64(1)
    for bucket in order:
        begin, end = starts[bucket], starts[bucket + 1]
        count = end - begin
        tail = (count + 63) // 64
        low = np.empty((count, values), dtype=np.int64)
        rows = np.zeros((count, words + tail), dtype=np.uint64)
        total = np.zeros(count, dtype=np.int64)
        for i in range(count):
            _values(state[begin + i], modulus, thresholds, centres, low[i])
            s = 0
            for f in range(values):
                s += low[i, f] & mask
                if low[i, f] & 1:
                    rows[i, f >> 6] |= one << np.uint64(f & 63)
            total[i] = (s * ((1 << planes) - 1)) & mask
            rows[i, words + (i >> 6)] |= one << np.uint64(i & 63)
        pivots = np.empty(min(count, values), dtype=np.int64)
        rank = 0
        for f in range(values):
            if rank == count:
                break
            w, bit = f >> 6, one << np.uint64(f & 63)
            found = -1
            for i in range(rank, count):
                if rows[i, w] & bit:
                    found = i
                    break
            if found < 0:
                continue
            if found != rank:
                for k in range(words + tail):
                    rows[rank, k], rows[found, k] = rows[found, k], rows[rank, k]
            for i in range(count):
                if i != rank and rows[i, w] & bit:
                    for k in range(w, words + tail):
                        rows[i, k] ^= rows[rank, k]
            pivots[rank] = f
            rank += 1
        if full_rank and rank < count:
            return int(bucket)
        wanted = np.zeros(tail, dtype=np.uint64)
        for plane in range(planes):
            # bit `planes` must be label bit 0 + bit 0; bit k must be label bit k + bit `planes`, known from the start
            wanted[:] = 0
            for i in range(count):
                top = (targets[begin + i] ^ total[i]) & 1
                if plane == planes - 1:
                    goal = top
                else:
                    goal = ((targets[begin + i] >> (plane + 1)) & 1) ^ top
                if goal ^ ((total[i] >> (plane + 1)) & 1):
                    wanted[i >> 6] |= one << np.uint64(i & 63)
            for i in range(count):
                x = np.uint64(0)
                for k in range(tail):
                    x ^= rows[i, words + k] & wanted[k]
                bit_of_row = _parity(x)
                if i < rank:
                    flips[bucket, plane, pivots[i]] = bit_of_row
                elif bit_of_row:
                    return int(bucket)
            for i in range(count):
                change = 0
                for f in range(values):
                    if flips[bucket, plane, f]:
                        change += low[i, f] & mask
                total[i] = (total[i] - (change << (plane + 1))) & mask
        for i in range(count):
            t = total[i] & mask
            if t > (mask >> 1):
                t = mask - t
            if t != targets[begin + i]:
                return -2
    return -1


def solve_buckets(
    plan: HashPlan,
    planes: int,
    starts: Int[np.ndarray, " _"],
    state: Int[np.ndarray, " items"],
    targets: Int[np.ndarray, " items"],
    flips: UInt64[np.ndarray, "..."] | np.ndarray,
    order: Int[np.ndarray, " _"],
    *,
    full_rank: bool = False,
) -> int:
    """Solve the systems of the buckets in ``order``; see `_solve`.

    Args:
        starts: items of bucket j are ``state[starts[j]:starts[j + 1]]``.
        targets: the folded value each item must end at, in [0, 2^planes).
        flips: uint8 (buckets, planes, values), zeroed; 1 where a value enters with a minus sign.
        full_rank: accept a bucket only if it could be solved for any targets.

    Returns:
        the first bucket without a solution, -1 if all are solved, -2 if a solution does not check (a bug).
    """
    thresholds = np.array(plan.thresholds, dtype=np.int64)
    centres = np.array(plan.centres, dtype=np.int64)
    return int(_solve(order, starts, state, targets, plan.modulus, thresholds, centres, planes, flips, full_rank))


@numba.njit(cache=True, nogil=True)
@no_type_check
def _greedy(state: np.ndarray, modulus: int, thresholds: np.ndarray, centres: np.ndarray) -> np.ndarray:
    values = len(thresholds)
    words = (values + 63) // 64
    one = np.uint64(1)
    starts = [0]
    basis = np.zeros((values, words), dtype=np.uint64)
    present = np.zeros(values, dtype=np.bool_)
    row = np.empty(words, dtype=np.uint64)
    low = np.empty(values, dtype=np.int64)
    for i in range(len(state)):
        _values(state[i], modulus, thresholds, centres, low)
        while True:
            row[:] = 0
            for f in range(values):
                if low[f] & 1:
                    row[f >> 6] |= one << np.uint64(f & 63)
            added = False
            for f in range(values):
                if row[f >> 6] & (one << np.uint64(f & 63)):
                    if not present[f]:
                        basis[f] = row
                        present[f] = True
                        added = True
                        break
                    for k in range(f >> 6, words):
                        row[k] ^= basis[f, k]
            if added:
                break
            if starts[-1] == i:  # a row of zeros cannot start a chunk
                return np.zeros(0, dtype=np.int64)
            starts.append(i)
            present[:] = False
    starts.append(len(state))
    return np.array(starts)


def greedy_chunks(plan: HashPlan, state: Int[np.ndarray, " items"]) -> Int[np.ndarray, " _"] | None:
    """Starts of runs of items with independent hash rows, closed by the first dependent item; None if a row is zero."""
    thresholds = np.array(plan.thresholds, dtype=np.int64)
    starts: np.ndarray = _greedy(state, plan.modulus, thresholds, np.array(plan.centres, dtype=np.int64))
    return starts if len(starts) else None
