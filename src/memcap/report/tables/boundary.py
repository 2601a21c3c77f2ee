"""The boundary of a phase diagram: where each column of the plane crosses the target, measured and predicted.

The measured boundary comes from ``memcap.study`` fits (``Critical``: value, interval, censored ends); the predicted
one is read off the predictions in the cells by interpolation.  Nothing here fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from memcap.report.cells import Cells
from memcap.report.tables.axis import Axis, axis
from memcap.study.fits import Critical

COLUMNS = ["source", "x", "x_at", "y", "y_low", "y_high", "censored"]


def crossing(at: np.ndarray, value: np.ndarray, target: float, *, log: bool) -> tuple[float, str]:
    """Where a sampled curve first crosses ``target``: the place and whether it is censored.

    Args:
        at: increasing places, at least one.
        value: the curve there.
        target: the level.
        log: interpolate along the logarithm of ``at``.

    Returns:
        The place by linear interpolation and ``""``; for a curve that stays on one side the end of ``at`` beyond
        which it would cross and ``"above"`` or ``"below"`` (of a curve that rises; the other way round if it falls).

    >>> crossing(np.array([1.0, 4.0]), np.array([0.25, 0.75]), 0.5, log=True)
    (2.0, '')
    >>> crossing(np.array([1.0, 4.0]), np.array([0.0, 0.1]), 0.5, log=True)
    (4.0, 'above')
    """
    side = value - target
    for i in range(len(at) - 1):
        if side[i] == 0:
            return float(at[i]), ""
        if side[i] * side[i + 1] < 0:
            share = side[i] / (side[i] - side[i + 1])
            if log:
                return float(math.exp((1 - share) * math.log(at[i]) + share * math.log(at[i + 1]))), ""
            return float((1 - share) * at[i] + share * at[i + 1]), ""
    if side[-1] == 0:
        return float(at[-1]), ""
    rising = bool(value[-1] >= value[0])
    beyond_top = (side[-1] < 0) == rising
    return (float(at[-1]), "above") if beyond_top else (float(at[0]), "below")


def predicted_boundary(cells: Cells, *, x: str, y: str, predicted: str, target: float) -> pd.DataFrame:
    """Where the predictions in the cells cross the target along y, one row per value of x.

    Args:
        cells: of the panel: only x, y and the seed vary.
        x: setting of the columns.
        y: numeric setting along which the crossing is sought.
        predicted: column of the predictions.
        target: the level.

    Returns:
        ``source`` (``predicted``), ``x, x_at, y`` (the crossing), ``y_low, y_high`` (equal to y: no interval),
        ``censored`` (empty, ``above`` or ``below``).
    """
    across, up = axis(x, cells.frame[x]), axis(y, cells.frame[y])
    rows = cells.frame[[x, y, predicted]].dropna()
    found: list[tuple[str, Any, float, float, float, float, str]] = []
    if up.kind == "category":
        return pd.DataFrame(found, columns=COLUMNS)
    for value, at in zip(across.values, across.at, strict=True):
        line = rows[rows[x] == value].groupby(y)[predicted].mean().sort_index()
        if len(line):
            place, censored = crossing(line.index.to_numpy(float), line.to_numpy(float), target, log=up.kind == "log")
            found.append(("predicted", value, at, place, place, place, censored))
    return pd.DataFrame(found, columns=COLUMNS)


def measured_boundary(
    criticals: Iterable[Critical], *, across: Axis, y: str, panel: Mapping[str, object] | None = None
) -> pd.DataFrame:
    """The fitted crossings that belong to one plane, in the columns of ``predicted_boundary``.

    Args:
        criticals: fitted crossings; those along another axis or at other settings than ``panel`` are left out.
        across: the x axis of the plane.
        y: the axis along which the crossings were sought.
        panel: settings that are fixed in this plane.
    """
    place = dict(zip(across.values, across.at, strict=True))
    found = []
    for line in criticals:
        here = all(line.settings.get(k, v) == v for k, v in (panel or {}).items())
        if line.axis in ("", y) and here and line.settings.get(across.name) in place:
            value = line.settings[across.name]
            found.append(("measured", value, place[value], line.value, line.low, line.high, line.censored or ""))
    table = pd.DataFrame(found, columns=COLUMNS)
    return table.sort_values("x_at", kind="stable").reset_index(drop=True)


def clipped(boundary: pd.DataFrame, up: Axis) -> pd.DataFrame:
    """The boundary as it can be drawn on the plane: interval ends cut at the plane's edges."""
    low, high = up.domain
    table = boundary.copy()
    for name in ("y", "y_low", "y_high"):
        table[name] = table[name].astype(float).clip(low, high)
    return table
