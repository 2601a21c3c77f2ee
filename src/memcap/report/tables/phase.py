"""The cells of a phase diagram: every row and every column of the plane, measured or not, with its drawing edges."""

from __future__ import annotations

import pandas as pd

from memcap.report.cells import Cells
from memcap.report.tables.axis import Axis, axis
from memcap.report.tables.spread import spread


def plane(cells: Cells, x: str, y: str) -> tuple[Axis, Axis]:
    """The two axes of the plane, over all cells whatever their state."""
    return axis(x, cells.frame[x]), axis(y, cells.frame[y])


def phase_cells(cells: Cells, *, x: str, y: str, outcome: str) -> pd.DataFrame:
    """One row per column × row of the plane, in order of y then x; missing and failed cells are rows too.

    Args:
        cells: of the panel: only x, y and the seed vary.
        x: setting of the columns.
        y: setting of the rows.
        outcome: the result to show.

    Returns:
        ``x, y`` (values), ``x_at, y_at, x_low, x_high, y_low, y_high`` (places and edges), ``value, value_low,
        value_high`` (mean over seeds with its 95 % interval), ``n`` (seeds in the mean), ``done, failed, waiting``
        (cells by state), ``state`` (``done``, ``partial``: some seeds only, ``failed``, ``waiting``, ``absent``: not
        in the study).
    """
    across, up = plane(cells, x, y)
    grid = pd.DataFrame(
        [
            (xv, yv, xa, ya, xl, xh, yl, yh)
            for yv, ya, yl, yh in zip(up.values, up.at, up.low, up.high, strict=True)
            for xv, xa, xl, xh in zip(across.values, across.at, across.low, across.high, strict=True)
        ],
        columns=["x", "y", "x_at", "y_at", "x_low", "x_high", "y_low", "y_high"],
    )
    rows = cells.frame[["state"]].assign(x_at=across.place(cells.frame[x]), y_at=up.place(cells.frame[y]))
    rows["outcome"] = cells.frame[outcome].astype(float)
    finished = rows[rows["state"] == "done"]
    table = grid.merge(spread(finished, ["x_at", "y_at"], "outcome"), on=["x_at", "y_at"], how="left")
    rows["done"] = rows["state"] == "done"
    rows["failed"] = rows["state"].isin(["failed", "lost"])
    rows["waiting"] = ~rows["done"] & ~rows["failed"]
    counts = rows.groupby(["x_at", "y_at"])[["done", "failed", "waiting"]].sum().reset_index()
    table = table.merge(counts, on=["x_at", "y_at"], how="left")
    for name in ("n", "done", "failed", "waiting"):
        table[name] = table[name].fillna(0).astype(int)
    table["state"] = [
        _state(n, done, failed, waiting)
        for n, done, failed, waiting in zip(table["n"], table["done"], table["failed"], table["waiting"], strict=True)
    ]
    return table


def _state(n: int, done: int, failed: int, waiting: int) -> str:
    if n and not failed and not waiting and n == done:
        return "done"
    if n:
        return "partial"
    if failed or done:  # done without a finite number is no measurement
        return "failed"
    return "waiting" if waiting else "absent"


def difference_cells(measured: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    """Measured minus predicted, on the plane of both tables of ``phase_cells``; intervals are those of the measured.

    Rows where either side has no value keep their state and carry NaN.
    """
    table = measured.copy()
    table["measured"], table["predicted"] = measured["value"], predicted["value"]
    for name in ("value", "value_low", "value_high"):
        table[name] = measured[name] - predicted["value"]
    return table
