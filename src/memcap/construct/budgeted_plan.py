"""The shape of a precision-budgeted memory: which digits, tables and words; its parameters and depth by formula.

A plan holds no labels.  `budgeted_search` looks for the cheapest plan, `budgeted_network` writes it down.
Derived here: docs/theory/budgeted.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import UInt64

from memcap.construct.hash_tables import TableLayout
from memcap.construct.key_digits import Chain
from memcap.construct.prefix_code import PrefixCode
from memcap.construct.word_format import Slot, WordFormat


def pair_order(digits: int) -> list[tuple[int, int]]:
    """All unordered pairs of digits, each digit used about equally often at any prefix.

    >>> pair_order(4)
    [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]
    """
    return [
        (i, (i + step) % digits)
        for step in range(1, digits // 2 + 1)
        for i in range(digits)
        if not (2 * step == digits and i >= step)
    ]


@dataclass(frozen=True)
class PlaneTables:
    """The tables of one label bit: the same index digits, perhaps fewer pieces.

    Attributes:
        pieces: pieces per table, the free one included.
        maps: per table, the piece of every piece number I.
    """

    pieces: tuple[int, ...]
    maps: tuple[tuple[int, ...], ...]

    def real(self, table: int) -> int:
        """Pieces that hold words."""
        return self.pieces[table] - (1 if table else 0)

    def gates(self, table: int) -> int:
        """Weights that gate the pieces of ``table``; a single piece is not gated."""
        if table == 0:
            return len(self.maps[0]) if self.pieces[0] > 1 else 0
        return sum(piece > 0 for piece in self.maps[table])


@dataclass(frozen=True)
class BudgetedPlan:
    """Everything that fixes the network but for the word weights.

    Attributes:
        chains: one chain for one integer input, two for two limbs; the first one yields the index digits.
        layout: tables and their index digits.
        digits: base digits x_1 .. x_n, of which the hash bits are made.
        words: word format (B).
        planes: label bits.
        tables_by_plane: tables per label bit, the lowest first; empty if all are those of ``layout``.
        code: what the label bits mean if they are not the class in binary.
        parts: words in every place of a table, folded side by side.
    """

    chains: tuple[Chain, ...]
    layout: TableLayout
    digits: int
    words: WordFormat
    planes: int
    tables_by_plane: tuple[PlaneTables, ...] = ()
    code: PrefixCode | None = None
    parts: int = 1

    @property
    def slot(self) -> Slot:
        """What a place of a table holds."""
        return Slot(self.words, self.parts)

    @property
    def lanes(self) -> list[tuple[int, int, int]]:
        """(table, label bit, part) of every word channel."""
        return [(t, k, p) for t in range(self.tables) for k in range(self.planes) for p in range(self.parts)]

    @property
    def doublings(self) -> int:
        """Tent rounds before the first digit."""
        return max(self.chains[c].doublings for c in self.used_chains)

    @property
    def tables(self) -> int:
        return len(self.layout.pieces)

    def plane_tables(self, plane: int) -> PlaneTables:
        """Tables of one label bit."""
        if self.tables_by_plane:
            return self.tables_by_plane[plane]
        return PlaneTables(self.layout.pieces, tuple(tuple(range(n)) for n in self.layout.pieces))

    def plane_layout(self, plane: int) -> TableLayout:
        """The layout of one label bit; only its sizes are meaningful if pieces were merged."""
        return replace(self.layout, pieces=self.plane_tables(plane).pieces)

    @property
    def digit_order(self) -> list[int]:
        """Chain of every base digit: the second chain is used up first, it is otherwise unread."""
        second = len(self.chains[1].folds) if len(self.chains) > 1 else 0
        return [1] * min(second, self.digits) + [0] * max(0, self.digits - second)

    @property
    def used_chains(self) -> list[int]:
        """Chains that yield a digit."""
        return sorted({*self.digit_order, *([0] if self.layout.digits else [])})

    @property
    def joins(self) -> bool:
        """Whether the second chain joins the first one after the tent rounds."""
        return self.chains[0].mate is not None and 0 in self.used_chains

    @cached_property
    def hash_bits(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """(position f - 1, part) -> the digits it reads: () is 1, (i,) is x_i, (i, j) is x_i and not x_j.

        The constant is free (it joins the constant of the word channel), and no item is without hash bits.  Positions
        come in the order in which they are folded.
        """
        places = [(f, part) for f in range(self.words.bits) for part in range(self.parts)]
        return dict(zip(places, self._reads(), strict=True))

    def _reads(self) -> list[tuple[int, ...]]:
        n, left = self.digits, self.slot.bits - 1
        if n <= left:
            return [(), *((i,) for i in range(n)), *pair_order(n)][: left + 1]
        single = max(0, 2 * left - n)  # every digit must be read: disjoint pairs cover what single digits leave over
        pairs = [(i, i + 1) for i in range(single, n - 1, 2)]
        return [(), *((i,) for i in range(single)), *pairs][: left + 1]

    @property
    def early_digits(self) -> int:
        """Base digits that must exist before the first fold; every fold block then reads one more."""
        ready = 1
        for (position, _), reads in self.hash_bits.items():
            if reads:  # emitted in fold block `position`, which sees the digits of the blocks before it
                ready = max(ready, max(reads) + 1 - (position - (self.parts == 1)))
        return min(ready, self.digits)

    def beta(self, base: UInt64[np.ndarray, " items"]) -> UInt64[np.ndarray, " items"]:
        """Hash bits from base digits (x_1 on top of ``digits`` bits); bit ``B p + f - 1`` for position f of part p."""
        one = np.uint64(1)
        x = [(base >> np.uint64(self.digits - 1 - i)) & one for i in range(self.digits)]
        beta = np.zeros(len(base), dtype=np.uint64)
        for (position, part), reads in self.hash_bits.items():
            bit = np.ones_like(base)
            if reads:
                bit = x[reads[0]] if len(reads) == 1 else x[reads[0]] & (x[reads[1]] ^ one)
            beta |= bit << np.uint64(part * self.words.bits + position)
        return beta

    @property
    def largest_sum(self) -> int:
        """Largest value of the accumulator."""
        return self.tables * self.parts * (2 * self.words.half_gap - 1) * ((1 << self.planes) - 1)

    @property
    def read_folds(self) -> list[int]:
        """One label bit: the mirrors m of ``acc <- min(acc, m - acc)`` that bring it to at most 2.

        Mirrors are 0 modulo 4 when acc is even (two tables), else 1 modulo 4: both keep the second bit of acc.
        """
        residue = 0 if self.tables == 2 else 1
        mirrors, top = [], self.largest_sum
        while top > 2:
            mirror = top + (residue - top) % 4
            mirrors.append(mirror)
            top = mirror // 2 if residue else mirror // 2 - (mirror // 2) % 2
        return mirrors

    @property
    def read_strips(self) -> list[int]:
        """Several label bits: the binary digits k of acc that are removed, from the top."""
        lowest = self.planes + 1 if self.tables == 2 else 1
        return list(range(self.largest_sum.bit_length() - 1, lowest - 1, -1))

    @property
    def depth(self) -> int:
        """ReLU layers of the network."""
        table = 0
        if self.layout.groups > 1:
            table = 3 if max(self.layout.pieces) > 1 else 2
        elif max(self.layout.pieces) > 1:
            table = 2
        join = 1 if len(self.lanes) > 1 else 0
        decode = decoder_depth(self.code) if self.code else 0
        read = len(self.read_folds) + (self.tables == 1) if self.planes == 1 else len(self.read_strips)
        before = self.doublings + self.layout.digits + self.early_digits
        if self.joins:
            before += 1 + self.chains[0].unread
        return before + table + (self.parts > 1) + self.words.bits + join + read + decode

    @property
    def parameters(self) -> int:
        """Non-zero parameters, before any that happens to be zero."""
        lanes, parts, layout = len(self.lanes), self.parts, self.layout
        total = sum(1 + sum(f != 0 for f in self.chains[c].factors) for c in self.used_chains)
        total += sum(5 * self.chains[c].doublings for c in self.used_chains) + 7 * (layout.digits + self.digits)
        total -= 2 * len(self.used_chains)  # the last fold of a chain moves nothing
        total += (5 + 3 * self.chains[0].unread) * self.joins
        total += 3 * sum(layout.folded(t) for t in range(self.tables))
        total += sum(4 * n - 4 for n in (layout.groups, *layout.pieces) if n > 1) - 2 * (self.tables - 1)
        for table, pieces in enumerate(layout.pieces):
            real = pieces - layout.first_piece(table)
            if layout.groups == 1:
                total += parts * self.planes * real * (pieces > 1)
            elif max(layout.pieces) == 1:
                total += parts * self.planes * layout.groups
            else:
                for plane in map(self.plane_tables, range(self.planes)):
                    total += parts * (plane.real(table) * (layout.groups + 1) + plane.gates(table))
        total += lanes  # the constant of every word channel
        total += sum(len(reads) + lanes // parts for reads in self.hash_bits.values() if reads)
        total += 3 * lanes * self.words.bits - lanes
        total += 2 * (lanes - 1)
        if self.planes == 1:
            total += 3 * len(self.read_folds) + (3 if self.tables == 1 else 0)
        else:
            total += 6 * len(self.read_strips)
            if self.tables == 1:
                total += 2 * self.planes - 2
        return total + (decoder_parameters(self.code) if self.code else 0) + 1  # the read-out weight


def finishing(code: PrefixCode) -> list[int]:
    """Lengths, other than the longest, at which some code ends."""
    return [n for n in range(code.shortest, code.longest) if code.end(n) > code.first(n)]


def decoder_depth(code: PrefixCode) -> int:
    """One layer per bit and one per length at which codes end."""
    return code.longest + len(finishing(code))


def decoder_parameters(code: PrefixCode) -> int:
    """Parameters of `prefix_decoder.decode_blocks`."""
    total = 0
    for bit in range(1, code.longest + 1):
        gated = bit > code.shortest
        total += 6 + 2 * (bit < code.longest) + 2 * gated  # two units: acc, bias, Y; the strip; the gates
        total += (2 + gated) if bit > 1 else 0  # Y doubles
    for length in finishing(code):
        total += 8 if length > code.shortest else 6
        total += 2 * (code.offset(length) != code.offset(code.longest))
        total -= code.end(length) == 1  # a bias of 0
    return total + (code.offset(code.longest) != 0)


def digits_needed(bits: int) -> int:
    """Least base digits that give ``bits`` different hash bits, the constant included.

    >>> [digits_needed(b) for b in (1, 4, 7, 47)]
    [1, 2, 3, 10]
    """
    return max(1, math.ceil((math.sqrt(8 * (bits - 1) + 1) - 1) / 2))
