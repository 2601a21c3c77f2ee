"""What every table reader hands on: the sequence column, the label column, and where each row came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64

from memcap.data.origin import Origin
from memcap.errors import DataError, nearest


@dataclass(frozen=True, eq=False)
class Table:
    """Two columns of a file.

    Attributes:
        items: raw sequences; ``labels``: raw labels (checked later); ``rows``: 1-based line or row of each.
        origin: file name and what ``rows`` counts; ``label_column``: its name.
    """

    items: Sequence[Any]
    labels: Sequence[Any]
    rows: Int64[np.ndarray, " rows"]
    origin: Origin
    label_column: str

    def at(self, row: int) -> str:
        """The place of the 1-based ``row`` of the table, for messages."""
        return self.origin.at(int(self.rows[row - 1]))


def choose_columns(name: str, columns: Sequence[str], sequence: str | None, label: str | None) -> tuple[str, str]:
    """The names of the sequence and label columns; columns called ``sequence`` and ``label`` need not be named.

    Raises:
        DataError: if a column is missing (lists the columns and the nearest name), there twice, or both are one.
    """
    listed = ", ".join(map(repr, columns)) or "none"
    chosen = []
    for role, wanted in (("sequence", sequence), ("label", label)):
        if wanted is None and role not in columns:
            raise DataError(f"{name}: which column is the {role}? Pass {role}=...; columns: {listed}")
        column = role if wanted is None else wanted
        if column not in columns:
            raise DataError(f"{name}: no column {column!r}{nearest(column, columns)}; columns: {listed}")
        if list(columns).count(column) > 1:
            raise DataError(f"{name}: column {column!r} is there {list(columns).count(column)} times; rename one")
        chosen.append(column)
    if chosen[0] == chosen[1]:
        raise DataError(f"{name}: column {chosen[0]!r} is both sequence and label; name two different columns")
    return chosen[0], chosen[1]
