"""Rows of an integer table in lexicographic order, and which of them are equal; exact, no hashing.

Used to find duplicates and conflicts and to write the canonical bytes of a data set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64


@dataclass(frozen=True, eq=False)
class Groups:
    """Equal rows of a table.

    Attributes:
        order: row indices in lexicographic order of the rows, equal rows in the order of the table.
        group: for each row its group; groups are numbered in lexicographic order.
        first: for each group the smallest row index in it.
        size: for each group its number of rows.
    """

    order: Int64[np.ndarray, " rows"]
    group: Int64[np.ndarray, " rows"]
    first: Int64[np.ndarray, " groups"]
    size: Int64[np.ndarray, " groups"]


def _packed(table: Int64[np.ndarray, "rows length"]) -> Iterator[Int64[np.ndarray, " rows"]]:
    """Columns of a table of values >= 0, several to an int64 where they are narrow; the order of rows is kept."""
    bits = max(1, int(table.max()).bit_length()) if table.size else 1
    step = max(1, 63 // bits)
    for start in range(0, table.shape[1], step):
        key = table[:, start].astype(np.int64)
        for column in range(start + 1, min(start + step, table.shape[1])):
            key = (key << bits) | table[:, column]
        yield key


def group_rows(table: Int64[np.ndarray, "rows length"]) -> Groups:
    """Sort the rows of ``table`` (all values >= 0) and number the distinct ones.

    Only rows that are still tied are sorted by the next columns.

    >>> groups = group_rows(np.array([[2, 1], [0, 9], [2, 1]]))
    >>> groups.group.tolist(), groups.first.tolist(), groups.size.tolist()
    ([1, 0, 1], [1, 0], [1, 2])
    """
    rows = len(table)
    order = np.arange(rows, dtype=np.int64)
    starts: Bool[np.ndarray, " rows"] = np.zeros(rows, dtype=bool)  # where a new group starts in `order`
    starts[:1] = True
    for key in _packed(table):
        alone = starts & np.append(starts[1:], True)
        tied = np.flatnonzero(~alone)
        if not len(tied):
            break
        block = np.cumsum(starts)[tied]
        members = order[tied]
        values = key[members]
        inner = np.lexsort((values, block))  # stable: equal rows stay in the order of the table
        order[tied] = members[inner]
        values, block = values[inner], block[inner]
        fresh = np.append(True, (values[1:] != values[:-1]) | (block[1:] != block[:-1]))
        starts[tied] |= fresh
    group = np.empty(rows, dtype=np.int64)
    group[order] = np.cumsum(starts) - 1
    begin = np.flatnonzero(starts)
    size = np.diff(np.append(begin, rows)).astype(np.int64)
    return Groups(order, group, order[begin], size)
