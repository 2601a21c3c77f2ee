"""A store's rows as one tidy table: columns of plain values, then a pandas frame.

Columns, in this order: ``identity``, ``task``; one per setting; ``seed``, ``state``; one per result, nested ones as
``outer.inner``; then how it went (``seconds`` ... ``error``).  A value that a row does not have is ``None`` in the
columns and missing in the frame; NaN and infinities stay what they are.  A result with the name of another column is
called ``result.name``.  ``columns_of`` is the readable definition, row by row; ``bulk_table`` does the same in bulk.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any

import pandas as pd

from memcap.errors import ConfigurationError, nearest
from memcap.study.batch import FROM_OUTCOME
from memcap.study.cell import canonical
from memcap.study.expression import Expression
from memcap.study.record import Record, State

FIRST = ("identity", "task")
MIDDLE = ("seed", "state")
LAST = (
    "seconds",
    "cpu_seconds",
    "peak_memory",
    "started",
    "finished",
    "attempts",
    "host",
    "device",
    "data_hash",
    "task_version",
    "versions",
    "error_type",
    "error",
)
RESERVED = frozenset({*FIRST, *MIDDLE, *LAST})
Columns = dict[str, list[Any]]


def flatten(result: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested results with dotted names; lists stay lists.

    >>> flatten({"recall": 1.0, "snr": {"signal": 2.0}})
    {'recall': 1.0, 'snr.signal': 2.0}
    """
    flat: dict[str, Any] = {}
    for name, value in result.items():
        if isinstance(value, dict) and value:
            flat.update(flatten(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


class _Group:
    """Columns that appear while rows arrive; what a row lacks is ``None``."""

    def __init__(self) -> None:
        self.columns: Columns = {}
        self._order: list[str] | None = None
        self._ordered: list[list[Any]] = []
        self._rows = -1

    def put(self, row: int, values: dict[str, Any]) -> None:
        if self._order == list(values) and self._rows == row:  # as in most rows: the columns of the row before
            for column, value in zip(self._ordered, values.values(), strict=True):
                column.append(value)
            self._rows += 1
            return
        for name, value in values.items():
            column = self.columns.setdefault(name, [])
            if len(column) < row:
                column.extend([None] * (row - len(column)))
            column.append(value)
        self._order = list(values)
        self._ordered = [self.columns[name] for name in values]
        self._rows = row + 1 if all(len(c) == row + 1 for c in self.columns.values()) else -1

    def pad(self, rows: int) -> None:
        for column in self.columns.values():
            column.extend([None] * (rows - len(column)))


def renamed(values: dict[str, Any], taken: Set[str], prefix: str) -> dict[str, Any]:
    """``values`` by name, with a prefix on the names that another column has."""
    if values.keys().isdisjoint(taken):
        return values
    return {(prefix + n if n in taken else n): v for n, v in values.items()}


def columns_of(records: Iterable[Record], where: str | None = None) -> Columns:
    """The tidy table as lists of equal length, rows in the order of the store.

    Args:
        records: rows of a store.
        where: an expression over the columns; rows where it is true stay, rows that lack a value it needs do not.

    Raises:
        ConfigurationError: if ``where`` is not an expression or names no column.
    """
    condition = Expression(where) if where else None
    named: set[str] = set()
    settings, results = _Group(), _Group()
    fixed: Columns = {name: [] for name in (*FIRST, *MIDDLE, *LAST)}
    rows = total = 0
    versions: dict[str, str] = {}
    versions_text = ""
    for record in records:
        total += 1
        outcome = record.outcome
        mine = renamed(record.settings, RESERVED, "setting.")
        found = flatten(outcome.result) if outcome is not None and record.state is State.DONE else {}
        found = renamed(found, RESERVED | mine.keys(), "result.")
        facts: dict[str, Any] = dict.fromkeys(LAST)
        facts.update(attempts=record.attempts, task_version=record.task_version)
        if outcome is not None:
            for name in FROM_OUTCOME:
                facts[name] = getattr(outcome, name)
            if outcome.versions is not versions:  # rows of one run share them
                versions, versions_text = outcome.versions, canonical(outcome.versions)
            facts["versions"] = versions_text
        facts.update(identity=record.identity, task=record.task, seed=record.seed, state=str(record.state))
        if condition is not None:
            if not condition.names <= named:
                named.update(facts, mine, found)
            values = {n: facts.get(n, mine.get(n, found.get(n))) for n in condition.names}
            if any(v is None for v in values.values()) or not condition.evaluate(values):
                continue
        settings.put(rows, mine)
        results.put(rows, found)
        for name, column in fixed.items():
            column.append(facts[name])
        rows += 1
    if condition is not None and total:
        for name in sorted(condition.names - named):
            raise ConfigurationError(f"where: no column {name!r}{nearest(name, named)}")
    settings.pad(rows)
    results.pad(rows)
    names = [*FIRST, *settings.columns, *MIDDLE, *results.columns, *LAST]
    every = {**fixed, **settings.columns, **results.columns}
    return {name: every[name] for name in names}


def frame_of(columns: Columns) -> pd.DataFrame:
    """The columns as a pandas frame: whole numbers stay whole numbers where some are missing."""
    return pd.DataFrame({name: _series(values) for name, values in columns.items()})


def _series(values: list[Any]) -> Any:
    kinds = {type(v) for v in values}
    missing = type(None) in kinds
    kinds.discard(type(None))
    if kinds == {int}:
        if all(v is None or -(2**63) <= v < 2**63 for v in values):
            return pd.Series(values, dtype="Int64" if missing else "int64")
        return pd.Series(values, dtype=object)
    if kinds == {bool}:
        return pd.Series(values, dtype="boolean" if missing else "bool")
    if kinds and kinds <= {int, float}:
        return pd.Series([float("nan") if v is None else float(v) for v in values], dtype="float64")
    if kinds == {str}:
        return pd.Series(values, dtype="str")
    return pd.Series(values, dtype=object)
