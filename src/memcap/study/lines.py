"""From rows of a store to the points of a fit: lines along an axis, their critical values, and exponents of those."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from memcap.errors import ConfigurationError, FitError, nearest
from memcap.study.critical_fit import critical
from memcap.study.finished_cells import Cells, Points, Row
from memcap.study.fits import Critical, Scale
from memcap.study.shared_seeds import Sample


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
    leave_out: frozenset[int] = frozenset(),
) -> list[Critical]:
    """The critical value of ``axis`` on every line of the grid; censored lines are told by the direction of the others.

    Cells of the seeds in ``leave_out`` are not used, except for that direction; lines that have no others are missing.

    Raises:
        FitError: if a line cannot carry the question.
        ConfigurationError: if a name or an option is wrong.
    """
    lines = cells.lines(axis)
    x, y = cells.column(axis), cells.column(response)
    counts = None if trials is None else cells.column(trials)
    if rising is None:
        rising = _direction(lines, x, y, target)
    if leave_out:
        kept = [(settings, [i for i in rows if cells.rows[i]["seed"] not in leave_out]) for settings, rows in lines]
        lines = [(settings, rows) for settings, rows in kept if rows]
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


def sample_of_lines(lines: Sequence[Critical], names: Sequence[str], whole: Sequence[Critical] | None = None) -> Sample:
    """What ``fit_power_law`` is given, one point per line.

    A spread is the half width of the interval in logarithms over its normal quantile.  Measured widths are themselves
    rough: none counts as less than a quarter of the median, and lines without a finite interval count as the median.

    Args:
        lines: the points.
        names: of their settings, the factors of the law.
        whole: the lines of all seeds, if ``lines`` leaves some out; spreads are taken from them.

    Raises:
        FitError: if there is no line, or if most of those that cross have no bounded interval.
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
    every = lines if whole is None else whole
    _refuse_unbounded(every)
    widths = {repr(line.settings): _half_width(line) for line in every}
    seen = [w for w in widths.values() if w is not None and w > 0]
    median = float(np.median(seen)) if seen else 1.0
    found = [widths[repr(line.settings)] for line in lines]
    spread = [median if not w else max(w, median / 4) for w in found]
    return Sample(points, spread, [line.censored for line in lines])


def _refuse_unbounded(lines: Sequence[Critical]) -> None:
    """Values that could be anything carry no law."""
    crossing = [line for line in lines if not line.censored]
    open_ended = [line for line in crossing if _half_width(line) is None]
    if 2 * len(open_ended) > len(crossing):
        line = open_ended[0]
        at = " ".join(f"{k}={v}" for k, v in line.settings.items())
        raise FitError(
            f"too uncertain: {len(open_ended)} of the {len(crossing)} lines that cross {line.target:g} have no bounded "
            f"interval ({at}: {line.describe()}); more seeds, or more {line.axis} around the crossing"
        )


def shared_seeds(lines: Sequence[tuple[Row, list[int]]], cells: Cells) -> list[int]:
    """All seeds of the lines, if some seed lies on more than one of them; else none."""
    on = [{cells.rows[i]["seed"] for i in rows} for _, rows in lines]
    together = set().union(*on)
    return sorted(together) if sum(map(len, on)) > len(together) else []


def _half_width(line: Critical) -> float | None:
    if line.censored or not (line.low > 0 and math.isfinite(line.high)):
        return None
    return math.log(line.high / line.low) / (2 * float(stats.norm.ppf(0.5 + line.confidence / 2)))


def points_of_cells(
    cells: Cells, response: str, names: Sequence[str], leave_out: frozenset[int] = frozenset()
) -> Points:
    """Columns for ``fit_power_law``, one point per setting: the geometric mean of ``response`` over seeds.

    Settings that vary but are not in the law keep their points apart: what the law leaves out is seen as scatter.
    Cells of the seeds in ``leave_out`` are not used.

    Raises:
        FitError: if a value is not positive.
        ConfigurationError: if there is no such column.
    """
    columns: Mapping[str, list[Any]] = {n: cells.column(n) for n in (response, *names)}
    groups = [[i for i in rows if cells.rows[i]["seed"] not in leave_out] for _, rows in cell_groups(cells, names)]
    groups = [rows for rows in groups if rows]
    points: Points = {n: [columns[n][rows[0]] for rows in groups] for n in names}
    if not all(isinstance(v, int | float) and v > 0 for v in columns[response]):
        raise FitError(f"a power law needs positive numbers, but some {response} are not")
    points[response] = [math.exp(math.fsum(math.log(columns[response][i]) for i in r) / len(r)) for r in groups]
    return points


def cell_groups(cells: Cells, names: Sequence[str]) -> list[tuple[Row, list[int]]]:
    """The cells that differ in nothing but the seed, with their settings of the given names."""
    groups: dict[str, list[int]] = defaultdict(list)
    for i in range(len(cells.rows)):
        groups[repr([cells.rows[i].get(n) for n in (*names, *cells.varying)])].append(i)
    return [({n: cells.rows[rows[0]].get(n) for n in names}, rows) for rows in groups.values()]
