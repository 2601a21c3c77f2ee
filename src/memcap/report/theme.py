"""Colours and type for light, dark and paper; specifications name roles, and this file says what a role looks like.

Chart specifications hold no colour.  They use Vega-Lite's ranges (``heatmap``, ``diverging``, ``ordinal``,
``category``) and named mark styles, so that one specification serves a page in both modes and a printed column.
Qualitative colours follow Okabe and Ito; the ramps change lightness in one direction, so that they survive a
grey-scale print and the common colour-vision deficiencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memcap.errors import ConfigurationError, nearest

FONTS = "Liberation Sans, Helvetica Neue, Helvetica, Arial, sans-serif"
"""The first is bundled with vl-convert, so that exported figures are the same on every machine."""


@dataclass(frozen=True)
class Palette:
    """The colours of one mode."""

    ink: str
    soft: str
    line: str
    paper: str
    measured: str
    predicted: str
    failed: str
    absent: str
    heatmap: tuple[str, ...]
    diverging: tuple[str, ...]
    ordinal: tuple[str, ...]
    category: tuple[str, ...]


LIGHT = Palette(
    ink="#1d2733",
    soft="#5a6675",
    line="#d9dee5",
    paper="#ffffff",
    measured="#d24a00",
    predicted="#101820",
    failed="#b3261e",
    absent="#eceff3",
    heatmap=("#f3f1ea", "#d3e2ec", "#a0c4dd", "#639bc6", "#2f6ea9", "#143f78", "#081f45"),
    diverging=("#7f3b08", "#d07a1c", "#f6cf97", "#f6f5f1", "#c4c0e2", "#7568b0", "#2d0a52"),
    ordinal=("#46085c", "#433e85", "#30688e", "#20908d", "#35b479", "#86c93f"),
    category=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5b5b5b", "#8c510a", "#7b61a8"),
)

DARK = Palette(
    ink="#e7ecf2",
    soft="#9aa7b6",
    line="#2f3a47",
    paper="#131a22",
    measured="#ff9d4d",
    predicted="#f6f8fa",
    failed="#ff8a80",
    absent="#1d2630",
    heatmap=("#18222d", "#163a61", "#1c5d96", "#3a87c2", "#78b4dd", "#b7daf0", "#f3fafd"),
    diverging=("#ffb762", "#b9722a", "#5b3c1e", "#1b232d", "#3f3d70", "#7f78c8", "#cbc5ff"),
    ordinal=("#8f8be0", "#6a9fe0", "#45b3c9", "#4cc59a", "#93d45a", "#f2e34c"),
    category=("#56b4e9", "#ff8f3f", "#2fc79a", "#e79bc6", "#f2c14b", "#a9d6f5", "#b8bec6", "#cf9b5c", "#b39ddb"),
)

PALETTES = {"light": LIGHT, "dark": DARK, "paper": LIGHT}
SIZES = {"light": 12, "dark": 12, "paper": 8}


def ramp(theme: str, steps: int) -> list[str]:
    """The ordinal colours of a theme, interpolated to ``steps`` of them (ends included).

    >>> ramp("light", 2)
    ['#46085c', '#86c93f']
    """
    stops = [[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in PALETTES[theme].ordinal]
    found = []
    for step in range(max(steps, 1)):
        at = step * (len(stops) - 1) / max(steps - 1, 1)
        left = min(int(at), len(stops) - 2)
        mixed = [round(a + (b - a) * (at - left)) for a, b in zip(stops[left], stops[left + 1], strict=True)]
        found.append("#" + "".join(f"{v:02x}" for v in mixed))
    return found


def config(theme: str) -> dict[str, Any]:
    """The Vega-Lite configuration of a theme.

    Args:
        theme: ``light`` and ``dark`` (screen), or ``paper`` (8 point type and thinner lines, for a printed column).

    Raises:
        ConfigurationError: for an unknown theme.
    """
    if theme not in PALETTES:
        raise ConfigurationError(f"no theme {theme!r}{nearest(theme, PALETTES)}; themes: {', '.join(PALETTES)}")
    c, size = PALETTES[theme], SIZES[theme]
    thin = theme == "paper"
    width = 1.2 if thin else 2.0
    axis = {
        "labelColor": c.soft,
        "titleColor": c.ink,
        "domainColor": c.soft,
        "tickColor": c.soft,
        "gridColor": c.line,
        "gridOpacity": 0.7,
        "gridWidth": 0.5 if thin else 1,
        "domainWidth": 0.5 if thin else 1,
        "tickWidth": 0.5 if thin else 1,
        "tickSize": 3 if thin else 4,
        "labelFontSize": size - 1,
        "titleFontSize": size,
        "titleFontWeight": "normal",
        "titlePadding": 4 if thin else 10,
        "labelPadding": 2 if thin else 4,
    }
    return {
        "background": "transparent",
        "font": FONTS,
        "padding": 2 if thin else 4,
        "view": {"stroke": None},
        "axis": axis,
        "legend": {
            "labelColor": c.soft,
            "titleColor": c.ink,
            "labelFontSize": size - 1,
            "titleFontSize": size - 1,
            "titleFontWeight": "normal",
            "orient": "top",
            "gradientThickness": 5 if thin else 8,
            "gradientStrokeColor": c.line,
            "symbolStrokeWidth": width,
            "symbolSize": 30 if thin else 70,
            "columnPadding": 8 if thin else 14,
            "titleOrient": "top",
            "titlePadding": 2 if thin else 4,
            "rowPadding": 1 if thin else 3,
            "offset": 4 if thin else 8,
            "layout": {"top": {"margin": 14 if thin else 18}},
        },
        "title": {"color": c.ink, "fontSize": size + 1, "fontWeight": 600, "anchor": "start"},
        "range": {
            "heatmap": list(c.heatmap),
            "ramp": list(c.heatmap),
            "diverging": list(c.diverging),
            "ordinal": list(c.ordinal),
            "category": list(c.category),
        },
        "rect": {"stroke": None},
        "line": {"strokeWidth": width, "strokeCap": "round", "strokeJoin": "round"},
        "point": {"filled": True, "size": 16 if thin else 44},
        "rule": {"color": c.soft, "strokeWidth": 0.8 if thin else 1.2},
        "text": {"color": c.ink, "fontSize": size - 1},
        "mark": {"color": c.category[0]},
        "style": {
            "halo": {"color": c.paper, "strokeWidth": width + (1.6 if thin else 3), "opacity": 0.85},
            "measured": {"color": c.measured, "strokeWidth": width * 1.2},
            "measured-point": {"color": c.measured, "stroke": c.paper, "strokeWidth": 0.4 if thin else 1},
            "predicted": {"color": c.predicted, "strokeDash": [3, 2] if thin else [6, 4], "strokeWidth": width * 0.9},
            "reference": {"color": c.soft, "strokeDash": [2, 2] if thin else [3, 3], "strokeWidth": width * 0.5},
            "failed": {"color": c.failed, "fontSize": size + 4, "fontWeight": 700},
            "absent": {"color": c.absent, "stroke": c.line, "strokeWidth": 0.5 if thin else 1},
            "note": {"color": c.soft, "fontSize": size - 2},
            "picked": {"color": "transparent", "stroke": c.ink, "strokeWidth": width},
        },
    }
