"""Figures with lines: curves along a setting, critical values with their law, the collapse, agreement with theory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from memcap.report.charts.critical import critical_chart
from memcap.report.charts.curves import agreement_chart, collapse_chart, curves_chart
from memcap.report.drawing import Figure
from memcap.report.figures.planes import NO_PLANE
from memcap.report.labels import label, number, power
from memcap.report.subject import Built, Panel, Subject, titled
from memcap.report.tables.axis import axis, plain
from memcap.report.tables.boundary import predicted_boundary
from memcap.report.tables.curves import agreement_points, curve_points
from memcap.report.tables.exponents import collapse_points, law_at, law_points
from memcap.report.tables.thinned import span, thinned

MOST_CURVES = 12
"""Curves in one chart; of a finer grid every k-th is drawn."""


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
    few = ""
    if lines is not None and len(lines.values) > MOST_CURVES:
        step = -(-len(lines.values) // MOST_CURVES)
        kept = [plain(v) in lines.values[::step] for v in panel.cells.frame[series]]
        few = f" {len(lines.values[::step])} of {len(lines.values)} curves are drawn."
        panel = replace(panel, cells=replace(panel.cells, frame=panel.cells.frame[kept]))
        points = points[points["series"].isin(lines.values[::step])].reset_index(drop=True)
        lines = axis(str(series), panel.cells.frame[series])
    caption = "Points: mean over seeds with its 95 % interval."
    if s.predicted is not None:
        caption += " Dashed lines: the prediction."
    return Figure(
        name=name,
        title=titled(f"{label(s.outcome).name} against {label(along).title}", panel),
        caption=caption + few,
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
    seen = points.loc[points["censored"] == ""]
    name = label(s.y)
    title = f"critical {name.title}"
    caption = f"Where {label(s.outcome).name} crosses {number(s.target)}, with 95 % intervals."
    if law is not None:
        caption += " Solid line: the fitted law."
    if s.predicted is not None:
        caption += " Dashed line: the prediction."
    return Figure(
        name="critical",
        title=titled(f"critical {name.short} against {label(s.x).short}", panel),
        caption=caption + " Triangles: bounds only (censored).",
        chart=critical_chart(x, title=title, domain=span(points[["y"]], seen[["y_low", "y_high"]], drawn[["y"]])),
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
    factors = " · ".join(f"{label(n).short}{power(v)}" for n, v in zip(law.names, law.values, strict=True))
    title = f"{label(s.y).short} / fitted critical {label(s.y).short}"
    return Figure(
        name="collapse",
        title=f"collapse of all curves by {label(s.y).short} ~ {factors}",
        caption="Every measured point with its horizontal axis divided by the fitted law: one curve if the law holds.",
        chart=collapse_chart(
            series,
            x_title=title,
            along=s.y,
            outcome=label(s.outcome),
            unit=s.unit,
            domain=span(points[["scaled"]]),
        ),
        tables={"points": points},
        link={"x": s.y, "series": s.x},
        series=len(series.values),
    )


def agreement(s: Subject, panel: Panel) -> Built:
    """Prediction against measurement for every setting."""
    if s.predicted is None:
        return s.reasons.get("predicted", f"no column predicted_{s.outcome}")
    points = agreement_points(s.cells, outcome=s.outcome, predicted=s.predicted)
    if not len(points):
        return "no finished cell has both a measurement and a prediction"
    error, settings = float(points["error"].abs().mean()), len(points)
    points, few = thinned(points)
    low = float(min(points["predicted"].min(), points["value"].min()))
    high = float(max(points["predicted"].max(), points["value"].max()))
    diagonal = pd.DataFrame({"predicted": [0.0, 1.0] if s.unit else [low, high]})
    link = {c: c for c in points.columns if c in s.cells.settings}
    return Figure(
        name="agreement",
        title=f"predicted and measured {label(s.outcome).name}",
        caption=f"One point per setting; mean absolute error {error:.3f} over {settings:,} settings.{few}",
        chart=agreement_chart(outcome=label(s.outcome), link=link, unit=s.unit),
        tables={"points": points, "diagonal": diagonal},
        link=link,
        ratio=0.9,
    )
