"""Packed buckets with exact integers: the smallest memory of integer keys found so far.

Keys fall into buckets by a hash; each bucket has one word, a solution of the GF(2) system that its items pose; a
word is read by folding it while hash values are added, so that signs, and with them the label, depend on word and key.
This file searches for the plan (bucket count, seed, bits, group size) and calls the writer; `word_hash` solves,
`packed_network` writes.

Source: derived here, docs/theory/exact.md; the retrieval idea is that of static functions (Bloomier filters).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from memcap.construct.construction import Construction
from memcap.construct.kink_search import move_kinks
from memcap.construct.packed_index import BUCKET_FACTORS, place, plan_index
from memcap.construct.packed_network import PackedPlan, hinge_cost, write
from memcap.construct.tent import choose_prime, safe_warmup
from memcap.construct.word_folds import value_cost
from memcap.construct.word_hash import plan_hash, solve_buckets
from memcap.errors import ConfigurationError, HashUnlucky
from memcap.random import stream

GROUPS = (2, 4, 8, 16, 32, 64)
SEARCHED = (200, 30_000)
"""Item counts at which kinks are moved (`kink_search`); beyond, moves take longer than the saved bits are worth."""
SEARCH_LUCK = 19.0
FEW_ITEMS = 200
MOST_BUCKETS = 8
"""Buckets per item, at most, when the hash values per word are limited."""
LIMITED_SEEDS = 24
PROBES = 6
"""Seeds tried with every warm-up; the others go to the warm-up that did best."""
SEARCH_MOVES = 8_000


@dataclass(frozen=True)
class _Layout:
    """A bucket count, and how the buckets are read."""

    odd: int
    twos: int
    group: int
    index_rounds: int

    @property
    def buckets(self) -> int:
        return self.odd << self.twos

    @property
    def cost(self) -> int:
        return hinge_cost(self.group) + self.buckets // self.group * (self.group + 1) + 7 * self.index_rounds


@dataclass(frozen=True)
class _Candidate:
    """A layout with a seed's loads."""

    layout: _Layout
    warmup: int
    seed: int
    modulus: int
    values: int
    rounds: int
    estimate: int


def _layouts(items: int, planes: int, most_values: int | None) -> list[_Layout]:
    """Bucket counts around the optimum, each with its cheapest group size."""
    per_bit = 6.2 if planes == 1 else (4 + 4 / planes)
    found = []
    for odd in BUCKET_FACTORS:
        for twos in range(1, 24):
            buckets = odd << twos
            mean = items / buckets
            high = mean + 2.6 * math.sqrt(mean)
            if buckets > max(4, 2 * items if most_values is None else MOST_BUCKETS * items):
                break
            if most_values is not None and mean + math.sqrt(mean) > most_values:
                continue
            rounds = len(plan_index(2 * buckets, odd, twos).thresholds)
            options = [_Layout(odd, twos, g, rounds) for g in GROUPS if int(math.log2(g)) <= twos]
            layout = min(options, key=lambda o: o.cost)
            found.append((layout.cost + per_bit * planes * high, layout))
    best = min((cost for cost, _ in found), default=0.0)
    # under a limit the cheapest bucket counts may all have a bucket that is too full
    most = 1.06 * best + 10 if most_values is None else 3 * best + 40
    return [layout for cost, layout in sorted(found, key=lambda f: f[0]) if cost < most]


def _values_needed(loads: Int[np.ndarray, " buckets"], luck: float) -> int:
    """Fewest values for which all systems are solvable with probability about ``2^-luck``.

    A bucket with e more items than values is consistent with probability about ``2^-(e + 0.7)``; with d fewer, it loses
    about ``0.7 * 2^-d`` bits.
    """
    counts = np.bincount(loads)
    sizes = np.arange(len(counts))
    values = int(sizes[-1])
    while values > 1:
        excess = sizes - (values - 1)
        bits = np.where(excess >= 0, excess + 0.7, 0.7 * np.exp2(np.minimum(excess, 0)))
        if float((counts * bits).sum()) > luck:
            break
        values -= 1
    return values


def _rounds(values: int, planes: int) -> list[int]:
    """Tent rounds worth trying: fewer make systems that are solvable more rarely."""
    if planes > 1:
        return [values]
    fewest = min(values, math.ceil(2.2 * math.log2(values + 1)) + 2)
    return sorted({fewest, min(values, math.ceil(1.4 * fewest)), min(values, 2 * fewest), values})


def _noise_folds(span: int, values: int, rounds: int, planes: int) -> int:
    if planes > 1:
        reach = values * (span / 4)
    else:
        reach = rounds * span / 2 + (values - rounds) * span * 0.155
    return math.ceil(math.log2(reach * ((1 << planes) - 1) + 2)) - planes + 1


def _seeds(items: int) -> int:
    return int(np.clip(12_000_000 // items, 24, min(600, 24 + items // 2)))


def _candidates(
    keys: Int[np.ndarray, " items"], planes: int, seed: int, luck: float, most_values: int | None
) -> Iterator[_Candidate]:
    warmups = _warmups(keys)
    for layout in _layouts(len(keys), planes, most_values):
        found: dict[int, list[_Candidate]] = {}
        for warmup in warmups:
            found[warmup] = list(_seeded(keys, layout, warmup, planes, range(PROBES), seed, luck, most_values))
        best = min(warmups, key=lambda w: min((c.estimate for c in found[w]), default=1 << 62))
        seeds = _seeds(len(keys)) // len(warmups)
        more = range(PROBES, seeds if most_values is None else min(seeds, LIMITED_SEEDS))
        yield from itertools.chain(*found.values())
        yield from _seeded(keys, layout, best, planes, more, seed, luck, most_values)


def _seeded(
    keys: Int[np.ndarray, " items"],
    layout: _Layout,
    warmup: int,
    planes: int,
    numbers: range,
    seed: int,
    luck: float,
    most_values: int | None,
) -> Iterator[_Candidate]:
    largest = int(keys.max())
    for number in numbers:
        modulus = draw_modulus(largest, warmup, seed, number)
        index = plan_index(modulus, layout.odd, layout.twos)
        bucket, _ = place(keys, modulus, warmup, index)
        values = max(1, _values_needed(np.bincount(bucket, minlength=layout.buckets), luck))
        if most_values is not None and values > most_values:
            continue
        for rounds in _rounds(values, planes):
            noise = _noise_folds(index.width, values, rounds, planes)
            estimate = layout.cost + 3 * warmup + value_cost(values, rounds, planes) + 3 * noise
            yield _Candidate(layout, warmup, number, modulus, values, rounds, estimate)


def draw_modulus(largest: int, warmup: int, seed: int, number: int) -> int:
    """A tent prime above twice the largest key; not the next one, which may hug a power of two and repeat itself."""
    low = 2 * largest + 2
    offset = int(stream(seed, "packed-modulus", number).integers(0, max(2, low // 16)))
    return choose_prime(low + offset, rounds=warmup)


def _warmups(keys: Int[np.ndarray, " items"]) -> tuple[int, ...]:
    ordered = np.sort(keys)
    safe = safe_warmup(ordered, 16)
    if len(keys) < FEW_ITEMS:
        return tuple(sorted({0, 3, 8, safe, safe_warmup(ordered, 1), patient_warmup(ordered)}))
    return tuple(sorted({0, 3, 8, safe} if len(keys) < 200_000 else {0, safe}))


def patient_warmup(ordered: Int[np.ndarray, " items"]) -> int:
    """Rounds that part even neighbours, and move every key away from the tent's fixed points."""
    return int(ordered[-1]).bit_length() + 8


def memorise_packed(
    keys: Int[np.ndarray, " items"],
    labels: Int[np.ndarray, " items"],
    *,
    label_bits: int,
    seed: int = 0,
    effort: int = 64,
    most_values: int | None = None,
    moves: int = SEARCH_MOVES,
) -> Construction:
    """The packed network of ``keys`` and ``labels`` (each below ``2^label_bits``); see `memorise_exact`.

    Args:
        effort: hash variants tried per plan; the search expects to need about ``log2 effort`` bits of luck.
        most_values: bound on hash values per label bit (a bound on depth and on weight bits).
        moves: kink moves per hash variant (`kink_search`); more find slightly smaller networks.

    Raises:
        ConfigurationError: when no plan keeps ``most_values``.
        HashUnlucky: when no plan has a solution.
    """
    if most_values is None and label_bits == 1 and SEARCHED[0] <= len(keys) <= SEARCHED[1]:
        made = _searched(keys, labels, seed, moves)
        if made is not None:
            return made
    luck = math.log2(effort) if most_values is None else 0.5  # under a limit there are no values to spare
    candidates = sorted(_candidates(keys, label_bits, seed, luck, most_values), key=lambda c: (c.estimate, c.seed))
    tried = 0
    # a pair of neighbours in a wide range needs many rounds to part: the last resort is the longest warm-up
    longest = max((c.warmup for c in candidates), default=0)
    patient = [c for c in candidates if c.warmup == longest]
    passes = [(candidates[: min(64, 4 + len(keys) // 16)], 0)]
    passes += [(some[:4], extra) for some in (candidates, patient) for extra in (1, 2, 4, 8, 16)]
    for some, extra in passes:
        for candidate in some:
            wider = replace(candidate, values=candidate.values + extra)
            if extra:  # the plans that looked best failed: more values, and independent ones
                wider = replace(wider, rounds=wider.values)
            if most_values is not None and wider.values > most_values:
                continue
            made, tries = _attempt(wider, keys, labels, label_bits, seed, min(2 * effort, 8 + len(keys)))
            tried += tries
            if made is not None:
                return replace(made, structure=made.structure | {"tries": tried})
    if not candidates:
        raise ConfigurationError(
            f"no packed plan of {len(keys)} items has at most {most_values} hash values per label bit"
        )
    raise HashUnlucky(f"no packed plan of {len(keys)} items has a solution after {tried} tries; use another seed")


def _searched(
    keys: Int[np.ndarray, " items"], labels: Int[np.ndarray, " items"], seed: int, moves: int
) -> Construction | None:
    """A plan with fewer values than the fullest bucket has items, its kinks moved until all buckets are consistent."""
    candidates = _candidates(keys, 1, seed, SEARCH_LUCK, None)
    for candidate in sorted(candidates, key=lambda c: (c.estimate, c.seed))[:8]:
        made, tries = _attempt(candidate, keys, labels, 1, seed, 3, moves=moves)
        if made is not None:
            return replace(made, structure=made.structure | {"tries": tries})
    return None


def _attempt(
    candidate: _Candidate,
    keys: Int[np.ndarray, " items"],
    labels: Int[np.ndarray, " items"],
    label_bits: int,
    seed: int,
    variants: int,
    moves: int = 0,
) -> tuple[Construction | None, int]:
    """The network of a candidate by the first hash variant whose systems are all solvable, and the variants tried."""
    layout = candidate.layout
    index = plan_index(candidate.modulus, layout.odd, layout.twos)
    bucket, state = place(keys, candidate.modulus, candidate.warmup, index)
    items = np.argsort(bucket, kind="stable")
    loads = np.bincount(bucket, minlength=layout.buckets)
    starts = np.concatenate([[0], np.cumsum(loads)]).astype(np.int64)
    order = np.argsort(-loads, kind="stable").astype(np.int64)
    targets = ((1 << label_bits) - 1 - labels)[items].astype(np.int64)
    for variant in range(variants):
        hashing = plan_hash(index.width, candidate.values, candidate.rounds, label_bits, seed, variant)
        if moves:
            moved = move_kinks(
                hashing, starts, state[items], targets, moves=moves, margin=6, seed=seed, variant=variant
            )
            if moved is None:
                continue
            hashing = moved
        flips = np.zeros((layout.buckets, label_bits, candidate.values), dtype=np.uint8)
        failed = solve_buckets(hashing, label_bits, starts, state[items], targets, flips, order)
        assert failed != -2, "a solved bucket does not give its labels"
        if failed == -1:
            plan = PackedPlan(
                int(keys.max()), candidate.modulus, candidate.warmup, index, layout.group, hashing, label_bits
            )
            return _construction(plan, flips, candidate, variant, loads), variant + 1
    return None, variants


def _construction(
    plan: PackedPlan,
    flips: np.ndarray,
    candidate: _Candidate,
    variant: int,
    loads: Int[np.ndarray, " buckets"],
) -> Construction:
    network, folds = write(plan, flips)
    structure = {
        "buckets": candidate.layout.buckets,
        "group": candidate.layout.group,
        "word_bits": plan.word_bits,
        "label_bits": plan.planes,
        "tent_rounds": candidate.rounds,
        "largest_load": int(loads.max()),
        "mean_load": float(loads.mean()),
        "warmup": candidate.warmup,
        "modulus": candidate.modulus,
        "hash_modulus": plan.hash.modulus,
        "noise_bits": plan.guard + 1,
        "seed_tried": candidate.seed,
        "variant": variant,
    } | folds
    return Construction(network, "keyless", "packed", "exact", structure, relabelable=False)
