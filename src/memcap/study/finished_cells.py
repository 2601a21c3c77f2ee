"""The finished cells of one measurement as rows for a fit, and the lines they form; no statistics (``lines.py``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from memcap.errors import ConfigurationError, FitError, nearest
from memcap.study.expression import Expression
from memcap.study.record import Record, State
from memcap.study.table import flatten

Row = dict[str, Any]
Points = dict[str, list[Any]]


class Cells:
    """Finished cells of one measurement, with what varies among them.

    Args:
        records: rows of a store.
        task: which measurement, needed if there are several.
        where: an expression; only cells where it is true.
        derived: settings that follow from others and therefore do not tell lines apart.

    Raises:
        FitError: if no cell is done.
        ConfigurationError: if the task is unknown or not said.
    """

    def __init__(
        self,
        records: Iterable[Record],
        *,
        task: str | None = None,
        where: str | None = None,
        derived: Sequence[str] = (),
    ) -> None:
        done = [r for r in records if r.state is State.DONE and r.outcome is not None]
        tasks = sorted({r.task for r in done})
        if task is None and len(tasks) > 1:
            raise ConfigurationError(f"the study holds several measurements ({', '.join(tasks)}); say which: task=...")
        if task is not None and task not in tasks:
            raise ConfigurationError(
                f"no finished cell of task {task!r}{nearest(task, tasks)}; tasks: {', '.join(tasks)}"
            )
        condition = Expression(where) if where else None
        self.rows: list[Row] = []
        self.settings: list[Row] = []
        for record in done:
            if task is not None and record.task != task:
                continue
            outcome = record.outcome
            row = {**flatten(outcome.result if outcome else {}), **record.settings, "seed": record.seed}
            if condition is None or condition.evaluate(row):
                self.rows.append(row)
                self.settings.append(record.settings)
        if not self.rows:
            raise FitError("no finished cell to fit" + (f" where {where}" if where else ""))
        self.names = list(self.settings[0])
        kinds = {name: {repr(s.get(name)) for s in self.settings} for name in self.names}
        self.varying = [name for name in self.names if len(kinds[name]) > 1]
        self.derived = set(derived)

    def column(self, name: str) -> list[Any]:
        """One value per cell.

        Raises:
            ConfigurationError: if no cell has it.
            FitError: if some cells lack it.
        """
        known = sorted({n for row in self.rows for n in row})
        if name not in known:
            raise ConfigurationError(f"no column {name!r}{nearest(name, known)}")
        values = [row.get(name) for row in self.rows]
        if any(v is None for v in values):
            raise FitError(f"{sum(v is None for v in values)} of {len(values)} cells have no {name!r}")
        return values

    def lines(self, axis: str) -> list[tuple[Row, list[int]]]:
        """Settings that are constant along each line of ``axis``, and the line's rows."""
        if axis not in self.names:
            raise ConfigurationError(f"no setting {axis!r}{nearest(axis, self.names)}")
        by = [n for n in self.varying if n != axis and n not in self.derived]
        groups: dict[str, list[int]] = defaultdict(list)
        for i, settings in enumerate(self.settings):
            groups[repr([settings.get(n) for n in by])].append(i)
        found = []
        for rows in sorted(groups.values(), key=self._place(by)):
            first = self.settings[rows[0]]
            also = [n for n in self.varying if n in self.derived and n != axis]
            constant = [n for n in also if len({repr(self.settings[i].get(n)) for i in rows}) == 1]
            found.append(({n: first.get(n) for n in [*by, *constant]}, rows))
        return found

    def _place(self, names: Sequence[str]) -> Callable[[list[int]], tuple[float, ...]]:
        """Orders lines by their settings, the first slowest: numbers by size, names as they come first."""
        first = {name: list(dict.fromkeys(repr(s.get(name)) for s in self.settings)) for name in names}

        def rank(name: str, value: Any) -> float:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return float(value) if number else float(first[name].index(repr(value)))

        return lambda rows: tuple(rank(name, self.settings[rows[0]].get(name)) for name in names)
