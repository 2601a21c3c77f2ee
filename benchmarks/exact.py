"""Exact memories of random keys: parameters, build time, and grouped against generic evaluation.

Keys have 2 log2 N bits.  Seconds are processor seconds of one thread.  The grouped evaluator takes all items, the
generic one a sample; the ratio is of items a second in the same run.  Refuses to report when they disagree with each
other or with the labels.  ``MEMCAP_EXACT_LARGE=1`` adds a million items (minutes).
"""

from __future__ import annotations

import os
import time

import numpy as np

from memcap.construct.packed import memorise_packed
from memcap.exact.counts import count
from memcap.exact.evaluate import evaluate
from memcap.exact.grouped import evaluate_grouped

CASES = ((1_000, 1), (10_000, 1), (10_000, 4), (100_000, 1))
LARGE = ((100_000, 8), (1_000_000, 1))
SAMPLE = 1_000


def items(number: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.random.default_rng(number)
    keys = np.unique(numbers.integers(0, number * number, 2 * number))
    numbers.shuffle(keys)
    return keys[:number], numbers.integers(0, 1 << bits, number)


def timed(function):
    began = time.process_time()
    result = function()
    return result, time.process_time() - began


def main() -> None:
    memorise_packed(*items(300, 1), label_bits=1)  # load compiled code outside the timing
    heads = "parameters", "build s", "grouped/s", "generic/s", "ratio"
    print(f"{'items':>9} {'classes':>7} {heads[0]:>10} {heads[1]:>8} {heads[2]:>10} {heads[3]:>10} {heads[4]:>6}")
    for number, bits in CASES + (LARGE if os.environ.get("MEMCAP_EXACT_LARGE") else ()):
        keys, labels = items(number, bits)
        made, build = timed(lambda keys=keys, labels=labels, bits=bits: memorise_packed(keys, labels, label_bits=bits))
        network = made.network
        answers, fast = timed(lambda network=network, keys=keys: evaluate_grouped(network, keys))
        sample = min(SAMPLE, number)
        checked, slow = timed(lambda network=network, keys=keys, n=sample: evaluate(network, keys[:n]))
        wrong, apart = int((answers != labels).sum()), int((answers[:sample] != checked).sum())
        if wrong or apart:
            raise SystemExit(f"refusing to report: {wrong} items not recalled, {apart} answered in two ways")
        grouped, generic = number / fast, sample / slow
        print(
            f"{number:9,} {1 << bits:7} {count(network).nonzero:10,} {build:8.1f} {grouped:10,.0f} {generic:10,.0f} "
            f"{grouped / generic:6.1f}"
        )
