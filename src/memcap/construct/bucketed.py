"""Exact keyless network over hashed buckets with one neuron per bucket: the bucket selector.

Bucket numbers are read off the tent chain (`packed_index`), the word of a bucket is interpolated by hinges, and every
bucket's hash rows are independent, so that a relabelled network differs in its word weights only.  `packed` is smaller
but rebuilds for new labels.

Source: derived here, docs/theory/exact.md.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from jaxtyping import Int

from memcap.construct.construction import Construction
from memcap.construct.packed import FEW_ITEMS, draw_modulus, patient_warmup
from memcap.construct.packed_index import BUCKET_FACTORS, IndexPlan, place, plan_index
from memcap.construct.residual_writer import Neuron, ResidualWriter
from memcap.construct.tent import safe_warmup
from memcap.construct.word_folds import WordFolds, guard_bits, start_offset, value_cost, words_from_flips
from memcap.construct.word_hash import HashPlan, plan_hash, solve_buckets
from memcap.errors import HashUnlucky
from memcap.exact.network import Network

SEEDS = 24
VARIANTS = 12


def memorise_bucketed(
    keys: Int[np.ndarray, " items"],
    labels: Int[np.ndarray, " items"],
    *,
    label_bits: int,
    seed: int = 0,
    most_values: int | None = None,
) -> Construction:
    """The bucket network of ``keys`` and ``labels`` (each below ``2^label_bits``); see `memorise_exact`.

    The plan depends on the keys and the seed only.  ``most_values`` bounds the hash values per label bit.

    Raises:
        HashUnlucky: when every seed leaves a bucket without independent rows.
    """
    largest, planes = int(keys.max()), label_bits
    ordered = np.sort(keys)
    warmups = [3, safe_warmup(ordered, 16)]
    if len(keys) < FEW_ITEMS:
        warmups.append(patient_warmup(ordered))
    candidates = []
    for odd in BUCKET_FACTORS:
        for twos in range(24):
            buckets = odd << twos
            if buckets > max(2, len(keys)):
                break
            for number in range(SEEDS):
                warmup = warmups[number % len(warmups)]
                modulus = draw_modulus(largest, warmup, seed, number)
                index = plan_index(modulus, odd, twos)
                load = int(np.bincount(place(keys, modulus, warmup, index)[0]).max())
                if most_values is not None and load + 1 > most_values:
                    continue
                cost = 3 * buckets + 7 * len(index.thresholds) + 3 * warmup + value_cost(load, load, planes)
                candidates.append((cost, number, odd, twos, warmup, modulus, load))
            if candidates and 3 * buckets > min(c[0] for c in candidates):
                break
    candidates.sort()
    patient = [c for c in candidates if c[4] == max(warmups)]
    for _, number, odd, twos, warmup, modulus, load in [*candidates[:12], *patient[:4]]:
        index = plan_index(modulus, odd, twos)
        bucket, state = place(keys, modulus, warmup, index)
        order = np.argsort(bucket, kind="stable")
        loads = np.bincount(bucket, minlength=index.buckets)
        starts = np.concatenate([[0], np.cumsum(loads)]).astype(np.int64)
        targets = (1 << planes) - 1 - labels[order].astype(np.int64)
        for values in range(load + 1, min(load + 11, most_values or load + 11) + 1):
            for variant in range(VARIANTS):
                rounds = min(values, max(values // 2, math.ceil(2.2 * math.log2(values + 1)) + 2))
                hashing = plan_hash(index.width, values, rounds, planes, seed, variant)
                flips = np.zeros((index.buckets, planes, values), dtype=np.uint8)
                by_load = np.argsort(-loads, kind="stable").astype(np.int64)
                if solve_buckets(hashing, planes, starts, state[order], targets, flips, by_load, full_rank=True) != -1:
                    continue
                network = _write(hashing, planes, flips, index, largest=largest, warmup=warmup, modulus=modulus)
                structure = {
                    "buckets": index.buckets,
                    "word_bits": values * planes,
                    "label_bits": planes,
                    "tent_rounds": hashing.rounds,
                    "largest_load": load,
                    "mean_load": float(loads.mean()),
                    "warmup": warmup,
                    "modulus": modulus,
                    "hash_modulus": hashing.modulus,
                    "noise_bits": guard_bits(hashing, planes) + 1,
                    "seed_tried": number,
                    "variant": variant,
                }
                return Construction(network, "keyless", "bucket", "exact", structure, relabelable=True)
    raise HashUnlucky(f"no bucket plan of {len(keys)} items has independent hash rows; use another seed")


def _write(
    hashing: HashPlan,
    planes: int,
    flips: np.ndarray,
    index: IndexPlan,
    *,
    largest: int,
    warmup: int,
    modulus: int,
) -> Network:
    unit = 1 << hashing.rounds
    words, half = words_from_flips(flips, guard_bits(hashing, planes))
    writer = ResidualWriter(("u", "J", "v"))
    writer.offset["u"] = unit << warmup
    writer.tents("u", warmup, unit << warmup, modulus)
    writer.digits("u", unit, index.thresholds, [{"J": weight} for weight in index.weights])
    start = start_offset(hashing, planes, unit, 0, half)
    slopes = [b - a for a, b in itertools.pairwise(words)]
    bends = [b - a for a, b in itertools.pairwise([0, *slopes])]
    writer.block(
        "words",
        [Neuron({"J": 1}, -(index.first + i) * unit, {"v": bend}) for i, bend in enumerate(bends)],
    )
    writer.offset["v"] = start
    folds = WordFolds(writer, hashing, planes, unit)
    folds.junk(0, half)
    folds.words()
    return writer.finish(
        largest_key=largest,
        key={"u": 2 * unit << warmup},
        constant={"v": words[0] * unit - start},
        read={"v": 1},
        read_bias=-(unit // 2),
        unit=unit,
    )
