"""From an axis of a table to Vega-Lite channels: scale, ticks at the values, title with symbol and unit."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

import altair as alt

from memcap.report.labels import label
from memcap.report.tables.axis import Axis, decades

MOST_TICKS = 9


def ticks(axis: Axis) -> list[float]:
    """Values that carry a tick: all of a short axis, every second, third, … of a long one, the first always."""
    step = -(-len(axis.at) // MOST_TICKS)
    return list(axis.at[::step])


def guide(axis: Axis, title: str | None = None, *, grid: bool = False) -> alt.Axis:
    """The drawn axis."""
    options: dict[str, Any] = {"title": title or label(axis.name).title, "grid": grid, "values": ticks(axis)}
    if axis.kind == "category":
        names = json.dumps([str(v) for v in axis.values])
        return alt.Axis(labelExpr=f"{names}[datum.value]", labelLimit=110, **options)
    return alt.Axis(format=number_format(axis.at), labelOverlap="greedy", **options)


def number_format(values: tuple[float, ...]) -> str:
    """A d3 format: 20k rather than 20,000; no metric prefixes below one."""
    return ".3~s" if all(v == 0 or abs(v) >= 1 for v in values) else ".3~g"


def scale(axis: Axis, *, padded: bool = False) -> alt.Scale:
    """The scale: from edge to edge for a heatmap, so that no row or column is cut."""
    low, high = axis.domain
    kind: Literal["log", "linear"] = "log" if axis.kind == "log" else "linear"
    domain = [low, high]
    if padded and axis.kind == "linear" and axis.at[0] >= 0 > low:
        domain[0] = 0.0
    return alt.Scale(type=kind, domain=domain, nice=False)


def log_channel(low: float, high: float, title: str, format: str = ".3~s") -> tuple[alt.Scale, alt.Axis]:
    """Scale and drawn axis of a logarithmic quantity that has no grid of its own; lines at round values only."""
    domain = [low / 1.15, high * 1.15]
    ruler = alt.Axis(title=title, format=format, grid=True, values=decades(*domain), labelOverlap="greedy")
    return alt.Scale(type="log", domain=domain, nice=False), ruler


def picked_test(link: Mapping[str, str]) -> str:
    """A Vega expression: no selection, or the selection allows this datum.

    ``picked`` maps settings to lists of allowed values; a column that no setting restricts allows everything.
    """
    tests = [
        f"(!picked[{json.dumps(setting)}] || indexof(picked[{json.dumps(setting)}], datum[{json.dumps(column)}]) >= 0)"
        for column, setting in link.items()
    ]
    return "!picked || (" + " && ".join(tests) + ")" if tests else "true"


def fade(link: Mapping[str, str], full: float = 1.0, faded: float = 0.15) -> Any:
    """Opacity that lets the selection stand out."""
    return alt.OpacityValue(condition={"test": picked_test(link), "value": full}, value=faded)


def field_of(column: str) -> str:
    r"""A column name as a Vega-Lite field: dots, brackets and quotes are escaped.

    >>> print(field_of("a.b"))
    a\.b
    """
    return re.sub(r"([.\[\]'\"\\])", r"\\\1", column)


def source_scale() -> alt.Scale:
    """Colours of measured and predicted, filled in by the theme."""
    colours: list[Any] = [{"expr": "measured_colour"}, {"expr": "predicted_colour"}]
    return alt.Scale(domain=["measured", "predicted"], range=colours)


def dash_scale() -> alt.Scale:
    """Solid for measured, dashed for predicted."""
    return alt.Scale(domain=["measured", "predicted"], range=[[1, 0], [5, 4]])


def censored_scale() -> alt.Scale:
    """A dot for a value that was seen, a triangle that points to where a censored one lies."""
    return alt.Scale(domain=["", "above", "below"], range=["circle", "triangle-up", "triangle-down"])


def finish(chart: Any) -> dict[str, Any]:
    """The validated specification as plain values, without altair's own configuration."""
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)
    return spec
