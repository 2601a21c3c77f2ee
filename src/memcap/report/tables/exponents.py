"""Exponents with intervals, and the collapse of all curves onto one by the fitted law."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from memcap.report.cells import Cells
from memcap.report.tables.spread import spread
from memcap.study.fits import Critical, Exponent

LAW_COLUMNS = ["source", "x", "y", "y_low", "y_high", "censored"]


def exponent_rows(exponents: Mapping[str, Exponent]) -> pd.DataFrame:
    """One row per exponent and source.

    Args:
        exponents: source (``measured``, ``predicted``, …) -> fitted law.

    Returns:
        ``factor`` (the setting), ``source, value, low, high, response, n_points, r_squared, method``.
    """
    rows = [
        (name, source, value, low, high, law.response, law.n_points, law.r_squared, law.method)
        for source, law in exponents.items()
        for name, value, low, high in zip(law.names, law.values, law.lows, law.highs, strict=True)
    ]
    columns = ["factor", "source", "value", "low", "high", "response", "n_points", "r_squared", "method"]
    return pd.DataFrame(rows, columns=columns)


def law_at(law: Exponent, settings: pd.DataFrame) -> np.ndarray:
    """The fitted law at each row of ``settings``.

    >>> law = Exponent(("d",), (2.0,), (2.0,), (2.0,), 0.0, 1.0, (0.0,), 3, "exact")
    >>> law_at(law, pd.DataFrame({"d": [1.0, 3.0]})).round(12).tolist()
    [1.0, 9.0]
    """
    logarithm: np.ndarray = np.full(len(settings), law.intercept)
    for name, value in zip(law.names, law.values, strict=True):
        logarithm = logarithm + value * np.log(settings[name].to_numpy(float))
    return np.asarray(np.exp(logarithm))


def law_points(criticals: Iterable[Critical], exponents: Mapping[str, Exponent], *, x: str) -> pd.DataFrame:
    """Critical values against one setting and the fitted laws through them, for a log-log chart.

    Args:
        criticals: fitted crossings that vary in ``x`` alone.
        exponents: source -> law in ``x`` (laws with other factors are left out).
        x: the setting on the horizontal axis; positive.

    Returns:
        ``source`` (``measured``, or ``<source> law``), ``x, y, y_low, y_high, censored``.
    """
    rows: list[tuple[str, float, float, float, float, str]] = []
    for line in criticals:
        value = line.settings.get(x)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            rows.append(("measured", float(value), line.value, line.low, line.high, line.censored or ""))
    rows.sort(key=lambda row: row[1])
    if len(rows) > 1:
        ends = np.geomspace(rows[0][1], rows[-1][1], 2)
        for source, law in exponents.items():
            if law.names == (x,):
                for at, height in zip(ends, law_at(law, pd.DataFrame({x: ends})), strict=True):
                    rows.append((f"{source} law", float(at), float(height), math.nan, math.nan, ""))
    return pd.DataFrame(rows, columns=LAW_COLUMNS)


def collapse_points(cells: Cells, law: Exponent, *, along: str, outcome: str, series: str) -> pd.DataFrame:
    """Every measured point with its axis divided by the fitted law: one curve if the law holds.

    Args:
        cells: finished cells are used.
        law: for the critical value of ``along``.
        along: the setting that the law predicts, e.g. ``samples``.
        outcome: the result on the vertical axis.
        series: setting that tells the curves apart.

    Returns:
        ``scaled`` (along / law), the settings in the law, ``x`` (value of ``along``), ``series, value, value_low,
        value_high, n``.
    """
    by = list(dict.fromkeys([series, along, *law.names]))
    table = spread(cells.done, by, outcome)
    table.insert(0, "scaled", table[along].astype(float) / law_at(law, table))
    table["x"], table["series"] = table[along], table[series]
    return table.sort_values(["series", "scaled"], kind="stable").reset_index(drop=True)
