"""Where rows come from, so that every message about data can name the place.  It reads nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """The name of a source and what its row numbers count.

    Attributes:
        name: file name as the caller gave it, or ``""`` for arrays.
        unit: what a row number is: ``"line"`` (CSV, TSV, JSONL), ``"row"`` (Parquet, arrays), or the unit of a text
            window's first position: ``"word"``, ``"character"``, ``"byte"``, ``"integer"``, ``"token"``.
    """

    name: str = ""
    unit: str = "row"

    def at(self, row: int) -> str:
        """The place of one row, for messages.

        >>> Origin("cities.csv", "line").at(3), Origin().at(3)
        ('cities.csv, line 3', 'row 3')
        """
        return f"{self.name}, {self.unit} {row}" if self.name else f"{self.unit} {row}"

    def prefix(self) -> str:
        """``"cities.csv: "``, or nothing for arrays."""
        return f"{self.name}: " if self.name else ""


def shorten(text: str, limit: int = 60) -> str:
    """``text`` cut to ``limit`` characters for a message."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def brief(value: object, limit: int = 60) -> str:
    """``repr(value)`` cut to ``limit`` characters; of what has none (an integer of 5,000 digits) the type."""
    try:
        return shorten(repr(value), limit)
    except (ValueError, RecursionError):
        return f"<{type(value).__name__} too large to print>"
