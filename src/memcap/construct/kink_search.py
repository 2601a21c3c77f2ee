"""Moves the kinks of a hash until overfull buckets become consistent: local search on single items.

A bucket with more items than hash values has dependent rows; each dependency holds for the labels at hand with
probability 1/2.  Moving one kink across one item of an unsolved bucket draws its dependencies anew and leaves every
bucket alone whose items lie on one side, so the buckets are satisfied one by one where drawing whole hashes would need
all of them at once.  Kinks move by multiples of 4: all other items keep their values modulo 4.  One label bit only.

Called by `packed`.  Derived here: docs/theory/exact.md, "Moving kinks".
"""

from __future__ import annotations

from dataclasses import replace
from typing import no_type_check

import numba
import numpy as np
from jaxtyping import Int

from memcap.construct.word_hash import HashPlan
from memcap.random import stream

HOPELESS = 60
"""Broken dependencies at the start beyond which nothing is tried: some 10 to 20 are expected of random rows."""
TRIAL = 1_000
"""Moves after which half of the broken dependencies must be mended; regular keys share theirs, and never are."""


@numba.njit(cache=True, nogil=True)
@no_type_check
def _violations(
    states: np.ndarray,
    first: int,
    last: int,
    targets: np.ndarray,
    modulus: int,
    thresholds: np.ndarray,
    round_of: np.ndarray,
    rows: np.ndarray,
) -> int:
    """Dependencies among the rows of items first..last-1 that their targets break."""
    values = len(thresholds)
    words = values // 64 + 1
    one = np.uint64(1)
    count = last - first
    for i in range(count):
        total = 0
        for k in range(words):
            rows[i, k] = 0
        for f in range(values):
            u = states[round_of[f], first + i]
            c = thresholds[f]
            e = max(c - u, 0) if c > 0 else max(modulus - 2 * u, 0)
            total += e & 3
            if e & 1:
                rows[i, f >> 6] |= one << np.uint64(f & 63)
        # the folded value is bit 0 xor bit 1 of the sum; bit `values` of a row carries its right-hand side
        if (targets[first + i] ^ total ^ (total >> 1)) & 1:
            rows[i, values >> 6] |= one << np.uint64(values & 63)
    rank = 0
    for f in range(values):
        w, bit = f >> 6, one << np.uint64(f & 63)
        found = -1
        for i in range(rank, count):
            if rows[i, w] & bit:
                found = i
                break
        if found < 0:
            continue
        if found != rank:
            for k in range(w, words):
                rows[rank, k], rows[found, k] = rows[found, k], rows[rank, k]
        for i in range(found + 1, count):
            if rows[i, w] & bit:
                for k in range(w, words):
                    rows[i, k] ^= rows[rank, k]
        rank += 1
    broken = 0
    for i in range(rank, count):
        if rows[i, values >> 6] & (one << np.uint64(values & 63)):
            broken += 1
    return broken


@numba.njit(cache=True, nogil=True)
@no_type_check
def _search(
    states: np.ndarray,
    starts: np.ndarray,
    targets: np.ndarray,
    tight: np.ndarray,
    modulus: int,
    thresholds: np.ndarray,
    round_of: np.ndarray,
    kinks: np.ndarray,
    highest: int,
    moves: int,
    draw: int,
) -> int:
    """Move kinks in place; returns the broken dependencies that are left in the tight buckets."""
    largest = 0
    for b in tight:
        largest = max(largest, starts[b + 1] - starts[b])
    rows = np.zeros((largest, len(thresholds) // 64 + 1), dtype=np.uint64)
    energy = np.zeros(len(tight), dtype=np.int64)
    fresh = np.zeros(len(tight), dtype=np.int64)
    touched = np.zeros(len(tight), dtype=np.bool_)
    total = 0
    for n in range(len(tight)):
        b = tight[n]
        energy[n] = _violations(states, starts[b], starts[b + 1], targets, modulus, thresholds, round_of, rows)
        total += energy[n]
    x = np.uint64(draw | 1)
    at_first = total
    if total > HOPELESS:
        return total
    for move in range(moves):
        if total == 0 or (move == TRIAL and total > max(10, at_first // 2)):
            break
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
        n = int(x >> np.uint64(33)) % len(tight)
        while energy[n] == 0:
            n = (n + 1) % len(tight)
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
        f = kinks[int(x >> np.uint64(34)) % len(kinks)]
        up = (x >> np.uint64(20)) & np.uint64(1)
        c, t = thresholds[f], round_of[f]
        b = tight[n]
        nearest = -1
        for i in range(starts[b], starts[b + 1]):
            u = states[t, i]
            if up and u > c and (nearest < 0 or u < nearest):
                nearest = u
            if not up and u < c and u > nearest:
                nearest = u
        if nearest < 0:
            continue
        if up:
            moved = c + 4 * ((nearest - c) // 4 + 1)
        else:
            moved = c - 4 * ((c - nearest) // 4 + 1)
        if moved < 4 or moved > highest:
            continue
        low, high = min(c, moved), max(c, moved)
        thresholds[f] = moved
        after = total
        open_ = 0  # broken dependencies that buckets not yet looked at could lose
        for m in range(len(tight)):
            touched[m] = m == n
            b = tight[m]
            for i in range(starts[b], starts[b + 1]):
                if low < states[t, i] < high:
                    touched[m] = True
                    break
            if touched[m]:
                open_ += energy[m]
        for m in range(-1, len(tight)):  # its own bucket first, then the fullest: most moves are refused early
            k = n if m < 0 else m
            if not touched[k] or m == n:
                continue
            b = tight[k]
            fresh[k] = _violations(states, starts[b], starts[b + 1], targets, modulus, thresholds, round_of, rows)
            after += fresh[k] - energy[k]
            open_ -= energy[k]
            if after - open_ > total:
                break
        if after <= total:
            total = after
            for m in range(len(tight)):
                if touched[m]:
                    energy[m] = fresh[m]
        else:
            thresholds[f] = c
    return total


def move_kinks(
    plan: HashPlan,
    starts: Int[np.ndarray, " _"],
    state: Int[np.ndarray, " items"],
    targets: Int[np.ndarray, " items"],
    *,
    moves: int,
    margin: int,
    seed: int,
    variant: int,
) -> HashPlan | None:
    """``plan`` with kinks moved so that each bucket of more than ``values - margin`` items is consistent, or None."""
    thresholds = np.array(plan.thresholds, dtype=np.int64)
    rounds = np.cumsum(thresholds == 0) - (thresholds == 0)
    kinks = np.flatnonzero(thresholds > 0)
    loads = np.diff(starts)
    tight = np.argsort(-loads, kind="stable")[: int(np.sum(loads > plan.values - margin))]
    if len(kinks) == 0:
        return None
    states = np.empty((plan.rounds, len(state)), dtype=np.int64)
    states[0] = state
    for t in range(1, plan.rounds):
        states[t] = np.abs(2 * states[t - 1] - plan.modulus)
    draw = int(stream(seed, "kink-moves", variant).integers(1, 2**62))
    highest = max(int(thresholds.max()), 3 * plan.modulus // 5)
    left = (
        _search(states, starts, targets, tight, plan.modulus, thresholds, rounds, kinks, highest, moves, draw)
        if len(tight)
        else 0
    )
    if left:
        return None
    largest = [int(c) - 1 if c else plan.modulus - 2 for c in thresholds]
    centres = [n // 2 - n // 2 % 4 for n in largest]
    reach = [max(c, n - c) for c, n in zip(centres, largest, strict=True)]
    return replace(plan, thresholds=tuple(int(c) for c in thresholds), centres=tuple(centres), reach=tuple(reach))
