"""The figures of a report: each is built from the subject, or says in words why it cannot be drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from memcap.errors import ConfigurationError, nearest
from memcap.report.charts.bars import signal_chart, states_chart, times_chart
from memcap.report.charts.critical import critical_chart
from memcap.report.charts.curves import agreement_chart, collapse_chart, curves_chart
from memcap.report.charts.exponents import exponents_chart
from memcap.report.charts.phase import phase_chart
from memcap.report.drawing import Figure
from memcap.report.labels import Label, compact, heading, label, number
from memcap.report.subject import Panel, Subject, held
from memcap.report.tables.axis import Axis, axis
from memcap.report.tables.boundary import clipped, measured_boundary, predicted_boundary
from memcap.report.tables.curves import agreement_points, curve_points
from memcap.report.tables.exponents import collapse_points, exponent_rows, law_at, law_points
from memcap.report.tables.failures import cell_times, state_counts
from memcap.report.tables.phase import difference_cells, phase_cells
from memcap.report.tables.signal import signal_shares

Built = Figure | str
"""A figure, or the reason why there is none."""

NO_PLANE = "fewer than two settings vary, so there is no plane to draw"


def phase(s: Subject, panel: Panel) -> Built:
    """The phase diagram of one panel."""
    if s.x is None or s.y is None:
        return NO_PLANE
    table = phase_cells(panel.cells, x=s.x, y=s.y, outcome=s.outcome)
    return _heatmap(s, panel, table, name="phase", outcome=label(s.outcome), words="measured")


def phase_predicted(s: Subject, panel: Panel) -> Built:
    """The same plane as the theory sees it."""
    if s.x is None or s.y is None:
        return NO_PLANE
    if s.predicted is None:
        return s.reasons.get("predicted", f"no column predicted_{s.outcome}")
    table = phase_cells(panel.cells, x=s.x, y=s.y, outcome=s.predicted)
    return _heatmap(s, panel, table, name="phase-predicted", outcome=label(s.predicted), words="predicted")


def phase_difference(s: Subject, panel: Panel) -> Built:
    """Measured minus predicted over the plane."""
    if s.x is None or s.y is None:
        return NO_PLANE
    if s.predicted is None:
        return s.reasons.get("predicted", f"no column predicted_{s.outcome}")
    table = difference_cells(
        phase_cells(panel.cells, x=s.x, y=s.y, outcome=s.outcome),
        phase_cells(panel.cells, x=s.x, y=s.y, outcome=s.predicted),
    )
    name = Label(f"Δ {label(s.outcome).name}", "", "measured − predicted")
    return _heatmap(s, panel, table, name="difference", outcome=name, words="difference")


def _heatmap(s: Subject, panel: Panel, table: pd.DataFrame, *, name: str, outcome: Label, words: str) -> Built:
    assert s.x is not None
    assert s.y is not None
    if not table["value"].notna().any():
        return f"no finished cell has a value of {outcome.name}"
    x, y = axis(s.x, panel.cells.frame[s.x]), axis(s.y, panel.cells.frame[s.y])
    lines = [measured_boundary(s.criticals, across=x, y=s.y, panel=panel.fixed)]
    if s.predicted is not None:
        lines.append(predicted_boundary(panel.cells, x=s.x, y=s.y, predicted=s.predicted, target=s.target))
    boundary = clipped(pd.concat([t for t in lines if len(t)] or lines[:1], ignore_index=True), y)
    difference = words == "difference"
    size = float(np.nanmax(np.abs(table["value"])))
    domain = (0.0, 1.0) if s.unit else (float(table["value"].min()), float(table["value"].max()))
    if difference:
        domain = (-size or -1.0, size or 1.0)
    elif domain[0] == domain[1]:
        domain = (domain[0] - 0.5, domain[1] + 0.5)
    title = f"{words} {label(s.outcome).name} over {label(s.x).short} and {label(s.y).short}"
    if difference:
        title = f"measured minus predicted {label(s.outcome).name}"
    caption = _phase_caption(s, boundary, words) + _holes(table)
    return Figure(
        name=name,
        title=_titled(title, panel),
        caption=caption,
        chart=phase_chart(x, y, outcome=outcome, boundary=boundary, domain=domain, diverging=difference),
        tables={"cells": table, "boundary": boundary},
        link={"x": s.x, "y": s.y},
        fixed=panel.fixed,
        height=380,
        ratio=0.85,
    )


def _phase_caption(s: Subject, boundary: pd.DataFrame, words: str) -> str:
    what = {
        "measured": "Each rectangle is one setting, averaged over seeds.",
        "predicted": "What the theory expects in each cell.",
        "difference": "Where theory and measurement part: orange below the prediction, violet above.",
    }[words]
    sources = set(boundary["source"])
    at = f"{label(s.outcome).name} {number(s.target)}"
    if "measured" in sources:
        what += f" Solid line: where measured cells cross {at}, with its 95 % interval."
    if "predicted" in sources:
        what += f" Dashed: where the prediction crosses {at}."
    if (boundary["censored"] != "").any():
        what += " Triangles: the crossing lies beyond the edge of the grid."
    return what


def _holes(table: pd.DataFrame) -> str:
    """A sentence on cells without a value, if there are any."""
    words = ""
    if (table["state"] == "failed").any():
        words += " × marks settings whose cells failed."
    if (table["state"] == "waiting").any():
        words += " A dot marks cells that were not run yet."
    if (table["state"] == "absent").any():
        words += " Empty cells are not in the study."
    return words


def curves(s: Subject, panel: Panel) -> Built:
    """The result along y, one curve per x."""
    if s.y is None:
        return "no setting varies"
    return _curves(s, panel, along=s.y, series=s.x, name="curves")


def curves_across(s: Subject, panel: Panel) -> Built:
    """The result along x, one curve per y."""
    return NO_PLANE if s.x is None or s.y is None else _curves(s, panel, along=s.x, series=s.y, name="curves-across")


def _curves(s: Subject, panel: Panel, *, along: str, series: str | None, name: str) -> Built:
    points = curve_points(panel.cells, x=along, outcome=s.outcome, series=series, predicted=s.predicted)
    if not len(points):
        return f"no finished cell has a value of {label(s.outcome).name}"
    lines = axis(series, panel.cells.frame[series]) if series else None
    caption = "Points: mean over seeds with its 95 % interval."
    if s.predicted is not None:
        caption += " Dashed lines: the prediction."
    return Figure(
        name=name,
        title=_titled(f"{label(s.outcome).name} against {label(along).title}", panel),
        caption=caption,
        chart=curves_chart(
            axis(along, panel.cells.frame[along]),
            lines,
            outcome=label(s.outcome),
            predicted=s.predicted is not None,
            unit=s.unit,
            target=s.target if s.unit else None,
        ),
        tables={"points": points},
        link={"x": along} | ({"series": series} if series else {}),
        fixed=panel.fixed,
        series=len(lines.values) if lines else 1,
    )


def critical(s: Subject, panel: Panel) -> Built:
    """The measured boundary against x with the fitted law and the prediction, log-log."""
    if s.x is None or s.y is None:
        return NO_PLANE
    x, y = axis(s.x, panel.cells.frame[s.x]), axis(s.y, panel.cells.frame[s.y])
    if x.kind != "log":
        return f"{s.x} is not a positive setting spread over a factor of three"
    here = [c for c in s.criticals if all(c.settings.get(k, v) == v for k, v in panel.fixed.items())]
    points = law_points(here, {}, x=s.x)
    if not len(points):
        return s.reasons.get("criticals", "no crossing of the target was fitted")
    lines = []
    law = s.exponents.get("measured")
    if law is not None and s.x in law.names and set(law.names) <= {s.x, *panel.fixed}:
        ends = pd.DataFrame({s.x: np.geomspace(x.at[0], x.at[-1], 2)}).assign(**panel.fixed)
        lines.append(pd.DataFrame({"source": "measured", "x": ends[s.x], "y": law_at(law, ends)}))
    if s.predicted is not None:
        found = predicted_boundary(panel.cells, x=s.x, y=s.y, predicted=s.predicted, target=s.target)
        lines.append(found.loc[found["censored"] == "", ["source", "x", "y"]])
    drawn = pd.concat(lines, ignore_index=True) if lines else pd.DataFrame(columns=["source", "x", "y"])
    low, high = y.domain
    points[["y_low", "y_high"]] = points[["y_low", "y_high"]].clip(low / 4, high * 4)
    name = label(s.y)
    title = f"critical {name.title}"
    caption = f"Where {label(s.outcome).name} crosses {number(s.target)}, with 95 % intervals."
    if law is not None:
        caption += " Solid line: the fitted law."
    if s.predicted is not None:
        caption += " Dashed line: the prediction."
    return Figure(
        name="critical",
        title=_titled(f"critical {name.short} against {label(s.x).short}", panel),
        caption=caption + " Triangles: bounds only (censored).",
        chart=critical_chart(x, title=title),
        tables={"points": points, "lines": drawn},
        height=380,
        link={"x": s.x},
        fixed=panel.fixed,
    )


def collapse(s: Subject, panel: Panel) -> Built:
    """All curves with the axis divided by the fitted law."""
    law = s.exponents.get("measured")
    if s.x is None or s.y is None or law is None:
        return s.reasons.get("exponents", "no law was fitted")
    if panel.fixed and not set(law.names) >= set(panel.fixed):
        cells = panel.cells
    else:
        cells = s.cells
    points = collapse_points(cells, law, along=s.y, outcome=s.outcome, series=s.x)
    series = axis(s.x, cells.frame[s.x])
    factors = " · ".join(f"{label(n).short}^{number(v, 3)}" for n, v in zip(law.names, law.values, strict=True))
    title = f"{label(s.y).short} / fitted critical {label(s.y).short}"
    return Figure(
        name="collapse",
        title=f"collapse of all curves by {label(s.y).short} ~ {factors}",
        caption="Every measured point with its horizontal axis divided by the fitted law: one curve if the law holds.",
        chart=collapse_chart(series, x_title=title, along=s.y, outcome=label(s.outcome), unit=s.unit),
        tables={"points": points},
        link={"x": s.y, "series": s.x},
        series=len(series.values),
    )


def exponents(s: Subject, panel: Panel) -> Built:
    """Exponents with intervals."""
    table = exponent_rows(s.exponents)
    if not len(table):
        return s.reasons.get("exponents", "no law was fitted")
    table.insert(0, "row", [label(f).short for f in table["factor"]])
    table["text"] = [
        f"{v:.2f} [{lo:.2f}, {hi:.2f}]".replace("-", "−")
        for v, lo, hi in zip(table["value"], table["low"], table["high"], strict=True)
    ]
    sources = list(dict.fromkeys(table["source"]))
    names = ", ".join(heading(f) for f in dict.fromkeys(table["factor"]))
    response = label(s.y).short if s.y else "critical value"
    return Figure(
        name="exponents",
        title=f"exponents of critical {response}",
        caption=f"Fitted exponent of each setting with its 95 % interval ({names}).",
        chart=exponents_chart(title="exponent", sources=sources),
        tables={"exponents": table, "zero": pd.DataFrame({"value": [0.0]})},
        height=max(120, 30 + 46 * len(table)),
        ratio=0.25 + 0.12 * len(table),
    )


def agreement(s: Subject, panel: Panel) -> Built:
    """Prediction against measurement for every setting."""
    if s.predicted is None:
        return s.reasons.get("predicted", f"no column predicted_{s.outcome}")
    points = agreement_points(s.cells, outcome=s.outcome, predicted=s.predicted)
    if not len(points):
        return "no finished cell has both a measurement and a prediction"
    low = float(min(points["predicted"].min(), points["value"].min()))
    high = float(max(points["predicted"].max(), points["value"].max()))
    diagonal = pd.DataFrame({"predicted": [0.0, 1.0] if s.unit else [low, high]})
    link = {c: c for c in points.columns if c in s.cells.settings}
    error = float(points["error"].abs().mean())
    return Figure(
        name="agreement",
        title=f"predicted and measured {label(s.outcome).name}",
        caption=f"One point per setting; mean absolute error {error:.3f} over {len(points)} settings.",
        chart=agreement_chart(outcome=label(s.outcome), link=link, unit=s.unit),
        tables={"points": points, "diagonal": diagonal},
        link=link,
        ratio=0.9,
    )


def signal(s: Subject, panel: Panel) -> Built:
    """Shares of the noise by source along y."""
    along = s.y or (s.cells.settings[0] if s.cells.settings else None)
    if along is None:
        return "no setting varies"
    others = {a: panel.cells.frame[a] for a in (s.x,) if a is not None}
    line = held(panel.cells, along, others)
    shares = signal_shares(line, x=along)
    if not len(shares):
        return "no cell holds variances by source, and the settings are not a retrieval task"
    x = axis(along, line.frame[along])
    shares["name"] = [compact(v) for v in shares["x"]]
    sources = shares.sort_values("rank")["source"].unique().tolist()
    signals = shares.drop_duplicates("x")[["x", "name", "ratio"]].copy()
    signals["text"] = [compact(v) if v == v else "" for v in signals["ratio"]]
    fixed = ", ".join(f"{label(k).short} = {number(line.frame[k].iloc[0])}" for k in others)
    named = Axis(x.name, x.kind, tuple(compact(v) for v in x.values), x.at, x.low, x.high)
    return Figure(
        name="signal",
        title=f"where the noise comes from{', ' + fixed if fixed else ''}",
        caption="Share of each source in the variance of a token's score. Above the bars: signal² over that variance.",
        chart=signal_chart(named, sources=sources),
        tables={"shares": shares, "signals": signals},
        link={"x": along},
    )


def times(s: Subject, panel: Panel) -> Built:
    """Wall time per cell."""
    along = s.y or s.x
    if along is None:
        return "no setting varies"
    table = cell_times(s.cells, x=along)
    if not len(table):
        return "no cell says how long it took (column seconds)"
    x = axis(along, s.cells.frame[along])
    table.insert(1, "x_at", x.place(table["x"]))
    medians = table.groupby("x_at")["seconds"].median().reset_index()
    total = float(table["seconds"].sum())
    return Figure(
        name="times",
        title=f"time per cell against {label(along).short}",
        caption=f"One dot per cell, the line is the median; {number(total)} s in all.",
        chart=times_chart(x),
        tables={"times": table, "medians": medians},
        link={"x": along},
        height=260,
    )


def states(s: Subject, panel: Panel) -> Built:
    """Cells by state."""
    table = state_counts(s.cells).assign(rank=lambda t: range(len(t)))
    return Figure(
        name="states",
        title="cells by state",
        caption="Failed and lost cells are never counted as a result; their errors are listed below.",
        chart=states_chart(table["state"].tolist()),
        tables={"states": table},
        link={"state": "state"},
        height=64,
        ratio=0.3,
    )


KINDS: dict[str, Callable[[Subject, Panel], Built]] = {
    "phase": phase,
    "phase-predicted": phase_predicted,
    "difference": phase_difference,
    "critical": critical,
    "curves": curves,
    "curves-across": curves_across,
    "collapse": collapse,
    "agreement": agreement,
    "signal": signal,
    "times": times,
    "exponents": exponents,
    "states": states,
}
"""Name of a figure -> how it is built, in the order of the report."""


def build(s: Subject, kind: str) -> Built:
    """The figure ``kind`` of the first panel.

    Raises:
        ConfigurationError: for an unknown kind.
    """
    if kind not in KINDS:
        raise ConfigurationError(f"no figure {kind!r}{nearest(kind, KINDS)}; figures: {', '.join(KINDS)}")
    return KINDS[kind](s, s.panels[0])


def gallery(s: Subject) -> tuple[list[Figure], dict[str, str]]:
    """All figures that the study supports, and for the others the reason; phase diagrams once per panel."""
    figures: list[Figure] = []
    reasons: dict[str, str] = {}
    for kind, make in KINDS.items():
        for i, panel in enumerate(s.panels if kind == "phase" else s.panels[:1]):
            built = make(s, panel)
            if isinstance(built, str):
                reasons[kind] = built
            else:
                figures.append(built if i == 0 else _numbered(built, i + 1))
    return figures, reasons


def _numbered(figure: Figure, number: int) -> Figure:
    from dataclasses import replace

    return replace(figure, name=f"{figure.name}-{number}")


def _titled(title: str, panel: Panel) -> str:
    return f"{title}, {panel.words}" if panel.words else title
