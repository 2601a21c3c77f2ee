"""Parameters against the number of items on log-log axes: measured points, fitted laws and bounds.

The README's picture and ``memcap reproduce sqrt-law`` are drawn here.  The table comes from the caller; nothing is
fitted here.
"""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from memcap.errors import ConfigurationError, DataError, nearest
from memcap.report.charts.scales import finish, log_channel
from memcap.report.drawing import Figure

KINDS = ("measured", "fitted", "bound")
NEEDED = ("N", "parameters", "series", "kind")


def law_chart(
    table: pd.DataFrame,
    *,
    title: str = "parameters needed against the number of items",
    x_title: str = "items remembered N",
    y_title: str = "non-zero parameters P",
    caption: str = "",
) -> Figure:
    """A log-log chart of sizes against N.

    Args:
        table: columns ``N`` (items, positive), ``parameters`` (positive), ``series`` (what is drawn, e.g. a method;
            its name stands at the line's end) and ``kind``: ``measured`` (points), ``fitted`` (solid line) or ``bound``
            (dashed line).  Optional ``low`` and ``high``: the interval of a measured point.
        title: of the figure.
        x_title: of the horizontal axis.
        y_title: of the vertical axis.
        caption: how to read it.

    Raises:
        DataError: for an empty table or a size that is not positive.
        ConfigurationError: for a missing column or an unknown kind, with the nearest valid name.
    """
    points = _checked(table)
    order = points.groupby("series", sort=False)["parameters"].max().sort_values(ascending=False).index.tolist()
    labels = _labels(points)
    scale, along = log_channel(float(points["N"].min()), float(points["N"].max()), x_title)
    low, high = float(points["parameters"].min()), float(points["parameters"].max())
    level, axis = log_channel(low / 1.3, high * 1.3, y_title)
    across = alt.X("N:Q", scale=scale, axis=along)
    up = alt.Y("parameters:Q", scale=level, axis=axis)
    colour = alt.Color("series:N", scale=alt.Scale(domain=order, range="category"), legend=None)
    tip: list[Any] = [
        alt.Tooltip("series:N"),
        alt.Tooltip("N:Q", title=x_title, format=","),
        alt.Tooltip("parameters:Q", title=y_title, format=",.6~g"),
        alt.Tooltip("kind:N"),
    ]
    data = alt.Chart(alt.NamedData("law"))
    fitted = data.transform_filter("datum.kind == 'fitted'").mark_line().encode(x=across, y=up, color=colour)
    bound = data.transform_filter("datum.kind == 'bound'").mark_line(strokeDash=[5, 4], strokeWidth=1.6)
    bound = bound.encode(x=across, y=up, color=colour)
    bars = data.transform_filter("datum.kind == 'measured' && isValid(datum.low)").mark_rule(strokeWidth=1.6)
    bars = bars.encode(x=across, y=alt.Y("low:Q", scale=level, axis=axis), y2=alt.Y2("high"), color=colour)
    dots = data.transform_filter("datum.kind == 'measured'").mark_point(filled=True, opacity=1)
    dots = dots.encode(x=across, y=up, color=colour, tooltip=tip)
    names = alt.Chart(alt.NamedData("labels")).mark_text(align="left", dx=7, fontWeight=600, clip=False)
    names = names.encode(
        x=alt.X("N:Q", scale=scale, axis=along),
        y=alt.Y("at:Q", scale=level, axis=axis),
        text=alt.Text("series:N"),
        color=colour,
    )
    return Figure(
        name="law",
        title=title,
        caption=caption,
        chart=finish(alt.layer(bound, fitted, bars, dots, names)),
        tables={"law": points, "labels": labels},
        height=420,
        ratio=0.8,
    )


def _checked(table: pd.DataFrame) -> pd.DataFrame:
    columns = [str(c) for c in table.columns]
    for name in NEEDED:
        if name not in columns:
            close = nearest(name, columns)
            raise ConfigurationError(
                f"the table of a law needs a column {name!r}{close}; columns: {', '.join(columns)}"
            )
    if not len(table):
        raise DataError("the table of a law has no rows, so there is nothing to draw")
    points = table.copy()
    for kind in points["kind"].unique():
        if kind not in KINDS:
            raise ConfigurationError(f"no kind {kind!r}{nearest(str(kind), KINDS)}; kinds: {', '.join(KINDS)}")
    for name in ("N", "parameters"):
        points[name] = points[name].astype(float)
        bad = points[~(points[name] > 0) | ~np.isfinite(points[name])]
        if len(bad):
            raise DataError(
                f"{name} must be positive and finite on a log axis, got {bad[name].iloc[0]:g} in row {bad.index[0]}"
            )
    for name in ("low", "high"):
        points[name] = points[name].astype(float) if name in points else math.nan
    return points.sort_values(["series", "kind", "N"], kind="stable").reset_index(drop=True)


def _labels(points: pd.DataFrame) -> pd.DataFrame:
    """Where each name stands: at the line's right end, moved up or down until no two overlap."""
    ends = points.loc[points.groupby("series")["N"].idxmax(), ["series", "N", "parameters"]].copy()
    ends["N"] = float(points["N"].max())
    ends = ends.sort_values("parameters").reset_index(drop=True)
    heights = np.log(ends["parameters"].to_numpy(float))
    span = float(np.log(points["parameters"].max()) - np.log(points["parameters"].min())) or 1.0
    gap = 0.06 * span
    for _ in range(200):
        moved = False
        for i in range(len(heights) - 1):
            overlap = gap - (heights[i + 1] - heights[i])
            if overlap > 1e-9:
                heights[i] -= overlap / 2
                heights[i + 1] += overlap / 2
                moved = True
        if not moved:
            break
    ends["at"] = np.exp(heights)
    return ends[["series", "N", "parameters", "at"]]
