"""Figures of shares and counts: exponents, sources of noise, time per cell, cells by state."""

from __future__ import annotations

import pandas as pd

from memcap.report.charts.bars import signal_chart, states_chart, times_chart
from memcap.report.charts.exponents import exponents_chart
from memcap.report.drawing import Figure
from memcap.report.labels import compact, heading, label, number
from memcap.report.subject import Built, Panel, Subject, held
from memcap.report.tables.axis import Axis, axis
from memcap.report.tables.exponents import exponent_rows
from memcap.report.tables.failures import cell_times, state_counts
from memcap.report.tables.signal import signal_shares
from memcap.report.tables.thinned import span, thinned


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
    table, few = thinned(table)
    return Figure(
        name="times",
        title=f"time per cell against {label(along).short}",
        caption=f"One dot per cell, the line is the median; {number(total)} s in all.{few}",
        chart=times_chart(x, domain=span(table[["seconds"]])),
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
