"""One axis of a plot as numbers: its values, where they stand, and the edges of the bands around them.

Edges lie half way between neighbours (in the logarithm on a log axis) and the outer bands are as wide as the inner
ones, so that the first row and column of a heatmap are drawn in full.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

Kind = Literal["log", "linear", "category"]


@dataclass(frozen=True)
class Axis:
    """An axis of a plot.

    Attributes:
        name: the setting.
        kind: ``log`` (positive numbers spread over a factor of 3 or more), ``linear`` or ``category`` (names stand
            at 0, 1, 2, …).
        values: the distinct values in order.
        at: where each stands on the scale.
        low: lower edge of each band.
        high: upper edge of each band.
    """

    name: str
    kind: Kind
    values: tuple[Any, ...]
    at: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def domain(self) -> tuple[float, float]:
        """From the first edge to the last."""
        return self.low[0], self.high[-1]

    def place(self, column: pd.Series) -> list[float]:
        """Where the values of a column stand."""
        where = dict(zip(self.values, self.at, strict=True))
        return [where[plain(v)] for v in column]


def plain(value: Any) -> Any:
    """A NumPy scalar as the Python number it holds; anything else as it is; missing as a dash."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "–"
    return value.item() if isinstance(value, np.generic) else value


def decades(low: float, high: float) -> list[float]:
    """Round values for the ticks of a log axis from ``low`` to ``high``: powers of ten; more on a short one.

    >>> decades(90.0, 2e4), decades(3.0, 60.0)
    ([100.0, 300.0, 1000.0, 3000.0, 10000.0], [5.0, 10.0, 20.0, 50.0])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    extent = math.log10(high / low)
    steps = (1.0,) if extent >= 3 else (1.0, 3.0) if extent >= 1.5 else (1.0, 2.0, 5.0)
    values = [step * 10.0**power for power in powers for step in steps]
    found = [v for v in values if low <= v <= high]
    return found[:: -(-len(found) // 8)] if found else [low, high]


def axis(name: str, column: pd.Series) -> Axis:
    """The axis for the values of ``column``.

    >>> axis("dimension", pd.Series([8, 32, 8, 128])).low
    (4.0, 16.0, 64.0)
    """
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if not numeric or bool(column.isna().any()) or not bool(np.isfinite(column.to_numpy(float)).all()):
        values = sorted({plain(v) for v in column}, key=lambda v: (isinstance(v, str), str(type(v)), v))
        at = tuple(float(i) for i in range(len(values)))
        return Axis(name, "category", tuple(values), at, tuple(a - 0.5 for a in at), tuple(a + 0.5 for a in at))
    values = sorted({plain(v) for v in column})
    points = np.array(values, float)
    log = bool(points[0] > 0 and points[-1] >= 3 * points[0])
    scale = np.log2(points) if log else points
    if len(scale) == 1:
        width = 0.5 if log else max(abs(float(scale[0])) * 0.25, 0.5)
        edges = np.array([scale[0] - width, scale[0] + width])
    else:
        middle = (scale[1:] + scale[:-1]) / 2
        edges = np.concatenate([[2 * scale[0] - middle[0]], middle, [2 * scale[-1] - middle[-1]]])
    if log:
        edges = 2.0**edges
    kind: Kind = "log" if log else "linear"
    at = tuple(float(p) for p in points)
    return Axis(name, kind, tuple(values), at, tuple(map(float, edges[:-1])), tuple(map(float, edges[1:])))
