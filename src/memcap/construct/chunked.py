"""Exact keyless networks over runs of neighbouring keys: the step and the ramp selector.

Sorted keys are cut into chunks whose hash rows are independent over GF(2), so that the structure does not depend on the
labels and a relabelled network differs in its word weights only.  *step*: two neurons per chunk add the difference of
two words between two keys.  *ramp*: one neuron per chunk; the slope of a piecewise linear function is the word, read
as a residue after more folds.

Source: derived here, docs/theory/exact.md; the shape follows Vardi, Yehudai & Shamir (arXiv 2110.03187).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from memcap.construct.construction import Construction
from memcap.construct.packed import draw_modulus
from memcap.construct.packed_index import place, plan_index
from memcap.construct.residual_writer import Neuron, ResidualWriter
from memcap.construct.tent import safe_warmup
from memcap.construct.word_folds import WordFolds, guard_bits, start_offset, words_from_flips
from memcap.construct.word_hash import HashPlan, greedy_chunks, plan_hash, solve_buckets
from memcap.errors import HashUnlucky
from memcap.exact.network import Network

TRIES = 60


def _chunk_values(items: int, per_chunk: float, per_value: float) -> int:
    """Values per word that minimise ``per_chunk items / (values - 1.6) + per_value values``."""
    return max(2, round(math.sqrt(per_chunk * items / per_value) + 1.6))


def _boundaries(keys: Int[np.ndarray, " items"], starts: Int[np.ndarray, " _"]) -> list[int]:
    """A threshold t per later chunk, ``last key before < t <= first key``, with as many trailing zeros as possible."""
    found = []
    for j in starts[1:-1]:
        low, high = int(keys[j - 1]), int(keys[j])
        shift = (low ^ high).bit_length() - 1
        found.append(high >> shift << shift)
    return found


def memorise_chunked(
    keys: Int[np.ndarray, " items"],
    labels: Int[np.ndarray, " items"],
    *,
    label_bits: int,
    selector: str,
    seed: int = 0,
    most_values: int | None = None,
) -> Construction:
    """The step or ramp network of ``keys`` and ``labels`` (each below ``2^label_bits``); see `memorise_exact`.

    Args:
        selector: ``step`` or ``ramp``.
        most_values: bound on hash values per label bit; below it, those that minimise the parameters.

    Raises:
        HashUnlucky: when every seed leaves a chunk without independent rows.
    """
    order = np.argsort(keys, kind="stable")
    keys, labels = keys[order].astype(np.int64), labels[order].astype(np.int64)
    largest, planes = int(keys[-1]), label_bits
    per_value = (6.5 if planes == 1 else 4.0 + 4 * planes) + (3 * planes if selector == "ramp" else 0)
    chosen = _chunk_values(len(keys), 6.0 if selector == "step" else 3.0, per_value)
    chosen = chosen if most_values is None else min(chosen, most_values)
    warmup = safe_warmup(keys, chosen)
    for number in range(TRIES):
        modulus = draw_modulus(largest, warmup, seed, number)
        state = place(keys, modulus, warmup, plan_index(modulus + 1, 1, 0))[1]
        if number and most_values is None:  # few values make zero rows: the next seed gets one more now and then
            chosen += number % 4 == 0
        rounds = min(chosen, max(chosen // 2, math.ceil(2.2 * math.log2(chosen + 1)) + 2))
        hashing = plan_hash(modulus, chosen, rounds, planes, seed, number)
        starts = greedy_chunks(hashing, state)
        if starts is None:
            continue
        chunks = len(starts) - 1
        flips = np.zeros((chunks, planes, chosen), dtype=np.uint8)
        targets = (1 << planes) - 1 - labels
        failed = solve_buckets(hashing, planes, starts, state, targets, flips, np.arange(chunks), full_rank=True)
        assert failed == -1, "chunks of independent rows have a solution"
        words, half = words_from_flips(flips, guard_bits(hashing, planes))
        write = _write_step if selector == "step" else _write_ramp
        network, extra = write(
            hashing, planes, words, half, _boundaries(keys, starts), largest=largest, warmup=warmup, modulus=modulus
        )
        structure = {
            "chunks": chunks,
            "word_bits": chosen * planes,
            "label_bits": planes,
            "tent_rounds": hashing.rounds,
            "fill": len(keys) / (chunks * chosen),
            "warmup": warmup,
            "modulus": modulus,
            "hash_modulus": hashing.modulus,
            "noise_bits": guard_bits(hashing, planes) + 1,
            "seed_tried": number,
            "values": chosen,
        } | extra
        return Construction(network, "keyless", selector, "exact", structure, relabelable=True)
    raise HashUnlucky(f"{TRIES} seeds left a chunk of {chosen} hash bits without independent rows; use another seed")


def _write_step(
    hashing: HashPlan,
    planes: int,
    words: Sequence[int],
    half: int,
    thresholds: Sequence[int],
    *,
    largest: int,
    warmup: int,
    modulus: int,
) -> tuple[Network, dict[str, int]]:
    unit = 1 << (hashing.rounds + warmup)
    writer = ResidualWriter(("u", "v"))
    writer.offset["u"] = unit
    start = start_offset(hashing, planes, unit, 0, half)
    neurons = []
    for j, t in enumerate(thresholds, start=1):
        step = words[j] - words[j - 1]
        neurons.append(Neuron({"u": 1}, -2 * t * unit, {"v": step}))
        neurons.append(Neuron({"u": 1}, -(2 * t + 1) * unit, {"v": -step}))
    writer.block("selector", neurons)
    writer.tents("u", warmup, unit, modulus)
    writer.offset["v"] = start
    folds = WordFolds(writer, hashing, planes, unit)
    folds.junk(0, half)
    folds.words()
    network = writer.finish(
        largest_key=largest,
        key={"u": 2 * unit},
        constant={"v": words[0] * unit - start},
        read={"v": 1},
        read_bias=-(unit // 2),
        unit=unit,
    )
    return network, {}


def _write_ramp(
    hashing: HashPlan,
    planes: int,
    words: Sequence[int],
    half: int,
    thresholds: Sequence[int],
    *,
    largest: int,
    warmup: int,
    modulus: int,
) -> tuple[Network, dict[str, int]]:
    # F(x) = sum_j a_j relu(X - k t_j) with X = k x + 1, k = 2 half: on chunk j it is the slope modulo k, and the slope
    # is +-(half - word), its sign free: chosen to keep F small, for every doubling of F costs a fold
    period = 2 * half
    unit = 1 << hashing.rounds
    points = [0, *thresholds, largest + 1]
    slopes: list[int] = []
    value = low = high = 0
    for j, word in enumerate(words):
        size = half - word
        span = points[j + 1] - points[j]
        slope = min((size, -size), key=lambda s: abs(value + s * span))
        slopes.append(slope)
        value += slope * span
        low, high = min(low, value), max(high, value)
    # F = period * value at the start of a chunk, and value + slope at most one point further
    bottom, top = (low - half) * period, (high + half) * period
    lift = -(bottom // period) * period
    junk = max(1, (-(-(top + lift) // half) - 1).bit_length())
    writer = ResidualWriter(("u", "x", "v"))
    writer.offset["u"] = unit << warmup
    writer.offset["x"] = unit
    start = start_offset(hashing, planes, unit, junk, half)
    before, neurons = 0, []
    for t, slope in zip(points, slopes, strict=False):
        neurons.append(Neuron({"x": 1}, -t * period * unit, {"v": slope - before}))
        before = slope
    writer.block("selector", neurons)
    writer.tents("u", warmup, unit << warmup, modulus)
    writer.offset["v"] = start
    folds = WordFolds(writer, hashing, planes, unit)
    folds.junk(junk, half)
    folds.words()
    network = writer.finish(
        largest_key=largest,
        key={"u": 2 * unit << warmup, "x": period * unit},
        constant={"v": lift * unit - start},
        read={"v": 1},
        read_bias=-(unit // 2),
        unit=unit,
    )
    return network, {"junk_folds": junk}
