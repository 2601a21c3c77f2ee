"""Exponents with their intervals as a forest plot: one row per setting, one mark per source."""

from __future__ import annotations

from typing import Any

import altair as alt

from memcap.report.charts.scales import finish


def exponents_chart(*, title: str, sources: list[str]) -> dict[str, Any]:
    """The specification; it draws the table ``exponents`` with columns ``row, source, value, low, high, text``.

    Args:
        title: of the horizontal axis.
        sources: in the order of drawing; ``measured`` and ``predicted`` keep their colours.
    """
    data = alt.Chart(alt.NamedData("exponents"))
    span = alt.X("low:Q", scale=alt.Scale(zero=False, padding=60), axis=alt.Axis(title=title, grid=True, tickCount=6))
    rows = alt.Y("row:N", axis=alt.Axis(title=None, grid=False, domain=False, ticks=False, labelLimit=160), sort=None)
    part = alt.YOffset("source:N", scale=alt.Scale(domain=sources, paddingInner=0.2, paddingOuter=0.4), sort=sources)
    known: list[Any] = [{"expr": "measured_colour"}, {"expr": "predicted_colour"}]
    colours = known[: len(sources)] if set(sources) <= {"measured", "predicted"} else None
    if colours is not None:
        colours = [{"expr": f"{s}_colour"} for s in sources]
    scale = alt.Scale(domain=sources, range=colours) if colours is not None else alt.Scale(domain=sources)
    source = alt.Color("source:N", scale=scale, legend=alt.Legend(title=None, symbolType="circle"))
    tip = [
        alt.Tooltip("row:N", title="setting"),
        alt.Tooltip("source:N"),
        alt.Tooltip("value:Q", title="exponent", format=".4f"),
        alt.Tooltip("low:Q", title="95 % from", format=".4f"),
        alt.Tooltip("high:Q", title="to", format=".4f"),
        alt.Tooltip("r_squared:Q", title="R²", format=".4f"),
        alt.Tooltip("n_points:Q", title="points"),
        alt.Tooltip("method:N", title="interval by"),
    ]
    shared = {"y": rows, "yOffset": part}
    zero = alt.Chart(alt.NamedData("zero")).mark_rule(style="reference").encode(x=alt.X("value:Q"))
    bars = data.mark_rule(strokeWidth=2.2).encode(x=span, x2=alt.X2("high"), color=source, **shared)
    dots = data.mark_point(filled=True, size=70).encode(x=alt.X("value:Q"), color=source, tooltip=tip, **shared)
    text = data.mark_text(style="note", dy=-10, baseline="middle").encode(
        x=alt.X("value:Q"), text=alt.Text("text:N"), **shared
    )
    return finish(alt.layer(zero, bars, dots, text))
