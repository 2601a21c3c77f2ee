"""Sizes, build times and throughput of memories; refuses to report when two evaluators disagree.

Random integer keys of about 2 log2 N bits, uniform labels; seeds are printed.
"""

from __future__ import annotations

import time

import numpy as np

import memcap
from memcap.exact.evaluate import evaluate
from memcap.model.answering import answer
from memcap.model.literal import predict

SEED = 0


def random_items(items: int, classes: int, seed: int = SEED) -> memcap.SequenceData:
    generator = np.random.default_rng(seed)
    keys = np.unique(generator.integers(0, items**2, size=items + items // 50 + 50))
    keys = generator.permutation(keys)[:items]
    return memcap.SequenceData.from_arrays(keys, generator.integers(0, classes, size=items))


def timed(function):
    began = time.perf_counter()
    result = function()
    return result, time.perf_counter() - began


def sizes(items: int) -> None:
    print(f"random keys, N = {items:,}, seed {SEED}")
    print(f"{'weights':8} {'classes':>7} {'parameters':>10} {'depth':>6} {'build s':>8}  selector")
    for weights in ("float64", "float32", "int64", "exact"):
        for classes in (2, 16, 256):
            data = random_items(items, classes)
            memory, seconds = timed(lambda: memcap.build(data, weights=weights))  # noqa: B023
            recall = memory.recall(data)
            if recall.correct != recall.total:
                raise SystemExit(f"refusing to report: {recall}")
            print(
                f"{weights:8} {classes:7} {memory.parameters.nonzero:10,} {memory.network.depth:6} {seconds:8.1f}  "
                f"{memory.header.method}/{memory.header.selector}"
            )


def throughput(items: int, asked: int = 20_000) -> None:
    data = random_items(items, 2)
    memory = memcap.build(data)
    known = data.tokens[:asked, 0]
    unknown = np.random.default_rng(1).integers(0, int(data.tokens.max()), size=asked)
    rows = np.concatenate([known, unknown])
    module = memory.to_module()
    slow, slow_seconds = timed(lambda: predict(module, rows))
    fast, fast_seconds = timed(lambda: answer(memory.network, "float64", rows[:, None], engine="fused"))
    exact, exact_seconds = timed(lambda: evaluate(memory.network, rows))
    if not (np.array_equal(slow, fast) and np.array_equal(slow, exact)):
        raise SystemExit("refusing to report: literal, fused and exact evaluation disagree")
    print(f"throughput at N = {items:,}, 2 classes, one thread, {len(rows):,} known and unknown keys")
    for name, seconds in (("literal", slow_seconds), ("fused", fast_seconds), ("exact", exact_seconds)):
        print(f"  {name:8} {len(rows) / seconds:10,.0f} items/s   {slow_seconds / seconds:6.1f} x literal")


def main() -> None:
    sizes(100_000)
    throughput(100_000)
