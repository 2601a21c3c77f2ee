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

from memcap.construct.packed_hash import HashPlan
from memcap.construct.packed_index import IndexPlan
from memcap.construct.packed_pieces import Piece, pieces
from memcap.construct.residual_writer import Neuron, ResidualWriter
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
    def noise(self) -> int:
        """Largest magnitude of the signed sum of all hash values."""
        return sum(self.hash.reach) * ((1 << self.planes) - 1)

    @property
    def guard(self) -> int:
        """h: the sum stays in ``(-2^h, 2^h)``; a word is a multiple of ``2^(h+1)``."""
        return max(self.noise.bit_length(), self.planes + 1)


def hinge_cost(group: int) -> int:
    """Parameters of the hinges on L, the L channel included."""
    if group == 2:
        return 0
    if group >= LAYERED_FROM:
        return 2 * (group - 2) + 1 + 2 * int(math.log2(group))
    return 3 * (group - 2)


def value_cost(values: int, rounds: int, planes: int) -> int:
    """Parameters of hash values and word folds."""
    if planes > 1:
        return 4 * values - 1 + 4 * values * planes + 3
    return 6 * values + rounds - 1


def words_from_flips(flips: UInt8[np.ndarray, "buckets planes values"], guard: int) -> tuple[list[int], int]:
    """The start value of every bucket's word and the modulus P = 2^(guard + 1 + bits); folds come plane by plane.

    Fold f is at ``2^(guard + 1 + K - f)``.  With signs ``eps_f = 1 - 2 z_f`` wanted after all folds, the binary digits
    of the word are ``not (z_{f+1} xor z_1)``, z_{K+1} = 0.
    """
    buckets = len(flips)
    z = np.ascontiguousarray(flips.transpose(0, 2, 1)).reshape(buckets, -1)  # planes run fastest
    bits = z.shape[1]
    following = np.concatenate([z[:, 1:], np.zeros((buckets, 1), dtype=z.dtype)], axis=1)
    digits = 1 ^ following ^ z[:, :1]
    padded = np.packbits(digits[:, ::-1], axis=1, bitorder="little")
    unit, half = 1 << (guard + 1), 1 << guard
    return [int.from_bytes(row.tobytes(), "little") * unit + half for row in padded], unit << bits


def write(plan: PackedPlan, flips: UInt8[np.ndarray, "buckets planes values"]) -> tuple[Network, dict[str, int]]:
    """The network, and how many junk and noise folds it has."""
    starts, half = words_from_flips(flips, plan.guard)
    neurons, low, high = pieces([(half - w) % (2 * half) for w in starts], plan.group, 2 * half, plan.index.first)
    lift = -(low // (2 * half)) * 2 * half  # the running sum becomes non-negative
    junk = max(1, (-(-(high + lift) // half) - 1).bit_length())
    # constants are deferred: the first pass finds where v ends, the second starts it so that the read-out needs no bias
    trial = _Writer(plan, half)
    trial.folds(junk)
    start = trial.s // 2 - trial.w.offset["v"]
    writer = _Writer(plan, half)
    writer.front()
    writer.words(neurons, start - lift * writer.s)
    writer.w.offset["v"] = start
    writer.folds(junk)
    return writer.finish(), {"junk_folds": junk, "noise_folds": plan.guard - plan.planes + 1}


class _Writer:
    """Writes one packed network; s is the unit of bucket numbers, words and output."""

    def __init__(self, plan: PackedPlan, half: int) -> None:
        self.plan, self.half = plan, half
        self.s = 1 << plan.hash.rounds
        self.layered = plan.group >= LAYERED_FROM
        self.hinges = [] if self.layered else [f"hinge{t}" for t in range(1, plan.group - 1)]
        self.w = ResidualWriter(("u", "J", *(["L"] if self.layered else []), *self.hinges, "v"))
        self.w.offset["u"] = self.s << plan.warmup

    def front(self) -> None:
        """Warm-up and bucket number."""
        plan, s, w = self.plan, self.s, self.w
        for t in range(plan.warmup):
            at = (s << (plan.warmup - t - 1)) * plan.modulus
            w.block(f"warm-up/{t}", [Neuron({"u": -1}, at, {"u": 2})], {"u": -at})
        digits = int(math.log2(plan.group))
        for k, (c, weight) in enumerate(zip(plan.index.thresholds, plan.index.weights, strict=True)):
            to = {"J": weight} | ({"L": weight} if self.layered and k < digits else {})
            here = Neuron({"u": -1}, c * s, {"u": 2} | to)
            one_lower = Neuron({"u": -1}, (c - 1) * s, {n: -v for n, v in to.items()})
            w.block(f"index/{k}", [here, one_lower], {"u": -c * s})
            if k == digits - 1 and self.hinges:  # J is still L here
                w.block("words/hinges", [Neuron({"J": 1}, -t * s, {n: 1}) for t, n in enumerate(self.hinges, start=1)])

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

    def folds(self, junk: int) -> None:
        """All folds of v, from the junk above the word to the noise below it, and the hash values between them."""
        self.slope, self.tents = 0, 0
        for j in reversed(range(1, junk)):
            self._step(f"junk/{j}", self.half << j, None)
        hash_plan, planes = self.plan.hash, self.plan.planes
        values = hash_plan.values
        bits = values * planes
        emit = [f for f in range(values) for _ in range(planes)]
        self._step("junk/0", self.half, 0)
        for n in range(bits):
            f, plane = divmod(n, planes)
            following = emit[n + 1] if n + 1 < bits and emit[n + 1] != f else None
            gain = (1 << plane) if planes > 1 else 0
            settle = planes > 1 and n == bits - 1  # the noise folds need v itself
            self._step(f"word/{n}", 1 << (self.plan.guard + bits - n), following, gain, f, settle=settle)
        for k in reversed(range(planes, self.plan.guard + 1)):
            # the sum S became 2^guard + S; half a unit more makes the final fold symmetric
            extra = self.s // 2 if k == self.plan.guard else 0
            self._step(f"noise/{k}", 1 << k, None, raised=extra)

    def _step(
        self,
        name: str,
        at: int,
        emit: int | None,
        gain: int = 0,
        value: int = 0,
        *,
        raised: int = 0,
        settle: bool = False,
    ) -> None:
        """Fold v at ``at`` units; beside it, in the same block, the neurons of hash value ``emit``.

        ``gain``: the linear hash value ``gain (u - centre) / 2`` enters with this fold: v is kept as
        ``stored + offset + slope u``, so that it costs one more input.
        """
        s, w, plan = self.s, self.w, self.plan.hash
        shift = raised
        if gain:
            step = gain << (self.tents - 1)  # u is in units s / 2^tents
            self.slope += step
            shift -= gain * plan.centres[value] * s // 2
        inputs = {"v": -1} | ({"u": -self.slope} if self.slope else {})
        w.offset["v"] += shift
        neurons = [Neuron(inputs, at * s, {"v": 2})]
        shifts = {"v": -at * s}
        if emit is not None:
            self._emit(emit, neurons, shifts)
        if settle:
            neurons.append(Neuron({"u": 1}, 0, {"v": self.slope}))
            self.slope = 0
        w.block(name, neurons, shifts)

    def _emit(self, value: int, neurons: list[Neuron], shifts: dict[str, int]) -> None:
        plan, s = self.plan.hash, self.s
        c, here = plan.thresholds[value], s >> self.tents
        final = value == plan.values - 1
        if c > 0:
            neurons.append(Neuron({"u": -1}, c * here, {"v": 1 << self.tents}))
            shifts["v"] -= plan.centres[value] * s
            return
        at = plan.modulus * here // 2
        if c == 0:
            outputs = {"v": 2 << self.tents} | ({} if final else {"u": 2})
            neurons.append(Neuron({"u": -1}, at, outputs))
            shifts["v"] -= plan.centres[value] * s
            if not final:
                shifts["u"] = -at
        else:
            # v keeps ``slope u`` while u becomes u - at + 2 relu(at - u)
            neurons.append(Neuron({"u": -1}, at, {"u": 2, "v": -2 * self.slope}))
            shifts["u"] = -at
            shifts["v"] += self.slope * at
        self.tents += 1

    def finish(self) -> Network:
        scale = self.s << self.plan.warmup
        return self.w.finish(
            largest_key=self.plan.largest_key,
            key={"u": 2 * scale},
            read={"v": 1},
            read_bias=-(self.s // 2),
            unit=self.s,
        )
