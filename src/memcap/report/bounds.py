"""Recall of decoders under the bound of what they see: one chart for every part of ``memcap reproduce lower-bound``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from memcap.errors import ConfigurationError
from memcap.report.charts.scales import finish, log_channel
from memcap.report.drawing import Figure


def figures(record: Mapping[str, Any]) -> list[Figure]:
    """One chart a part: points with 95 % intervals, a line a decoder, the bound dashed; a panel a line of the part.

    Args:
        record: of ``memcap reproduce lower-bound``, as returned or as read from ``--out``.

    Raises:
        ConfigurationError: for the record of another figure.
    """
    if record.get("figure") != "lower-bound" or not record.get("curves"):
        raise ConfigurationError(
            f"expected a record of 'memcap reproduce lower-bound', got figure {record.get('figure')!r}"
        )
    table = pd.DataFrame(record["curves"])
    return [_chart(str(part), rows) for part, rows in table.groupby("part", sort=False)]


def _chart(part: str, rows: pd.DataFrame) -> Figure:
    axis = str(rows["axis"].iloc[0])
    scale, ruler = log_channel(float(rows["at"].min()), float(rows["at"].max()), axis)
    across = alt.X("at:Q", scale=scale, axis=ruler)
    title = alt.Axis(title="recall of all tokens", grid=True, format="~g", tickCount=5)
    limits = alt.Scale(domain=[0, 1])
    up = alt.Y("recall:Q", scale=limits, axis=title)
    decoders = list(dict.fromkeys(rows["decoder"]))
    legend = alt.Legend(title=None, orient="bottom", columns=2, labelLimit=320)
    colours = alt.Scale(domain=decoders, scheme="tableau10")
    colour = alt.Color("decoder:N", scale=colours, legend=legend, sort=decoders)
    lines = sorted(set(rows["line"]), key=lambda text: float(text.partition("=")[2] or 0))
    shape = alt.Shape("line:N", legend=alt.Legend(title=None) if len(lines) > 1 else None, sort=lines)
    detail = [alt.Detail("line:N")]
    tip = [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("recall", "low", "high", "bound")]
    tip = [alt.Tooltip("decoder:N"), alt.Tooltip("line:N"), alt.Tooltip("samples:Q", format=","), *tip]
    data = alt.Chart(alt.NamedData("curves"))
    bound = alt.Chart(alt.NamedData("bounds")).mark_line(strokeDash=[5, 4], strokeWidth=1.8)
    bound = bound.encode(
        x=across, y=alt.Y("bound:Q", scale=limits, axis=title), detail=detail, color=alt.value({"expr": "ink"})
    )
    drawn = data.mark_line(strokeWidth=1.2).encode(x=across, y=up, color=colour, detail=detail)
    bars = data.mark_rule(strokeWidth=1.4).encode(
        x=across, y=alt.Y("low:Q", scale=limits, axis=title), y2=alt.Y2("high"), color=colour
    )
    dots = data.mark_point(filled=True, opacity=1).encode(x=across, y=up, color=colour, shape=shape, tooltip=tip)
    return Figure(
        name="lower-bound-" + re.sub(r"[^A-Za-z0-9]+", "-", part).strip("-").lower(),
        title=f"Decoders under their bound: {part}",
        caption="Points: recall with 95 % intervals over seeds. Dashed: the bound, which no decoder may exceed.",
        chart=finish(alt.layer(bound, drawn, bars, dots)),
        tables={
            "curves": rows.drop(columns=["part", "axis"]).reset_index(drop=True),
            "bounds": rows[["line", "at", "bound"]].drop_duplicates().reset_index(drop=True),
        },
        height=420,
        ratio=0.9,
    )
