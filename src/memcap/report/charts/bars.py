"""Stacked bars: shares of the noise by source, cells by state; and the time a cell takes."""

from __future__ import annotations

from typing import Any

import altair as alt

from memcap.report.charts.scales import fade, finish, guide, log_channel, scale
from memcap.report.labels import label
from memcap.report.tables.axis import Axis


def signal_chart(x: Axis, *, sources: list[str]) -> dict[str, Any]:
    """Shares of the noise variance by source along ``x``, with the signal-to-noise ratio above each bar.

    Draws the tables ``shares`` (``x, source, share, ratio``) and ``signals`` (``x, ratio, text``).
    """
    names = [str(v) for v in x.values]
    across = alt.X("name:N", sort=names, axis=alt.Axis(title=label(x.name).title, labelAngle=0, labelOverlap="greedy"))
    up = alt.Y(
        "share:Q",
        stack="zero",
        scale=alt.Scale(domain=[0, 1.08], nice=False),
        axis=alt.Axis(title="share of the noise variance", format=".0%", grid=True, values=[0, 0.25, 0.5, 0.75, 1]),
    )
    tip = [
        alt.Tooltip("name:N", title=label(x.name).title),
        alt.Tooltip("source:N", title="source"),
        alt.Tooltip("share:Q", format=".1%"),
        alt.Tooltip("ratio:Q", title="signal-to-noise ratio", format=".3~g"),
    ]
    colours = alt.Scale(domain=sources, range="category")
    legend = alt.Legend(title=None, columns=3, symbolType="square", labelLimit=130)
    bars = (
        alt.Chart(alt.NamedData("shares"))
        .mark_bar(cornerRadius=1)
        .encode(
            x=across,
            y=up,
            color=alt.Color("source:N", scale=colours, legend=legend, sort=sources),
            order=alt.Order("rank:Q"),
            opacity=fade({"x": x.name}, 1.0, 0.25),
            tooltip=tip,
        )
    )
    text = alt.Chart(alt.NamedData("signals")).mark_text(style="note", baseline="bottom", dy=-3)
    text = text.encode(x=across, y=alt.YDatum(1), text=alt.Text("text:N"))
    return finish(alt.layer(bars, text))


def states_chart(states: list[str]) -> dict[str, Any]:
    """Cells by state as one bar; draws the table ``states``."""
    colours = {"done": "#0f8a5f", "failed": "#c4392f", "lost": "#e08a1e", "running": "#3b82c4", "pending": "#98a2ae"}
    scale_of = alt.Scale(domain=states, range=[colours.get(s, "#7b61a8") for s in states])
    bar = (
        alt.Chart(alt.NamedData("states"))
        .mark_bar(height={"band": 0.6})
        .encode(
            x=alt.X("cells:Q", stack="zero", axis=alt.Axis(title="cells", grid=False, tickCount=6, format="~s")),
            color=alt.Color("state:N", scale=scale_of, sort=states, legend=alt.Legend(title=None)),
            order=alt.Order("rank:Q"),
            opacity=fade({"state": "state"}, 1.0, 0.25),
            tooltip=[
                alt.Tooltip("state:N"),
                alt.Tooltip("cells:Q"),
                alt.Tooltip("share:Q", format=".1%", title="share"),
            ],
        )
    )
    return finish(bar)


def times_chart(x: Axis, *, domain: tuple[float, float]) -> dict[str, Any]:
    """Wall time of each cell along ``x``, and the median; draws the tables ``times`` and ``medians``."""
    across = alt.X("x_at:Q", scale=scale(x), axis=guide(x, grid=True))
    level, ruler = log_channel(*domain, "time per cell (s)", ".3~g")
    up = alt.Y("seconds:Q", scale=level, axis=ruler)
    tip = [alt.Tooltip("x:N", title=label(x.name).title), alt.Tooltip("seconds:Q", title="time (s)", format=".3~g")]
    dots = alt.Chart(alt.NamedData("times")).mark_point(filled=True, style="note", size=20)
    dots = dots.encode(x=across, y=up, opacity=fade({"x": x.name}, 0.45, 0.08), tooltip=tip)
    line = alt.Chart(alt.NamedData("medians")).mark_line(style="measured", point=True)
    line = line.encode(x=across, y=up)
    return finish(alt.layer(dots, line))
