"""Points with intervals along one setting, one colour per value of another, and the prediction as dashed lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import altair as alt

from memcap.report.charts.scales import fade, field_of, finish, guide, log_channel, number_format, scale
from memcap.report.labels import Label, label
from memcap.report.tables.axis import Axis


def curves_chart(
    x: Axis, series: Axis | None, *, outcome: Label, predicted: bool, unit: bool, target: float | None = None
) -> dict[str, Any]:
    """A result along ``x``; draws the table ``points`` of ``curve_points``.

    Args:
        x: the horizontal axis.
        series: what the colours tell apart.
        outcome: the vertical axis.
        predicted: whether the table has predictions.
        unit: whether the result lies in [0, 1].
        target: draws a line at this level.
    """
    link = {"x": x.name} | ({"series": series.name} if series else {})
    across = alt.X("x_at:Q", scale=scale(x, padded=True), axis=guide(x, grid=True))
    return _points(across, series, link=link, outcome=outcome, predicted=predicted, unit=unit, target=target, x=x)


def collapse_chart(
    series: Axis, *, x_title: str, along: str, outcome: Label, unit: bool, domain: tuple[float, float]
) -> dict[str, Any]:
    """All curves on a scaled axis; draws the table ``points`` of ``collapse_points``."""
    scale_of, ruler = log_channel(*domain, x_title, ".3~g")
    across = alt.X("scaled:Q", scale=scale_of, axis=ruler)
    link = {"x": along, "series": series.name}
    return _points(across, series, link=link, outcome=outcome, predicted=False, unit=unit, target=None, x=None)


def _points(
    across: alt.X,
    series: Axis | None,
    *,
    link: Mapping[str, str],
    outcome: Label,
    predicted: bool,
    unit: bool,
    target: float | None,
    x: Axis | None,
) -> dict[str, Any]:
    limits = alt.Scale(domain=[0, 1]) if unit else alt.Scale(zero=False)
    title = alt.Axis(title=outcome.title, grid=True, format="~g", tickCount=5)
    up = alt.Y("value:Q", scale=limits, axis=title)
    data = alt.Chart(alt.NamedData("points"))
    shared: dict[str, Any] = {"x": across}
    tip = [
        alt.Tooltip("x:N", title=label(x.name if x else link["x"]).title),
        alt.Tooltip("value:Q", title=outcome.title, format=".3f"),
        alt.Tooltip("value_low:Q", title="95 % from", format=".3f"),
        alt.Tooltip("value_high:Q", title="to", format=".3f"),
        alt.Tooltip("n:Q", title="seeds"),
    ]
    if series is not None:
        tip.insert(0, alt.Tooltip("series:N", title=label(series.name).title))
        names = list(series.values)
        numeric = series.kind != "category"
        shape: dict[str, Any] = {"format": number_format(series.at)} if numeric else {}
        legend = alt.Legend(title=label(series.name).title, symbolType="circle", columns=6, titleLimit=320, **shape)
        kind: Literal["ordinal", "nominal"] = "ordinal" if numeric else "nominal"
        colours = alt.Scale(domain=names, range="ordinal") if numeric else alt.Scale(domain=names)
        shared["color"] = alt.Color("series", type=kind, scale=colours, legend=legend, sort=names)
    if predicted:
        tip.append(alt.Tooltip("predicted:Q", format=".3f"))
    layers: list[Any] = []
    if target is not None:
        rule = alt.Chart(alt.InlineData([{}])).mark_rule(style="reference").encode(y=alt.YDatum(target))
        layers.append(rule)
    if x is None:
        layers.append(alt.Chart(alt.InlineData([{}])).mark_rule(style="reference").encode(x=alt.XDatum(1)))
    opacity = fade(link)
    group = {"detail": alt.Detail("series:N")} if series is not None else {}
    if predicted:
        line = data.transform_filter("isValid(datum.predicted)").mark_line(strokeDash=[5, 4], strokeWidth=1.6)
        layers.append(line.encode(y=alt.Y("predicted:Q", scale=limits, axis=title), **group, **shared))
    else:
        layers.append(data.mark_line(strokeOpacity=0.55).encode(y=up, **group, **shared))
    bars = data.transform_filter("isValid(datum.value_low)").mark_rule(strokeWidth=1.4)
    layers.append(
        bars.encode(
            y=alt.Y("value_low:Q", scale=limits, axis=title), y2=alt.Y2("value_high"), opacity=opacity, **shared
        )
    )
    layers.append(data.mark_point(filled=True, opacity=1).encode(y=up, opacity=opacity, tooltip=tip, **shared))
    return finish(alt.layer(*layers))


def agreement_chart(*, outcome: Label, link: Mapping[str, str], unit: bool) -> dict[str, Any]:
    """Prediction against measurement; draws the table ``points`` of ``agreement_points`` and its ``diagonal``."""
    limits = alt.Scale(domain=[0, 1]) if unit else alt.Scale(zero=False)
    across = alt.X(
        "predicted:Q", scale=limits, axis=alt.Axis(title=f"predicted {outcome.name}", grid=True, tickCount=5)
    )
    title = alt.Axis(title=f"measured {outcome.name}", grid=True, tickCount=5)
    points = alt.Chart(alt.NamedData("points"))
    tip = [
        alt.Tooltip(field=field_of(column), type="nominal", title=label(setting).title)
        for column, setting in link.items()
    ]
    tip += [
        alt.Tooltip("predicted:Q", format=".3f"),
        alt.Tooltip("value:Q", title="measured", format=".3f"),
        alt.Tooltip("error:Q", title="measured − predicted", format="+.3f"),
    ]
    diagonal = alt.Chart(alt.NamedData("diagonal")).mark_line(style="reference")
    diagonal = diagonal.encode(x=across, y=alt.Y("predicted:Q", scale=limits, axis=title))
    bars = points.transform_filter("isValid(datum.value_low)").mark_rule(strokeWidth=1)
    high = alt.Y("value_low:Q", scale=limits, axis=title)
    bars = bars.encode(x=across, y=high, y2=alt.Y2("value_high"), opacity=fade(link, 0.35, 0.05))
    dots = points.mark_point(filled=True, style="measured-point").encode(
        x=across, y=alt.Y("value:Q", scale=limits, axis=title), opacity=fade(link, 0.85, 0.08), tooltip=tip
    )
    return finish(alt.layer(diagonal, bars, dots))
