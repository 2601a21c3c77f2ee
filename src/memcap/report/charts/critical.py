"""Critical values against a setting on log-log axes, with intervals, censored ends and the laws through them."""

from __future__ import annotations

from typing import Any

import altair as alt

from memcap.report.charts.scales import (
    censored_scale,
    dash_scale,
    fade,
    finish,
    guide,
    log_channel,
    scale,
    source_scale,
)
from memcap.report.labels import label
from memcap.report.tables.axis import Axis


def critical_chart(x: Axis, *, title: str, domain: tuple[float, float]) -> dict[str, Any]:
    """The specification; it draws ``points`` (measured crossings) and ``lines`` (fitted law, prediction).

    Args:
        x: the setting that varies.
        title: of the vertical axis.
        domain: of the vertical axis.
    """
    across = alt.X("x:Q", scale=scale(x), axis=guide(x, grid=True))
    level, name = log_channel(*domain, title)
    up = alt.Y("y:Q", scale=level, axis=name)
    tip = [
        alt.Tooltip("x:Q", title=label(x.name).title),
        alt.Tooltip("y:Q", title=title, format=".4~g"),
        alt.Tooltip("y_low:Q", title="95 % from", format=".4~g"),
        alt.Tooltip("y_high:Q", title="to", format=".4~g"),
        alt.Tooltip("censored:N"),
    ]
    key = alt.Legend(title=None, symbolType="stroke", symbolSize=220)
    source = alt.Color("source:N", scale=source_scale(), legend=key)
    lines = alt.Chart(alt.NamedData("lines")).mark_line(strokeWidth=1.6)
    lines = lines.encode(x=across, y=up, color=source, strokeDash=alt.StrokeDash("source:N", scale=dash_scale()))
    data = alt.Chart(alt.NamedData("points"))
    bars = data.transform_filter("isValid(datum.y_low) && isValid(datum.y_high) && datum.censored == ''")
    bars = bars.mark_rule(strokeWidth=1.6, style="measured").encode(
        x=across, y=alt.Y("y_low:Q", scale=level, axis=name), y2=alt.Y2("y_high")
    )
    dots = data.mark_point(filled=True, size=55, style="measured-point").encode(
        x=across,
        y=up,
        opacity=fade({"x": x.name}),
        shape=alt.Shape("censored:N", scale=censored_scale(), legend=None),
        tooltip=tip,
    )
    return finish(alt.layer(lines, bars, dots))
