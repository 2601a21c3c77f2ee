"""From rows of a store to the points of a fit: lines along an axis, their critical values, and exponents of those."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from memcap.errors import ConfigurationError, FitError, nearest
from memcap.study.critical_fit import Scale, critical
from memcap.study.expression import Expression
from memcap.study.fits import Critical
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
        for rows in groups.values():
            first = self.settings[rows[0]]
            also = [n for n in self.varying if n in self.derived and n != axis]
            constant = [n for n in also if len({repr(self.settings[i].get(n)) for i in rows}) == 1]
            found.append(({n: first.get(n) for n in [*by, *constant]}, rows))
        return found


def critical_lines(
    cells: Cells,
    axis: str,
    response: str,
    *,
    target: float = 0.5,
    trials: str | None = None,
    rising: bool | None = None,
    scale: Scale = "logit",
    confidence: float = 0.95,
) -> list[Critical]:
    """The critical value of ``axis`` on every line of the grid; censored lines are told by the direction of the others.

    Raises:
        FitError: if a line cannot carry the question.
        ConfigurationError: if a name or an option is wrong.
    """
    lines = cells.lines(axis)
    x, y = cells.column(axis), cells.column(response)
    counts = None if trials is None else cells.column(trials)
    if rising is None:
        rising = _direction(lines, x, y, target)
    return [
        critical(
            [x[i] for i in rows],
            [y[i] for i in rows],
            target=target,
            trials=None if counts is None else [float(counts[i]) for i in rows],
            groups=[cells.rows[i]["seed"] for i in rows],
            rising=rising,
            scale=scale,
            confidence=confidence,
            axis=axis,
            response=response,
            settings=settings,
        )
        for settings, rows in lines
    ]


def _direction(lines: list[tuple[Row, list[int]]], x: list[Any], y: list[Any], target: float) -> bool | None:
    """The direction that most lines on both sides of the target show; ``None`` if there is no such line."""
    votes: Counter[bool] = Counter()
    for _, rows in lines:
        values = [float(y[i]) for i in rows]
        if min(values) < target <= max(values):
            order = stats.kendalltau([x[i] for i in rows], values).statistic
            if math.isfinite(order) and order != 0:
                votes[bool(order > 0)] += 1
    return None if votes[True] == votes[False] else votes[True] > votes[False]


def points_of_lines(lines: Sequence[Critical], names: Sequence[str]) -> tuple[Points, list[float], list[str | None]]:
    """Columns, spreads and censoring marks for ``fit_power_law``, one point per line.

    A spread is the half width of the interval in logarithms over its normal quantile.  Measured widths are themselves
    rough: none counts as less than a quarter of the median, and lines without a finite interval count as the median.

    Raises:
        FitError: if there is no line.
        ConfigurationError: if a line has no setting of a given name.
    """
    if not lines:
        raise FitError("no line to fit")
    points: Points = {lines[0].axis: [line.value for line in lines]}
    for name in names:
        for line in lines:
            if name not in line.settings:
                raise ConfigurationError(
                    f"{name!r} does not vary between the lines{nearest(name, line.settings)}; "
                    f"what does: {', '.join(line.settings) or 'nothing'}"
                )
        points[name] = [line.settings[name] for line in lines]
    widths = [_half_width(line) for line in lines]
    seen = [w for w in widths if w is not None and w > 0]
    median = float(np.median(seen)) if seen else 1.0
    spread = [median if not w else max(w, median / 4) for w in widths]
    return points, spread, [line.censored for line in lines]


def _half_width(line: Critical) -> float | None:
    if line.censored or not (line.low > 0 and math.isfinite(line.high)):
        return None
    return math.log(line.high / line.low) / (2 * float(stats.norm.ppf(0.5 + line.confidence / 2)))


def points_of_cells(cells: Cells, response: str, names: Sequence[str]) -> Points:
    """Columns for ``fit_power_law``, one point per setting: the geometric mean of ``response`` over seeds.

    Raises:
        FitError: if a value is not positive.
        ConfigurationError: if there is no such column.
    """
    columns: Mapping[str, list[Any]] = {n: cells.column(n) for n in (response, *names)}
    groups: dict[str, list[int]] = defaultdict(list)
    for i in range(len(cells.rows)):
        groups[repr([columns[n][i] for n in names])].append(i)
    points: Points = {n: [columns[n][rows[0]] for rows in groups.values()] for n in names}
    if not all(isinstance(v, int | float) and v > 0 for v in columns[response]):
        raise FitError(f"a power law needs positive numbers, but some {response} are not")
    points[response] = [
        math.exp(math.fsum(math.log(columns[response][i]) for i in r) / len(r)) for r in groups.values()
    ]
    return points
