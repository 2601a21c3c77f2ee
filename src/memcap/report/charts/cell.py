"""Small charts of the selected cell: one line of the grid through it, or a curve that was recorded inside it."""

from __future__ import annotations

from typing import Any

import altair as alt

from memcap.report.charts.scales import finish, guide, scale
from memcap.report.labels import Label, label
from memcap.report.tables.axis import Axis


def line_chart(x: Axis, *, outcome: Label, predicted: bool, unit: bool) -> dict[str, Any]:
    """A result along ``x`` at the other settings of the cell: one dot per seed, the mean, the prediction.

    Draws the table ``points`` (``x_at, value, predicted, here``).
    """
    data = alt.Chart(alt.NamedData("points"))
    across = alt.X("x_at:Q", scale=scale(x, padded=True), axis=guide(x, grid=True))
    limits = alt.Scale(domain=[0, 1]) if unit else alt.Scale(zero=False)
    axis = alt.Axis(title=outcome.name, grid=True, tickCount=4)
    layers: list[Any] = []
    if predicted:
        dashed = data.mark_line(style="predicted")
        layers.append(dashed.encode(x=across, y=alt.Y("mean(predicted):Q", scale=limits, axis=axis)))
    mean = data.mark_line(style="measured", opacity=0.5)
    layers.append(mean.encode(x=across, y=alt.Y("mean(value):Q", scale=limits, axis=axis)))
    tip = [alt.Tooltip("x:N", title=label(x.name).title), alt.Tooltip("value:Q", title=outcome.name, format=".4~g")]
    dots = data.mark_point(filled=True, style="measured-point").encode(
        x=across,
        y=alt.Y("value:Q", scale=limits, axis=axis),
        opacity=alt.OpacityValue(condition={"test": "datum.here", "value": 1}, value=0.35),
        size=alt.SizeValue(condition={"test": "datum.here", "value": 110}, value=28),
        tooltip=tip,
    )
    return finish(alt.layer(*layers, dots))


def trace_chart(name: str) -> dict[str, Any]:
    """A list-valued result against its index, one line per seed; draws the table ``points`` (``i, value, seed``)."""
    data = alt.Chart(alt.NamedData("points")).mark_line(style="measured", strokeWidth=1.4)
    return finish(
        data.encode(
            x=alt.X("i:Q", axis=alt.Axis(title="step", tickCount=5, format="~s"), scale=alt.Scale(nice=False)),
            y=alt.Y("value:Q", axis=alt.Axis(title=label(name).name, tickCount=4), scale=alt.Scale(zero=False)),
            detail=alt.Detail("seed:N"),
            tooltip=[alt.Tooltip("seed:N"), alt.Tooltip("i:Q", title="step"), alt.Tooltip("value:Q", format=".4~g")],
        )
    )
