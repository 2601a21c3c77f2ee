"""Figures of the plane: measured and predicted phase diagram, and their difference, with the boundaries on top."""

from __future__ import annotations

import numpy as np
import pandas as pd

from memcap.report.charts.phase import phase_chart
from memcap.report.drawing import Figure
from memcap.report.labels import Label, label, number
from memcap.report.subject import Built, Panel, Subject, titled
from memcap.report.tables.axis import axis
from memcap.report.tables.boundary import clipped, measured_boundary, predicted_boundary
from memcap.report.tables.phase import difference_cells, phase_cells

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
        title=titled(title, panel),
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
