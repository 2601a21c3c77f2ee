"""The report as one HTML file: figures, failures, per-cell table, method; it runs without a network.

The Vega libraries come from the installed vl-convert package.  The page's own script and style are in ``assets``; a
content-security policy forbids every request.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from memcap.errors import RunError
from memcap.report.cells import Cells
from memcap.report.charts.cell import line_chart, trace_chart
from memcap.report.drawing import Figure, json_value, theme_params, vega_lite_version
from memcap.report.labels import label, number
from memcap.report.subject import Subject
from memcap.report.tables.axis import axis, plain
from memcap.report.tables.failures import censored_lines, error_groups
from memcap.report.theme import PALETTES, config, ramp
from memcap.version import __version__

SCREEN = ("light", "dark")
MOST_ROWS = 6000
"""Rows of the per-cell table inside the file; a larger study is exported instead."""
MOST_TRACED = 40_000
"""Numbers in recorded curves inside the file."""
SCRIPTS = ("report.js", "table.js", "cell.js")


def page(
    s: Subject,
    figures: Sequence[Figure],
    reasons: dict[str, str],
    *,
    title: str,
    question: str,
    method: str,
    versions: dict[str, str],
) -> str:
    """The whole document."""
    data = _data(s, figures)
    names = data["cells"]["shown"]
    columns = [
        {
            "name": n,
            "title": label(n).title,
            "words": label(n).title if label(n).unit == "s" else label(n).name,
            "symbol": label(n).symbol,
            "text": n in data["cells"]["text"],
        }
        for n in names
    ]
    cut = len(s.cells.frame) - min(len(s.cells.frame), MOST_ROWS)
    note = (
        f"The first {MOST_ROWS:,} of {len(s.cells.frame):,} cells are here; memcap study export has all." if cut else ""
    )
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string(_asset("report.html"))
    return template.render(
        version=__version__,
        title=title,
        question=_paragraphs(question),
        method=_paragraphs(method),
        keys=key_numbers(s),
        figures=[{"name": f.name, "title": f.title, "caption": f.caption, "brush": _brush(f)} for f in figures],
        reasons=sorted(reasons.items()),
        hidden=s.hidden,
        hidden_axes=", ".join(label(k).title for k in s.panels[0].fixed),
        errors=error_groups(s.cells).head(50).to_dict("records"),
        censored=censored_lines(s.criticals, s.cells.axes).to_dict("records"),
        fitted=bool(s.criticals),
        columns=columns,
        filter_example=_filter_example(s),
        table_note=note,
        fixed=[(label(k).title, number(v)) for k, v in s.cells.fixed.items()],
        versions=sorted(versions.items()),
        css=Markup(_asset("report.css")),
        data=Markup(
            json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
        ),
        vega=Markup(vega_bundle()),
        script=Markup("\n".join(_asset(name) for name in SCRIPTS)),
    )


@lru_cache(maxsize=1)
def vega_bundle() -> str:
    """Vega, Vega-Lite and vega-embed as one script, from the installed vl-convert."""
    import vl_convert

    bundle = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=vega_lite_version()))
    if "</script" in bundle.lower() or "<!--" in bundle:
        raise RunError(
            "the Vega libraries of the installed vl-convert cannot be put inside a page: they hold a </script>"
        )
    return bundle


def _asset(name: str) -> str:
    return (resources.files("memcap.report") / "assets" / name).read_text(encoding="utf-8")


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def _brush(figure: Figure) -> bool:
    return "cells" in figure.tables


def _filter_example(s: Subject) -> str:
    if s.y is None:
        return f"{s.outcome}>={number(s.target)}"
    middle = axis(s.y, s.cells.frame[s.y])
    value = middle.values[len(middle.values) // 2]
    operator = "=" if middle.kind == "category" else ">="
    return f"{s.y}{operator}{value} done"


def key_numbers(s: Subject) -> list[dict[str, Any]]:
    """The few numbers at the top of the page: ``name, value, note, bad``."""
    frame = s.cells.frame
    done = int((frame["state"] == "done").sum())
    failed = int(frame["state"].isin(["failed", "lost"]).sum())
    keys: list[dict[str, Any]] = [
        {"name": "cells done", "value": f"{done:,} / {len(frame):,}", "note": "", "bad": False}
    ]
    if failed:
        keys.append({"name": "failed or lost", "value": f"{failed:,}", "note": "never counted as results", "bad": True})
    for law in list(s.exponents.values())[:1]:
        for name, value, low, high in zip(law.names, law.values, law.lows, law.highs, strict=True):
            shown = f"{value:.2f}".replace("-", "−")
            span = f"critical {label(law.response).short}; 95 %: {low:.2f} … {high:.2f}".replace("-", "−")
            keys.append({"name": f"exponent of {label(name).title}", "value": shown, "note": span, "bad": False})
    if s.predicted is not None:
        error = (frame[s.outcome].astype(float) - frame[s.predicted].astype(float)).abs().mean()
        note = f"of predicted {label(s.outcome).name}, per cell"
        keys.append({"name": "mean absolute error", "value": f"{error:.3f}", "note": note, "bad": False})
    if s.criticals:
        censored = sum(c.censored is not None for c in s.criticals)
        note = f"{censored} censored" if censored else "none censored"
        keys.append(
            {"name": "lines with a crossing", "value": str(len(s.criticals) - censored), "note": note, "bad": False}
        )
    if "seconds" in frame and frame["seconds"].notna().any():
        keys.append(
            {"name": "computing time", "value": duration(float(frame["seconds"].sum())), "note": "", "bad": False}
        )
    return keys


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(0.25), duration(75.0), duration(7300.0)
    ('0.25 s', '1.2 min', '2 h')
    """
    for size, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} s"


def _data(s: Subject, figures: Sequence[Figure]) -> dict[str, Any]:
    cells = s.cells
    axes = list(cells.axes)
    scales = {name: axis(name, cells.frame[name]) for name in axes}
    traces, table = _traces(_table(cells))
    frame = table.head(MOST_ROWS)
    text = [c for c in frame.columns if c not in traces and not pd.api.types.is_numeric_dtype(frame[c])]
    minis: dict[str, Any] = {
        name: line_chart(scales[name], outcome=label(s.outcome), predicted=s.predicted is not None, unit=s.unit)
        for name in axes[:4]
    }
    minis |= {f"trace:{name}": trace_chart(name) for name in traces}
    values = {name: [json_value(v) for v in scales[name].values] for name in axes}
    return {
        "figures": [_packed_figure(f) for f in figures],
        "cells": {
            "columns": {c: _packed(frame[c], c in traces) for c in frame.columns},
            "shown": [c for c in frame.columns if c not in traces and c != "cell"],
            "text": text,
            "axes": axes,
            "pickable": [*axes, "state"],
            "results": [r for r in cells.results if r in frame.columns],
            "traces": traces,
        },
        "values": values | {"state": sorted(cells.frame["state"].unique().tolist())},
        "places": {name: list(scales[name].at) for name in axes},
        "labels": {
            c: {"name": label(c).name, "symbol": label(c).symbol, "short": label(c).short, "title": label(c).title}
            for c in {*frame.columns, s.outcome}
        },
        "outcome": s.outcome,
        "predicted": s.predicted,
        "minis": minis,
        "themes": {t: {"config": config(t), "params": theme_params(t), "ink": PALETTES[t].ink} for t in SCREEN},
    }


def _table(cells: Cells) -> pd.DataFrame:
    """What the per-cell table holds: varied settings, seed, state, results, time, error, recorded curves, identity."""
    frame = cells.frame
    lists = [c for c in frame.columns if any(isinstance(v, list) for v in frame[c].head(200))]
    seeds = ["seed"] if "seed" in frame.columns and frame["seed"].nunique(dropna=False) > 1 else []
    ends = [c for c in ("seconds", "error") if c in frame.columns and frame[c].notna().any()]
    names = [*cells.axes, *seeds, "state", *cells.results, *ends, *lists, "cell"]
    table = frame[list(dict.fromkeys(names))].copy()
    for name in (*cells.axes, *seeds):
        table[name] = pd.Series([plain(v) for v in frame[name]], index=frame.index, dtype=object).infer_objects()
    if "error" in table:
        first = [v.strip().splitlines()[0] if isinstance(v, str) and v.strip() else None for v in table["error"]]
        table["error"] = pd.Series(first, index=table.index, dtype=object)
    return table


def _traces(table: pd.DataFrame) -> tuple[list[str], pd.DataFrame]:
    """Names of the recorded curves that fit into the file, and the table without the other lists."""
    found: list[str] = []
    dropped: list[str] = []
    total = 0
    for name in table.columns:
        lists = [v for v in table[name].head(MOST_ROWS) if isinstance(v, list)]
        if not lists:
            continue
        size = sum(map(len, lists))
        if all(map(_numeric, lists)) and total + size <= MOST_TRACED:
            found.append(str(name))
            total += size
        else:
            dropped.append(str(name))
    return found, table.drop(columns=dropped)


def _numeric(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


def _packed(column: pd.Series, trace: bool) -> list[Any]:
    if trace:
        return [[json_value(x) for x in v] if isinstance(v, list) else None for v in column]
    return [json_value(v) for v in column.tolist()]


def _packed_figure(figure: Figure) -> dict[str, Any]:
    return {
        "name": figure.name,
        "chart": figure.chart,
        "tables": {n: {str(c): _packed(t[c], False) for c in t.columns} for n, t in figure.tables.items()},
        "link": figure.link,
        "fixed": {k: json_value(v) for k, v in figure.fixed.items()},
        "ordinal": {t: ramp(t, figure.series) for t in SCREEN},
        "height": figure.height,
        "brush": _brush(figure),
    }
