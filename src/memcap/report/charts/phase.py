"""The phase diagram: a heatmap over two settings with the predicted and the measured boundary on top."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from memcap.report.charts.scales import censored_scale, dash_scale, finish, guide, picked_test, scale, source_scale
from memcap.report.labels import Label, label
from memcap.report.tables.axis import Axis


def phase_chart(
    x: Axis,
    y: Axis,
    *,
    outcome: Label,
    boundary: pd.DataFrame,
    domain: tuple[float, float],
    diverging: bool = False,
) -> dict[str, Any]:
    """The specification; it draws the tables ``cells`` (one rectangle per row) and ``boundary``.

    Args:
        x: columns of the plane.
        y: rows of the plane.
        outcome: what the colour shows.
        boundary: rows of ``measured_boundary`` and ``predicted_boundary``; may be empty.
        domain: of the colour.
        diverging: colours for a difference around zero.
    """
    link = {"x": x.name, "y": y.name}
    across = alt.X("x_low:Q", scale=scale(x), axis=guide(x))
    up = alt.Y("y_low:Q", scale=scale(y), axis=guide(y))
    tip = [
        alt.Tooltip("x:N", title=label(x.name).title),
        alt.Tooltip("y:N", title=label(y.name).title),
        alt.Tooltip("value:Q", title=outcome.title, format=".3f"),
        alt.Tooltip("value_low:Q", title="95 % from", format=".3f"),
        alt.Tooltip("value_high:Q", title="to", format=".3f"),
        alt.Tooltip("n:Q", title="seeds"),
        alt.Tooltip("state:N"),
    ]
    colours = alt.Scale(range="diverging" if diverging else "heatmap", domain=list(domain))
    if diverging:
        colours = alt.Scale(range="diverging", domain=list(domain), domainMid=0)
    legend = alt.Legend(title=outcome.name, format=".2~f", gradientLength=96, tickCount=3, titleLimit=180)
    cells = alt.Chart(alt.NamedData("cells"))
    box = {"x": across, "x2": alt.X2("x_high"), "y": up, "y2": alt.Y2("y_high"), "tooltip": tip}
    background = cells.mark_rect(style="absent").encode(**box)
    filled = (
        cells.mark_rect()
        .transform_filter("isValid(datum.value)")
        .encode(color=alt.Color("value:Q", scale=colours, legend=legend), **box)
    )
    middle = {"x": alt.X("x_at:Q", scale=scale(x)), "y": alt.Y("y_at:Q", scale=scale(y))}
    failed = cells.transform_filter("datum.state == 'failed'").mark_text(text="×", style="failed").encode(**middle)
    waiting = cells.transform_filter("datum.state == 'waiting'").mark_text(text="·", style="note").encode(**middle)
    outline = cells.mark_rect(style="picked", fillOpacity=0).encode(
        strokeOpacity=alt.StrokeOpacityValue(
            condition={"test": f"isValid(picked) && ({picked_test(link)})", "value": 1}, value=0
        ),
        **box,
    )
    layers = [background, filled, failed, waiting, *_boundary(x, y, boundary), outline]
    return finish(alt.layer(*layers).resolve_scale(color="independent", strokeDash="shared"))


def _boundary(x: Axis, y: Axis, boundary: pd.DataFrame) -> list[Any]:
    if not len(boundary):
        return []
    lines = alt.Chart(alt.NamedData("boundary"))
    at = {"x": alt.X("x_at:Q", scale=scale(x)), "y": alt.Y("y:Q", scale=scale(y))}
    key = alt.Legend(title="boundary", symbolType="stroke", symbolSize=180, columns=2)
    source = alt.Stroke("source:N", scale=source_scale(), legend=key)
    dash = alt.StrokeDash("source:N", scale=dash_scale(), legend=key)
    tip = [
        alt.Tooltip("source:N", title="boundary"),
        alt.Tooltip("x:N", title=label(x.name).title),
        alt.Tooltip("y:Q", title=f"critical {label(y.name).title}", format=".4~g"),
        alt.Tooltip("y_low:Q", title="95 % from", format=".4~g"),
        alt.Tooltip("y_high:Q", title="to", format=".4~g"),
        alt.Tooltip("censored:N"),
    ]
    seen = lines.transform_filter("datum.censored == ''")
    halo = seen.mark_line(style="halo").encode(detail=alt.Detail("source:N"), **at)
    drawn = seen.mark_line().encode(stroke=source, strokeDash=dash, **at)
    measured = seen.transform_filter("datum.source == 'measured'")
    span = {"x": at["x"], "y": alt.Y("y_low:Q", scale=scale(y)), "y2": alt.Y2("y_high")}
    bars_halo = measured.mark_rule(style="halo").encode(**span)
    bars = measured.mark_rule(style="measured").encode(**span)
    points = measured.mark_point(style="measured-point", size=42).encode(tooltip=tip, **at)
    ends = (
        lines.transform_filter("datum.censored != ''")
        .mark_point(size=60, filled=True)
        .encode(
            color=alt.Color("source:N", scale=source_scale(), legend=None),
            shape=alt.Shape("censored:N", scale=censored_scale(), legend=None),
            tooltip=tip,
            **at,
        )
    )
    return [halo, bars_halo, drawn, bars, points, ends]
