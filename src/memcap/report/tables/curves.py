"""Curves: a result along one setting, one series per value of another, with intervals over seeds and the prediction."""

from __future__ import annotations

import pandas as pd

from memcap.report.cells import Cells
from memcap.report.tables.axis import axis
from memcap.report.tables.spread import spread


def curve_points(
    cells: Cells, *, x: str, outcome: str, series: str | None = None, predicted: str | None = None
) -> pd.DataFrame:
    """One row per point of a curve.

    Args:
        cells: of the panel: only x, ``series`` and the seed vary.
        x: setting along the curve.
        outcome: result to show.
        series: setting that tells the curves apart.
        predicted: column with the prediction of the same result.

    Returns:
        ``x, x_at, series, rank`` (order of the series), ``value, value_low, value_high, n, predicted`` (NaN without).
    """
    done = cells.done
    across = axis(x, cells.frame[x])
    rows = pd.DataFrame({"x_at": across.place(done[x]), "outcome": done[outcome].astype(float).to_numpy()})
    lines = axis(series, cells.frame[series]) if series is not None else None
    rows["rank"] = lines.place(done[series]) if lines is not None else 0.0
    rows["predicted"] = done[predicted].astype(float).to_numpy() if predicted is not None else float("nan")
    table = spread(rows, ["rank", "x_at"], "outcome")
    means = rows.groupby(["rank", "x_at"])["predicted"].mean().reset_index()
    table = table.merge(means, on=["rank", "x_at"], how="left")
    names = dict(zip(lines.at, lines.values, strict=True)) if lines is not None else {0.0: ""}
    values = dict(zip(across.at, across.values, strict=True))
    table.insert(0, "x", [values[a] for a in table["x_at"]])
    table.insert(2, "series", [names[r] for r in table["rank"]])
    return table


def agreement_points(cells: Cells, *, outcome: str, predicted: str) -> pd.DataFrame:
    """Prediction against measurement: one row per combination of settings, averaged over seeds.

    Returns:
        The varied settings, ``predicted, value, value_low, value_high, n, error`` (measured minus predicted).
    """
    by = list(cells.axes) or list(cells.settings[:1])
    done = cells.done
    table = spread(done, by, outcome)
    means = done.groupby(by, dropna=False)[predicted].mean().rename("predicted").reset_index()
    table = table.merge(means, on=by, how="left")
    table = table[table["predicted"].notna()].reset_index(drop=True)
    table["error"] = table["value"] - table["predicted"]
    return table
