"""Label bits in hash tables of words: where an item looks, and which words give every item its label.

Digits of the item name one word in each table; its label bit is the parity of those words masked with the item's hash
bits.  All tables share a *group* number (the place inside a piece), so the equations fall apart into one linear system
over GF(2) per group; a second, smaller table takes what overflows the words of the first.  Adding one vector to all
words of a group in both tables changes nothing, so piece 0 of the second table may hold a fixed word: it is
`Slot.free`, which costs no parameter.  A place may hold several short words; here they are one string of bits.  Rows
must be independent: then every labelling has a solution and new labels change words only.  Only numbers; derived here:
docs/theory/budgeted.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int, UInt64

from memcap.construct.gf2_packed import PackedBasis, packed_basis
from memcap.construct.word_format import Slot, popcount


@dataclass(frozen=True)
class TableLayout:
    """How index digits (numbered from 0 in the order they are read) name words.

    Attributes:
        group_digits: digits of the group number L, first one worth 1; q = 2^len groups.
        pieces: number of pieces per table, the free one included; a table spans ``q * pieces`` words.
        piece_digits: per table, the digits of its piece number I, first one worth 1.
    """

    group_digits: tuple[int, ...]
    pieces: tuple[int, ...]
    piece_digits: tuple[tuple[int, ...], ...]

    @property
    def groups(self) -> int:
        return 1 << len(self.group_digits)

    @property
    def digits(self) -> int:
        """Index digits read in all."""
        return len(self.group_digits) + sum(len(d) for d in self.piece_digits)

    @property
    def words(self) -> int:
        """Words of all tables, the free ones included."""
        return self.groups * sum(self.pieces)

    def first_piece(self, table: int) -> int:
        """Pieces before this one are free: 0 in the first table, 1 in later ones."""
        return 1 if table else 0

    def unknowns_below(self, table: int) -> int:
        """Words per group of the tables after ``table``, free ones not counted."""
        return sum(count - self.first_piece(t) for t, count in enumerate(self.pieces) if t > table)

    def folded(self, table: int) -> bool:
        """Whether the piece number has more codes than pieces, so that the upper ones are folded back."""
        return self.pieces[table] < 1 << len(self.piece_digits[table])

    def group(self, index: UInt64[np.ndarray, " items"]) -> Int[np.ndarray, " items"]:
        """L of every item; ``index`` has the first digit as its top bit of ``digits`` bits."""
        return self._number(index, self.group_digits)

    def piece(self, index: UInt64[np.ndarray, " items"], table: int) -> Int[np.ndarray, " items"]:
        """I of every item in ``table``."""
        number = self._number(index, self.piece_digits[table])
        folded: np.ndarray = np.minimum(number, 2 * self.pieces[table] - 1 - number) if self.folded(table) else number
        return folded

    def _number(self, index: UInt64[np.ndarray, " items"], digits: tuple[int, ...]) -> Int[np.ndarray, " items"]:
        number = np.zeros(len(index), dtype=np.int64)
        for worth, digit in enumerate(digits):
            number |= ((index >> np.uint64(self.digits - 1 - digit)) & np.uint64(1)).astype(np.int64) << worth
        return number


@dataclass
class Places:
    """Where every item looks.

    Attributes:
        group, piece: L of every item, and I per table (tables, items).
        beta: hash bits of every item, bit f - 1 for position f.
    """

    group: Int[np.ndarray, " items"]
    piece: Int[np.ndarray, "tables items"]
    beta: UInt64[np.ndarray, " items"]


@dataclass
class System:
    """One independent system per group: items and their echelon basis."""

    items: list[Int[np.ndarray, " _"]]
    bases: list[PackedBasis]


def eliminate(
    places: Places, layout: TableLayout, bits: int, matters: Bool[np.ndarray, " items"] | None = None
) -> System | None:
    """The systems of all groups, or None if some row depends on others (then this layout or hash cannot serve).

    Args:
        places: where every item looks.
        layout: the tables.
        bits: of a place, all its words together.
        matters: items to include; all if None.
    """
    order = np.argsort(places.group, kind="stable")
    if matters is not None:
        order = order[matters[order]]
    starts = np.searchsorted(places.group[order], np.arange(layout.groups + 1))
    # the first table on top: its words are eliminated first, the overflow falls to the later tables
    offsets = np.empty(places.piece.shape, dtype=np.int64)
    for table in range(len(layout.pieces)):
        free = layout.first_piece(table)
        offset = bits * (layout.unknowns_below(table) + places.piece[table] - free)
        offsets[table] = np.where(places.piece[table] >= free, offset, -1)
    unknowns = bits * layout.unknowns_below(-1)
    items, bases = [], []
    for group in np.argsort(-np.diff(starts), kind="stable"):  # the fullest group fails first
        members = order[starts[group] : starts[group + 1]]
        basis = packed_basis(places.beta[members], offsets[:, members], unknowns)
        if basis is None:
            return None
        items.append(members)
        bases.append(basis)
    return System(items, bases)


@dataclass
class PlaneSystem:
    """Where items look for one label bit, and the equations of the items for which that bit matters."""

    places: Places
    layout: TableLayout
    system: System


def solve_labels(
    planes: list[PlaneSystem], slot: Slot, labels: Int[np.ndarray, " items"]
) -> tuple[list[UInt64[np.ndarray, " _"]], Int[np.ndarray, " items"]]:
    """Words of every label bit, and the accumulator ``acc`` of every item: bit k + 1 of acc is bit k of the label.

    Word ``(table, piece, group)`` stands at ``q * (pieces of earlier tables + piece) + group``.  Planes are solved
    from the lowest: a later plane changes higher bits of acc only.  Where a plane leaves an item out, its bit is
    whatever comes out.
    """
    beta = planes[0].places.beta
    acc = np.zeros(len(labels), dtype=np.int64)
    start = len(planes[0].layout.pieces) * (popcount(beta) + slot.half_gap)
    for k in range(len(planes)):
        acc += start << k
    solved = []
    for k, plane in enumerate(planes):
        chosen = _solve_plane(plane, slot, ((labels >> k) ^ (acc >> (k + 1))) & 1)
        excess = slot.excess(chosen)
        for t, pieces in enumerate(plane.places.piece):
            at = plane.layout.groups * (sum(plane.layout.pieces[:t]) + pieces) + plane.places.group
            acc += (excess[at] - 2 * popcount(chosen[at] & beta)) << k
        solved.append(chosen)
    return solved, acc


def _solve_plane(plane: PlaneSystem, slot: Slot, wanted: Int[np.ndarray, " items"]) -> UInt64[np.ndarray, " words"]:
    """Words with the wanted parity for every item of the plane's system."""
    places, layout, bits = plane.places, plane.layout, slot.bits
    solved = np.full(layout.words, slot.free, dtype=np.uint64)
    for t in range(1, len(layout.pieces)):  # what free words contribute
        wanted = wanted ^ np.where(places.piece[t] == 0, popcount(places.beta & np.uint64(slot.free)) & 1, 0)
    slots = [
        (
            layout.groups * (sum(layout.pieces[:t]) + piece),
            bits * (layout.unknowns_below(t) + piece - layout.first_piece(t)),
        )
        for t in range(len(layout.pieces))
        for piece in range(layout.first_piece(t), layout.pieces[t])
    ]
    for members, basis in zip(plane.system.items, plane.system.bases, strict=True):
        if len(members):
            z = basis.solve(wanted[members] == 1)
            group = int(places.group[members[0]])
            for start, bottom in slots:
                solved[start + group] = _bits_at(z, bottom, bits)
    return solved


def _bits_at(words: UInt64[np.ndarray, " words"], bottom: int, bits: int) -> int:
    low, high = int(words[bottom // 64]), int(words[bottom // 64 + 1])
    return (low | high << 64) >> bottom % 64 & ((1 << bits) - 1)
