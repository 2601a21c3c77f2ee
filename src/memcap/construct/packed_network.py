"""Writes the network of packed buckets, and its parameter count before it is written.

Stages: ``warm-up`` (tent rounds), ``index`` (bucket digits), ``words`` (hinges and pieces), ``junk`` (folds that take
the residue), ``word`` (one fold per bit, each after its hash value is added), ``noise`` (folds that leave the label).
Derived here: docs/theory/exact.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8

from memcap.construct.packed_index import IndexPlan
from memcap.construct.packed_pieces import Piece, pieces
from memcap.construct.residual_writer import Neuron, ResidualWriter
from memcap.construct.word_folds import WordFolds, guard_bits, start_offset, words_from_flips
from memcap.construct.word_hash import HashPlan
from memcap.exact.network import Network

LAYERED_FROM = 16
"""From this group size on, hinges are an inner layer (2 each, and a channel for L); below, channels (3 each)."""


@dataclass(frozen=True)
class PackedPlan:
    """Everything but the words.

    Attributes:
        largest_key: keys are in [0, largest_key].
        modulus, warmup: tent of the warm-up rounds.
        index: bucket digits.
        group: buckets per piece, a power of two that divides the binary part of the bucket count.
        hash: hash values.
        planes: label bits b.
    """

    largest_key: int
    modulus: int
    warmup: int
    index: IndexPlan
    group: int
    hash: HashPlan
    planes: int

    @property
    def word_bits(self) -> int:
        return self.hash.values * self.planes

    @property
    def guard(self) -> int:
        return guard_bits(self.hash, self.planes)


def hinge_cost(group: int) -> int:
    """Parameters of the hinges on L, the L channel included."""
    if group == 2:
        return 0
    if group >= LAYERED_FROM:
        return 2 * (group - 2) + 1 + 2 * int(math.log2(group))
    return 3 * (group - 2)


def write(plan: PackedPlan, flips: UInt8[np.ndarray, "buckets planes values"]) -> tuple[Network, dict[str, int]]:
    """The network, and how many junk and noise folds it has."""
    starts, half = words_from_flips(flips, plan.guard)
    neurons, low, high = pieces([(half - w) % (2 * half) for w in starts], plan.group, 2 * half, plan.index.first)
    lift = -(low // (2 * half)) * 2 * half  # the running sum becomes non-negative
    junk = max(1, (-(-(high + lift) // half) - 1).bit_length())
    writer = _Writer(plan)
    start = start_offset(plan.hash, plan.planes, writer.s, junk, half)
    writer.front()
    writer.words(neurons, start - lift * writer.s)
    writer.w.offset["v"] = start
    folds = WordFolds(writer.w, plan.hash, plan.planes, writer.s)
    folds.junk(junk, half)
    folds.words()
    return writer.finish(), {"junk_folds": junk, "noise_folds": plan.guard - plan.planes + 1}


class _Writer:
    """Writes what is before the folds; s is the unit of bucket numbers, words and output."""

    def __init__(self, plan: PackedPlan) -> None:
        self.plan = plan
        self.s = 1 << plan.hash.rounds
        self.layered = plan.group >= LAYERED_FROM
        self.hinges = [] if self.layered else [f"hinge{t}" for t in range(1, plan.group - 1)]
        self.w = ResidualWriter(("u", "J", *(["L"] if self.layered else []), *self.hinges, "v"))
        self.w.offset["u"] = self.s << plan.warmup

    def front(self) -> None:
        """Warm-up and bucket number."""
        plan, s, w = self.plan, self.s, self.w
        w.tents("u", plan.warmup, s << plan.warmup, plan.modulus)
        digits = int(math.log2(plan.group))
        outputs = [
            {"J": weight} | ({"L": weight} if self.layered and k < digits else {})
            for k, weight in enumerate(plan.index.weights)
        ]
        w.digits("u", s, plan.index.thresholds[:digits], outputs[:digits])
        if self.hinges:  # J is still L here
            w.block("words/hinges", [Neuron({"J": 1}, -t * s, {n: 1}) for t, n in enumerate(self.hinges, start=1)])
        w.digits("u", s, plan.index.thresholds[digits:], outputs[digits:])

    def words(self, neurons: Sequence[Piece], constant: int) -> None:
        """Pieces into v; ``-constant`` is added through the first one, which every bucket activates."""
        s, w = self.s, self.w
        biases = [piece.bias * s for piece in neurons]
        biases[0] += constant
        if self.layered:
            first = [Neuron({"J": 1}, 0, {})]
            first += [Neuron({"L": 1}, -t * s, {}) for t in range(1, self.plan.group - 1)]
            second = [
                Neuron({"0": p.slope} | {str(t): c for t, c in enumerate(p.hinges, start=1)}, bias, {"v": p.sign})
                for p, bias in zip(neurons, biases, strict=True)
            ]
            w.two_layers("words", first, second)
        else:
            w.block(
                "words",
                [
                    Neuron({"J": p.slope} | dict(zip(self.hinges, p.hinges, strict=True)), bias, {"v": p.sign})
                    for p, bias in zip(neurons, biases, strict=True)
                ],
            )

    def finish(self) -> Network:
        scale = self.s << self.plan.warmup
        return self.w.finish(
            largest_key=self.plan.largest_key,
            key={"u": 2 * scale},
            read={"v": 1},
            read_bias=-(self.s // 2),
            unit=self.s,
        )
