"""Linear equations over GF(2) with rows as Python integers: an incremental echelon basis, and rows from hash bits.

The structure (which rows are independent) does not depend on right-hand sides: they come later, to `Basis.solve`.
This is the reference; `gf2_packed` does the same on packed machine words for large systems.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from memcap.errors import ConfigurationError


class Basis:
    """Rows added one by one, kept in echelon form with, per row, the mask of added rows it is the sum of.

    Row and mask share one integer (mask in the low ``capacity`` bits) so that a reduction step is a single XOR.

    Args:
        capacity: largest number of rows that may ever be added (independent or not).

    >>> basis = Basis(4)
    >>> basis.add(0b11), basis.add(0b01), basis.add(0b10)
    (True, True, False)
    >>> bin(basis.solve(0b01))  # row 0 -> 1, row 1 -> 0
    '0b10'
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._by_top: dict[int, int] = {}  # top bit of the row -> row << capacity | mask
        self._order: list[int] = []  # top bits in the order of their addition
        self._added = 0  # rows added, numbers them in masks

    @property
    def rank(self) -> int:
        """Independent rows held."""
        return len(self._order)

    @property
    def rows(self) -> int:
        """Rows held: right-hand sides carry one bit for each (bit i for the i-th)."""
        return self._added

    def _reduced(self, row: int) -> int:
        """``row`` (numbered as the next one) with every top bit that the basis knows removed, augmented."""
        shift = self._capacity
        value = row << shift | 1 << self._added
        by_top = self._by_top
        while (top := value.bit_length() - 1) >= shift:
            other = by_top.get(top)
            if other is None:
                return value
            value ^= other
        return value

    def independent(self, row: int) -> bool:
        """Whether ``row`` is independent of the rows held; nothing is added."""
        return self._reduced(row).bit_length() > self._capacity

    def add(self, row: int) -> bool:
        """Add ``row`` if it is independent of the rows held; returns whether it was."""
        if self._added >= self._capacity:
            raise ConfigurationError(f"the basis was made for {self._capacity} rows")
        value = self._reduced(row)
        top = value.bit_length() - 1
        if top < self._capacity:
            return False
        self._by_top[top] = value
        self._order.append(top)
        self._added += 1
        return True

    def dependency(self, row: int) -> int | None:
        """The mask of held rows whose sum is ``row``, or None if it is independent of them."""
        value = self._reduced(row)
        return None if value.bit_length() > self._capacity else value ^ 1 << self._added

    def rollback(self, rows: int) -> None:
        """Forget the rows added last until ``rows`` are left.

        An added row never changes earlier ones, so this is exact.
        """
        if not 0 <= rows <= self._added:
            raise ConfigurationError(f"cannot go back to {rows} rows from {self._added}")
        while self._added > rows:
            del self._by_top[self._order.pop()]
            self._added -= 1

    def solve(self, rhs: int) -> int:
        """The unknowns z (bit f is z_f) with ``parity(row_i & z) = bit i of rhs``; free unknowns are 0."""
        mask = (1 << self._capacity) - 1
        z = 0
        for top in sorted(self._by_top):  # ascending: a row's lower bits are known when its top bit is set
            value = self._by_top[top]
            if ((value & mask & rhs).bit_count() + ((value >> self._capacity) & z).bit_count()) & 1:
                z |= 1 << (top - self._capacity)
        return z


def rows_from_bits(bits: Bool[np.ndarray, "unknowns items"]) -> list[int]:
    """One Python integer per item; bit f is ``bits[f, item]``.

    >>> rows_from_bits(np.array([[True, False], [True, True]]))
    [3, 2]
    """
    packed = np.packbits(bits.T, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]
