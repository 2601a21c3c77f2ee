"""The part that all exact keyless networks share: a word is folded bit by bit while hash values are added.

At the start channel ``v`` holds the start value of a word (or its residue, after ``junk`` folds).  Each fold is
``v <- |v - c|``; a hash value added before it gets the product of the signs of this and all later folds, which only the
word decides.  What remains is ``2^guard + S`` with S the signed sum; ``noise`` folds leave the label.
Hash values come from the tent state in channel ``u``.  Derived here: docs/theory/exact.md.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8

from memcap.construct.residual_writer import Neuron, ResidualWriter
from memcap.construct.word_hash import HashPlan


def guard_bits(plan: HashPlan, planes: int) -> int:
    """h: the signed sum stays in ``(-2^h, 2^h)``; a word is a multiple of ``2^(h+1)``."""
    noise = sum(plan.reach) * ((1 << planes) - 1)
    return max(noise.bit_length(), planes + 1)


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


class WordFolds:
    """Writes the folds of channel ``v``.

    Args:
        writer: has channels ``u`` and ``v``; u holds ``2^rounds`` times the state the hash starts from.
        plan: hash values.
        planes: label bits.
        unit: of v, a multiple of ``2^rounds``.
    """

    def __init__(self, writer: ResidualWriter, plan: HashPlan, planes: int, unit: int) -> None:
        self.w, self.plan, self.planes, self.unit = writer, plan, planes, unit
        self.scale = 1 << plan.rounds
        self.ratio = unit // self.scale
        self.guard = guard_bits(plan, planes)
        self.slope = 0  # v is kept as stored + offset + slope u
        self.tents = 0  # tent rounds done: one is scale / 2^tents in u

    def junk(self, folds: int, half: int) -> None:
        """Folds at ``half 2^(folds-1)``, ..., ``half``: residues modulo ``2 half`` become start values of words."""
        for j in reversed(range(folds)):
            self._step(f"junk/{j}", half << j, 0 if j == 0 else None)
        if folds == 0:
            neurons: list[Neuron] = []
            shifts = {"v": 0}
            self._emit(0, neurons, shifts)
            self.w.block("word/start", neurons, shifts)

    def words(self) -> None:
        """One fold per bit, with the next hash value in the same block; then the folds that leave the label."""
        bits = self.plan.values * self.planes
        for n in range(bits):
            value, plane = divmod(n, self.planes)
            last = plane == self.planes - 1
            following = value + 1 if last and value + 1 < self.plan.values else None
            gain = (1 << plane) if self.planes > 1 else 0
            settle = self.planes > 1 and n == bits - 1  # the noise folds need v itself
            self._step(f"word/{n}", 1 << (self.guard + bits - n), following, gain, value, settle=settle)
        # the sum S is now 2^guard + S; half a unit more makes the last fold symmetric
        self.w.offset["v"] += self.unit // 2
        for k in reversed(range(self.planes, self.guard + 1)):
            self._step(f"noise/{k}", 1 << k, None)

    def _step(
        self, name: str, at: int, emit: int | None, gain: int = 0, value: int = 0, *, settle: bool = False
    ) -> None:
        """Fold v at ``at`` units; beside it, in the same block, the neurons of hash value ``emit``.

        ``gain``: the linear hash value ``gain (u - centre) / 2`` enters with this fold, at the cost of one more input.
        """
        if gain:
            self.slope += self.ratio * gain << (self.tents - 1)
            self.w.offset["v"] -= gain * self.plan.centres[value] * self.unit // 2
        inputs = {"v": -1} | ({"u": -self.slope} if self.slope else {})
        neurons = [Neuron(inputs, at * self.unit, {"v": 2})]
        shifts = {"v": -at * self.unit}
        if emit is not None:
            self._emit(emit, neurons, shifts)
        if settle:
            neurons.append(Neuron({"u": 1}, 0, {"v": self.slope}))
            self.slope = 0
        self.w.block(name, neurons, shifts)

    def _emit(self, value: int, neurons: list[Neuron], shifts: dict[str, int]) -> None:
        plan = self.plan
        c, here = plan.thresholds[value], self.scale >> self.tents
        weight = self.ratio << self.tents  # of u, in units of v
        if c > 0:
            neurons.append(Neuron({"u": -1}, c * here, {"v": weight}))
            shifts["v"] -= plan.centres[value] * self.unit
            return
        at = plan.modulus * here // 2
        if c == 0:
            final = value == plan.values - 1
            neurons.append(Neuron({"u": -1}, at, {"v": 2 * weight} | ({} if final else {"u": 2})))
            shifts["v"] -= plan.centres[value] * self.unit
            if not final:
                shifts["u"] = -at
        else:  # v keeps ``slope u`` while u becomes u - at + 2 relu(at - u)
            neurons.append(Neuron({"u": -1}, at, {"u": 2, "v": -2 * self.slope}))
            shifts["u"] = -at
            shifts["v"] += self.slope * at
        self.tents += 1


def start_offset(plan: HashPlan, planes: int, unit: int, junk: int, half: int) -> int:
    """The offset v must start with to end as ``unit (label + 1/2)`` with offset ``unit / 2``: no read-out bias.

    Constants are deferred, so only their sum matters; a trial run of the writer finds it.
    """
    writer = ResidualWriter(("u", "v"))
    trial = WordFolds(writer, plan, planes, unit)
    trial.junk(junk, half)
    trial.words()
    return unit // 2 - writer.offset["v"]
