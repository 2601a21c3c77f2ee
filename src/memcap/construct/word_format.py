"""How B label bits become one integer weight that B folds can read back inside a number format.

A word holds signs ``eps_1 .. eps_B``.  The network starts at ``V = (G/2) W + delta`` (W odd), adds one hash bit
``beta_f`` before fold f, folds ``V <- |V| - (G/2) 2^(B-f)`` and ends with ``S = e + sum_f eps_f beta_f``: the lattice
part W decides every sign, the noise S is what is wanted.  Adding ``delta`` (a multiple of 4 close to minus the mean
of the noise) keeps ``|S| < G/2`` with half the guard that a noise starting at 0 would need: one bit more per word.
Only numbers; derived here: docs/theory/budgeted.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, UInt64

from memcap.errors import ConfigurationError

EXACT_BITS = {"float64": 53, "float32": 24, "int64": 63}
"""Number format -> p: every integer of magnitude up to 2^p (int64: below it) is held exactly."""

_FEW_BITS = 8

FREE = 1
"""The word (as z) that costs nothing, because it is stored as 0: eps_1 = -1 and all other signs +1."""


@dataclass(frozen=True)
class WordFormat:
    """Constants of words with ``bits`` folds.

    Attributes:
        bits: B, folds per word.
    """

    bits: int

    def __post_init__(self) -> None:
        if self.bits < 1:
            raise ConfigurationError(f"a word needs at least one bit, got {self.bits}")

    @property
    def half_gap(self) -> int:
        """G/2: lattice points of V before the last fold are G apart, the noise stays strictly below G/2."""
        return self.bits // 2 + 3

    @property
    def most_delta(self) -> int:
        """Largest ``|delta|``: B/2 rounded to a multiple of 4."""
        return 4 * ((self.bits + 4) // 8)

    @property
    def shift(self) -> int:
        """What the network subtracts from a stored word: chosen so that the word `FREE` is stored as 0.

        ``FREE`` has the lowest lattice point of all; the next one is G higher and G > 2 most_delta, so that every other
        word is stored as a positive number.
        """
        excess = int(self.excess(np.array([FREE], dtype=np.uint64))[0])
        return self.half_gap * ((1 << self.bits) - 1) + excess  # its delta is -excess, because eps_1 = -1

    @property
    def gate(self) -> int:
        """The largest stored word, or a bound of it; a word that equals it costs no parameter."""
        if self.bits <= _FEW_BITS:
            return int(self.stored(np.arange(1 << self.bits, dtype=np.uint64)).max())
        return 2 * self.half_gap * ((1 << self.bits) - 1) + 2 * self.most_delta

    def fits(self, dtype: str) -> bool:
        """Whether every partial sum that involves a word, in any order, is exact in ``dtype``."""
        return self.gate + 4 * self.bits + 16 < 1 << EXACT_BITS[dtype]

    def excess(self, z: UInt64[np.ndarray, " words"]) -> Int[np.ndarray, " words"]:
        """``e``: what ``delta`` is after all folds, the multiple of 4 nearest to ``sum z - B/2``."""
        ones = popcount(z)
        nearest: np.ndarray = 4 * np.rint((2 * ones - self.bits) / 8.0).astype(np.int64)
        return nearest

    def stored(self, z: UInt64[np.ndarray, " words"]) -> Int[np.ndarray, " words"]:
        """The stored weight of every word; bit f - 1 of ``z`` set means ``eps_f = -1``.  In [0, gate)."""
        lattice = np.zeros(len(z), dtype=np.int64)
        after = np.ones(len(z), dtype=np.int64)  # eps_{B+1}
        for fold in range(self.bits, 0, -1):
            eps = 1 - 2 * ((z >> np.uint64(fold - 1)) & np.uint64(1)).astype(np.int64)
            lattice = eps * after * (lattice + (1 << (self.bits - fold)))
            after = eps
        delta = after * self.excess(z)  # after is eps_1 now
        weights: np.ndarray = self.half_gap * lattice + (delta + self.shift)
        return weights


@dataclass(frozen=True)
class Slot:
    """What one place of a table holds: ``parts`` words that are folded side by side, as one string of bits.

    Bit ``B p + f - 1`` belongs to position f of part p.  Short words are made up for by more of them.

    Attributes:
        word: format of every part.
        parts: words in a place.
    """

    word: WordFormat
    parts: int = 1

    @property
    def bits(self) -> int:
        """Bits of all parts together."""
        return self.parts * self.word.bits

    @property
    def half_gap(self) -> int:
        """What the parts add to the accumulator beside their signed sums."""
        return self.parts * self.word.half_gap

    @property
    def free(self) -> int:
        """The content that costs nothing: every part is `FREE`."""
        return sum(FREE << part * self.word.bits for part in range(self.parts))

    def part(self, z: UInt64[np.ndarray, " places"], part: int) -> UInt64[np.ndarray, " places"]:
        """One word of every place."""
        return (z >> np.uint64(part * self.word.bits)) & np.uint64((1 << self.word.bits) - 1)

    def excess(self, z: UInt64[np.ndarray, " places"]) -> Int[np.ndarray, " places"]:
        """Sum of the parts' `WordFormat.excess`."""
        total = np.zeros(len(z), dtype=np.int64)
        for part in range(self.parts):
            total += self.word.excess(self.part(z, part))
        return total


def most_bits(dtype: str) -> int:
    """Bits of the longest word that fits ``dtype``.

    >>> [most_bits(d) for d in ("float64", "float32", "int64")]
    [47, 19, 57]
    """
    bits = 1
    while WordFormat(bits + 1).fits(dtype):
        bits += 1
    return bits


def popcount(words: UInt64[np.ndarray, " words"]) -> Int[np.ndarray, " words"]:
    """Set bits of every word (NumPy has this only from 2.0 on).

    >>> popcount(np.array([0, 7, 2**64 - 1], dtype=np.uint64)).tolist()
    [0, 3, 64]
    """
    x = words
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    counts: np.ndarray = ((x * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.int64)
    return counts
