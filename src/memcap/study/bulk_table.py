"""The tidy table of a large store, column by column: what ``table.columns_of`` gives, without a dict per row.

Rows with the same settings and results are turned into columns together.  ``table.columns_of`` is the definition; the
tests compare the two.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from memcap.errors import ConfigurationError, nearest
from memcap.study.batch import Batch
from memcap.study.expression import Expression
from memcap.study.table import FIRST, LAST, MIDDLE, RESERVED, Columns, flatten, renamed

_ABSENT = object()
Row = dict[str, Any]
Part = dict[str, Sequence[Any]]
"""Columns of some rows."""


class _Uneven(Exception):
    """Nested results that differ in shape from row to row."""


def _columns(rows: Sequence[Row]) -> Part:
    """Dicts with the same keys in the same order, as one column per key."""
    return dict(zip(rows[0], zip(*map(dict.values, rows), strict=True), strict=True))


def _flattened(rows: Sequence[Row], prefix: str = "") -> Part:
    """As ``_columns``, nested dicts with dotted names."""
    flat: Part = {}
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


def _spread(parts: list[tuple[list[int], Part]], rows: int) -> Part:
    """Columns of parts of a batch as columns of the whole batch; what a row lacks is ``None``."""
    whole: dict[str, list[Any]] = {}
    for places, columns in parts:
        for name, values in columns.items():
            column = whole.setdefault(name, [None] * rows)
            for place, value in zip(places, values, strict=True):
                column[place] = value
    return dict(whole)


def _side_by_side(settings: list[Row], results: list[Row], *, flat: bool = False) -> tuple[Part, Part]:
    """Columns of settings and of results, in the order in which they first appear."""

    def columns(some: list[Row], others: list[Row]) -> tuple[Part, Part]:
        mine = renamed(_columns(some), RESERVED, "setting.")
        found = _columns(others) if flat else _flattened(others)
        return mine, renamed(found, RESERVED | mine.keys(), "result.")

    names = list(settings[0]), list(results[0])
    if all(map(names[0].__eq__, map(list, settings))) and all(map(names[1].__eq__, map(list, results))):
        return columns(settings, results)
    shapes = list(zip(map(tuple, settings), map(tuple, results), strict=True))
    alike: dict[tuple[tuple[str, ...], tuple[str, ...]], list[int]] = {}
    for place, shape in enumerate(shapes):
        alike.setdefault(shape, []).append(place)
    groups = list(alike.values())
    parts = [columns([settings[i] for i in places], [results[i] for i in places]) for places in groups]
    mine, found = (list(zip(groups, [part[k] for part in parts], strict=True)) for k in (0, 1))
    return _spread(mine, len(settings)), _spread(found, len(settings))


def _table(batch: Batch) -> tuple[Part, Part]:
    try:
        return _side_by_side(batch.settings, batch.results)
    except _Uneven:
        return _side_by_side(batch.settings, [flatten(r) for r in batch.results], flat=True)


class _Filter:
    """Rows where a condition is true; knows which columns there were."""

    def __init__(self, where: str) -> None:
        self._condition = Expression(where)
        self._parts = self._condition.parts()
        self._names = sorted(self._condition.names)
        self._named: set[str] = set()

    def kept(self, batch: Batch) -> Batch:
        """The rows of ``batch`` to keep."""
        if self._named.issuperset(self._names):
            batch = self._without_results(batch)
        columns = [self._simple(batch, n) for n in self._names]
        if not all(columns):  # nested, renamed or absent: look at the whole table
            mine, found = _table(batch) if len(batch) else ({}, {})
            self._named.update(RESERVED, mine, found)
            absent = [None] * len(batch)
            columns = [batch.facts.get(n, mine.get(n, found.get(n, absent))) for n in self._names]
        else:
            self._named.update(self._names)
        return batch.where(_true(self._condition, self._names, columns, len(batch)))

    def _without_results(self, batch: Batch) -> Batch:
        """``batch`` without rows for which a part of the condition is false that is asked before any result."""
        for part in self._parts:
            names = sorted(part.names)
            columns = [batch.facts.get(n) or [s.get(n) for s in batch.settings] for n in names]
            if any(dict in kinds or type(None) in kinds for kinds in (set(map(type, c)) for c in columns)):
                break  # a result may have this name
            try:
                batch = batch.where(_true(part, names, columns, len(batch)))
            except ConfigurationError:
                break  # at a row that the whole condition may not look at
        return batch

    @staticmethod
    def _simple(batch: Batch, name: str) -> Sequence[Any]:
        """A column that no other has to be made for; empty if it is not such a one."""
        if name in batch.facts:
            return batch.facts[name]
        column = [mine.get(name, _ABSENT) for mine in batch.settings]
        if _ABSENT in column:
            found = [result.get(name) for result in batch.results]
            column = [f if c is _ABSENT else c for c, f in zip(column, found, strict=True)]
        kinds = set(map(type, column))
        return [] if "." in name or dict in kinds or kinds == {type(None)} else column

    def check(self) -> None:
        """Refuse names that no row has."""
        for name in sorted(set(self._names) - self._named):
            raise ConfigurationError(f"where: no column {name!r}{nearest(name, self._named)}")


def _true(condition: Expression, names: Sequence[str], columns: Sequence[Sequence[Any]], rows: int) -> list[bool]:
    """Where ``condition`` is true; not where it misses a value."""

    def holds(row: tuple[Any, ...]) -> bool:
        return None not in row and bool(condition.evaluate(dict(zip(names, row, strict=True))))

    if not names:
        return [bool(condition.evaluate({}))] * rows
    every = list(zip(*columns, strict=True))
    if set().union(*(map(type, column) for column in columns)) <= {int, str}:  # settings repeat: ask once
        told = {row: holds(row) for row in set(every)}
        return [told[row] for row in every]
    return list(map(holds, every))


class _Growing:
    """Columns that get longer batch by batch; what a batch lacks is ``None``."""

    def __init__(self) -> None:
        self.columns: Columns = {}
        self._rows = 0

    def extend(self, part: Mapping[str, Sequence[Any]], rows: int) -> None:
        for name, values in part.items():
            if name not in self.columns:
                self.columns[name] = [None] * self._rows
            self.columns[name].extend(values)
        for name, column in self.columns.items():
            if name not in part:
                column.extend([None] * rows)
        self._rows += rows


@contextmanager
def no_collection() -> Iterator[None]:
    """Pause Python's cyclic collector: plain data has no cycles, and looking for them takes as long as the table."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@no_collection()
def columns_in_bulk(batches: Iterable[Batch], where: str | None = None) -> Columns:
    """The tidy table as lists of equal length, rows in the order of the store; as ``table.columns_of``.

    Raises:
        ConfigurationError: if ``where`` is not an expression or names no column.
    """
    filter = _Filter(where) if where else None
    facts, settings, results = _Growing(), _Growing(), _Growing()
    empty = True
    for batch in batches:
        empty = False
        if filter is not None:
            batch = filter.kept(batch)
        if len(batch):
            mine, found = _table(batch)
            facts.extend(batch.facts, len(batch))
            settings.extend(mine, len(batch))
            results.extend(found, len(batch))
    if filter is not None and not empty:
        filter.check()
    every = {**{n: facts.columns.get(n, []) for n in RESERVED}, **settings.columns, **results.columns}
    names = [*FIRST, *settings.columns, *MIDDLE, *results.columns, *LAST]
    return {name: every[name] for name in names}
