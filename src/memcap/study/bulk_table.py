"""The tidy table of a large store, column by column: what ``table.columns_of`` gives, without a dict per row.

Rows with the same settings and results are turned into columns together.  ``table.columns_of`` is the definition; the
tests compare the two.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memcap.errors import ConfigurationError, nearest
from memcap.study.batch import Batch
from memcap.study.expression import Expression
from memcap.study.table import FIRST, LAST, MIDDLE, RESERVED, Columns, flatten, renamed


class _Uneven(Exception):
    """Nested results that differ in shape from row to row."""


def _columns(rows: list[dict[str, Any]]) -> Columns:
    """Dicts with the same keys in the same order, as one list per key."""
    return {n: list(c) for n, c in zip(rows[0], zip(*map(dict.values, rows), strict=True), strict=True)}


def _flattened(rows: list[dict[str, Any]], prefix: str = "") -> Columns:
    """As ``_columns``, nested dicts with dotted names."""
    flat: Columns = {}
    for name, column in _columns(rows).items():
        if dict in set(map(type, column)):
            shapes = {tuple(v) if type(v) is dict else None for v in column}
            if len(shapes) > 1:
                raise _Uneven
            if shapes != {()}:
                flat.update(_flattened(column, f"{prefix}{name}."))
                continue
        flat[prefix + name] = column
    return flat


def _spread(parts: list[tuple[list[int], Columns]], rows: int) -> Columns:
    """Columns of parts of a batch as columns of the whole batch; what a row lacks is ``None``."""
    if len(parts) == 1:
        return parts[0][1]
    whole: Columns = {}
    for places, columns in parts:
        for name, values in columns.items():
            column = whole.setdefault(name, [None] * rows)
            for place, value in zip(places, values, strict=True):
                column[place] = value
    return whole


def _side_by_side(batch: Batch, results: list[dict[str, Any]], *, flat: bool = False) -> tuple[Columns, Columns]:
    """Columns of settings and of results, in the order in which they first appear."""
    alike: dict[tuple[tuple[str, ...], tuple[str, ...]], list[int]] = {}
    for place, (mine, found) in enumerate(zip(batch.settings, results, strict=True)):
        alike.setdefault((tuple(mine), tuple(found)), []).append(place)
    settings_parts, results_parts = [], []
    for places in alike.values():
        mine = renamed(_columns([batch.settings[i] for i in places]), RESERVED, "setting.")
        rows = [results[i] for i in places]
        found = renamed(_columns(rows) if flat else _flattened(rows), RESERVED | mine.keys(), "result.")
        settings_parts.append((places, mine))
        results_parts.append((places, found))
    return _spread(settings_parts, len(batch)), _spread(results_parts, len(batch))


def _table(batch: Batch) -> tuple[Columns, Columns]:
    try:
        return _side_by_side(batch, batch.results)
    except _Uneven:
        return _side_by_side(batch, [flatten(r) for r in batch.results], flat=True)


def _keep(condition: Expression, batch: Batch, settings: Columns, results: Columns) -> list[bool]:
    names = sorted(condition.names)
    absent = [None] * len(batch)
    columns = [batch.facts.get(n, settings.get(n, results.get(n, absent))) for n in names]
    if not names:
        return [bool(condition.evaluate({}))] * len(batch)
    return [
        None not in row and bool(condition.evaluate(dict(zip(names, row, strict=True))))
        for row in zip(*columns, strict=True)
    ]


class _Growing:
    """Columns that get longer batch by batch; what a batch lacks is ``None``."""

    def __init__(self) -> None:
        self.columns: Columns = {}
        self._rows = 0

    def extend(self, part: Columns, rows: int) -> None:
        for name, values in part.items():
            self.columns.setdefault(name, [None] * self._rows).extend(values)
        for name, column in self.columns.items():
            if name not in part:
                column.extend([None] * rows)
        self._rows += rows


def columns_in_bulk(batches: Iterable[Batch], where: str | None = None) -> Columns:
    """The tidy table as lists of equal length, rows in the order of the store; as ``table.columns_of``.

    Raises:
        ConfigurationError: if ``where`` is not an expression or names no column.
    """
    condition = Expression(where) if where else None
    named: set[str] = set()
    facts, settings, results = _Growing(), _Growing(), _Growing()
    empty = True
    for batch in batches:
        empty = False
        mine, found = _table(batch)
        if condition is not None:
            if not condition.names <= named:
                named.update(RESERVED, mine, found)
            keep = _keep(condition, batch, mine, found)
            if not any(keep):
                continue
            if not all(keep):
                batch = batch.where(keep)
                mine, found = _table(batch)
        facts.extend(batch.facts, len(batch))
        settings.extend(mine, len(batch))
        results.extend(found, len(batch))
    if condition is not None and not empty:
        for name in sorted(condition.names - named):
            raise ConfigurationError(f"where: no column {name!r}{nearest(name, named)}")
    every = {**{n: facts.columns.get(n, []) for n in RESERVED}, **settings.columns, **results.columns}
    names = [*FIRST, *settings.columns, *MIDDLE, *results.columns, *LAST]
    return {name: every[name] for name in names}
