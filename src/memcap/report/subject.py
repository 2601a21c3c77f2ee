"""What a report is about: cells, the plane (x, y), the result, the target, and the fits through it.

``subject`` fills in what the caller left open; every figure is made from this one object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from memcap.errors import ConfigurationError
from memcap.report.cells import Cells, choose_axes, choose_outcome, determined
from memcap.report.drawing import Figure
from memcap.report.labels import label, number
from memcap.report.tables.axis import plain
from memcap.report.theory import join_predictions, with_predictions
from memcap.study.fits import Critical, Exponent

MOST_PANELS = 4

Built = Figure | str
"""A figure, or the reason why there is none."""


@dataclass(frozen=True)
class Panel:
    """One plane of a study with more than two varied settings: the cells at ``fixed``."""

    cells: Cells
    fixed: dict[str, Any]

    @property
    def words(self) -> str:
        """``L = 32, V = 256``; empty when nothing else varies."""
        return ", ".join(f"{label(k).short} = {number(v)}" for k, v in self.fixed.items())


def titled(title: str, panel: Panel) -> str:
    """A figure's title with the settings of its panel."""
    return f"{title}, {panel.words}" if panel.words else title


@dataclass(frozen=True)
class Subject:
    """Everything the figures of a report share.

    Attributes:
        cells: all cells.
        panels: planes to draw, at most ``MOST_PANELS``; the first is the one with most finished cells.
        hidden: how many further planes exist.
        x: columns of the plane; None when fewer than two settings vary.
        y: rows of the plane, along which the target is crossed; None when nothing varies.
        free: settings that vary on their own, x and y included.
        outcome: the result.
        predicted: column with its prediction, if any.
        target: level of the boundary.
        criticals: fitted crossings along y.
        exponents: source -> law of the critical value.
        reasons: why fits are missing, by what they would have given.
    """

    cells: Cells
    panels: tuple[Panel, ...]
    hidden: int
    x: str | None
    y: str | None
    free: tuple[str, ...]
    outcome: str
    predicted: str | None
    target: float
    criticals: tuple[Critical, ...] = ()
    exponents: dict[str, Exponent] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def unit(self) -> bool:
        """Whether the result and its prediction lie in [0, 1]."""
        columns = [self.outcome] + ([self.predicted] if self.predicted else [])
        values = self.cells.done[columns].astype(float)
        return bool(((values >= 0) & (values <= 1) | values.isna()).all(axis=None))


def subject(
    cells: Cells,
    *,
    x: str | None = None,
    y: str | None = None,
    outcome: str | None = None,
    target: int | float | None = None,
    criticals: Sequence[Critical] | None = None,
    exponents: Mapping[str, Exponent] | None = None,
) -> Subject:
    """The subject of a report, with defaults from the study itself.

    Raises:
        ConfigurationError: for unknown names (with the nearest valid one) or a target that is not a number.
        DataError: when no cell has a result.
    """
    stated = _boundary(cells)
    if target is None:
        target = float(stated.get("target", 0.5))
    if not isinstance(target, int | float) or isinstance(target, bool) or target != target:
        raise ConfigurationError(f"target must be a number, the level of {outcome or 'the result'}, got {target!r}")
    cells = join_predictions(cells)
    if outcome is None and stated.get("response") in cells.results:
        outcome = str(stated["response"])
    outcome = choose_outcome(cells, outcome)
    if y is None and stated.get("axis") in cells.axes and stated["axis"] != x:
        y = str(stated["axis"])
    x, y = choose_axes(cells, x, y)
    cells, problem = with_predictions(cells, outcome)
    others = _free(cells, x, y)
    panels = _panels(cells, others)
    base = Subject(
        cells=cells,
        panels=tuple(panels[:MOST_PANELS]),
        hidden=max(len(panels) - MOST_PANELS, 0),
        x=x,
        y=y,
        free=(*(a for a in (x, y) if a is not None), *others),
        outcome=outcome,
        predicted=None if problem else f"predicted_{outcome}",
        target=float(target),
        reasons={"predicted": problem} if problem else {},
    )
    if criticals is None and exponents is None:
        from memcap.report.fitted import fitted

        return fitted(base)
    return replace(base, criticals=tuple(criticals or ()), exponents=dict(exponents or {}))


def _boundary(cells: Cells) -> dict[str, Any]:
    """What a study with ``strategy: boundary`` says about its boundary: axis, response, target."""
    grids = cells.meta.get("grids") or []
    found = [g["boundary"] for g in grids if isinstance(g, Mapping) and isinstance(g.get("boundary"), Mapping)]
    return {k: v for k, v in dict(found[-1]).items() if v not in ("", None)} if found else {}


def _free(cells: Cells, x: str | None, y: str | None) -> list[str]:
    """Settings that vary on their own: what follows from the others (a derived axis) makes no panel."""
    known = [a for a in (x, y) if a is not None]
    free: list[str] = []
    for name in cells.axes:
        if name not in known and not determined(cells, name, [*known, *free]):
            free.append(name)
    return free


def _panels(cells: Cells, others: list[str]) -> list[Panel]:
    if not others:
        return [Panel(cells, {})]
    found: list[tuple[int, int, Panel]] = []
    for values, group in cells.frame.groupby(others, sort=True, dropna=False):
        fixed = {name: plain(v) for name, v in zip(others, values, strict=True)}
        done = int((group["state"] == "done").sum())
        found.append((-done, len(found), Panel(replace(cells, frame=group), fixed)))
    return [panel for _, _, panel in sorted(found, key=lambda row: row[:2])]


def held(cells: Cells, axis: str, others: Mapping[str, pd.Series]) -> Cells:
    """The cells of one line along ``axis``: every other setting at its middle value (the lower one of two)."""
    keep = pd.Series(True, index=cells.frame.index)
    for name, column in others.items():
        if name != axis:
            values = sorted(column.unique().tolist(), key=lambda v: (isinstance(v, str), v))
            keep &= column == values[(len(values) - 1) // 2]
    return replace(cells, frame=cells.frame[keep])
