"""A recall curve as a file (SVG, PNG, PDF, HTML): predicted line, simulated points with intervals, logarithmic axis."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from memcap.errors import ConfigurationError, missing_folder, nearest

if TYPE_CHECKING:
    from memcap.retrieval.task import RetrievalTask

FORMATS = ("svg", "png", "pdf", "html")


def check_destination(path: str) -> Path:
    """``path`` if a curve can be written there; called before anything is computed.

    Raises:
        ConfigurationError: for another suffix or a folder that does not exist.
    """
    target = Path(path)
    kind = target.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise ConfigurationError(
            f"cannot draw a curve as {target.name!r}{nearest(kind, FORMATS)}; formats: {', '.join(FORMATS)}"
        )
    if not target.resolve().parent.is_dir():
        raise missing_folder(path)
    return target


def curve_title(task: RetrievalTask, *varied: str) -> str:
    """The sizes that a curve keeps fixed."""
    names = {"vocabulary": "V", "length": "L", "samples": "N", "dimension": "d", "width": "m"}
    fixed = [
        f"{short}={getattr(task, name):,}"
        for name, short in names.items()
        if name not in varied and getattr(task, name)
    ]
    return f"Token retrieval, {', '.join(fixed)}"


def draw_curve(rows: list[dict[str, Any]], field: str, title: str, path: Path, *, size: str = "") -> None:
    """Write the curve of ``rows`` (``field``, ``predicted``, perhaps ``simulated``, ``low``, ``high``) to ``path``.

    The vertical axis is recall, or the logarithm of ``size`` where that is given.
    """
    import altair as alt

    across = alt.X(f"{field}:Q", scale=alt.Scale(type="log", nice=False), title=field)
    up = alt.Scale(type="log", nice=False) if size else alt.Scale(domain=[0, 1])
    name = size or "recall"
    layers: list[Any] = [
        alt.Chart(alt.InlineData([r for r in rows if r["predicted"] is not None]))
        .mark_line(strokeDash=[5, 3], color="#8a4f00")
        .encode(x=across, y=alt.Y("predicted:Q", scale=up, title=name))
    ]
    simulated = [r for r in rows if r.get("simulated") is not None]
    if simulated:
        base = alt.Chart(alt.InlineData(simulated))
        tips = [alt.Tooltip(f"{name}:Q") for name in (field, "simulated", "low", "high", "predicted")]
        bars = base.mark_rule(color="#1f4e79").transform_filter("isValid(datum.low)")
        layers.append(bars.encode(x=across, y=alt.Y("low:Q", scale=up, title=name), y2="high:Q"))
        layers.append(
            base.mark_point(filled=True, size=45, color="#1f4e79").encode(
                x=across, y=alt.Y("simulated:Q", scale=up, title=name), tooltip=tips
            )
        )
    subtitle = "dashed: predicted" + ("; points: simulated, 95 % over seeds" if simulated else "")
    chart = alt.layer(*layers).properties(width=480, height=320, title=alt.Title(title, subtitle=subtitle))
    if path.suffix.lower() == ".html":
        chart.save(str(path), inline=True)
    else:
        from memcap.report.drawing import render

        path.write_bytes(render(chart.to_dict(), path.suffix.lstrip(".").lower(), ppi=144))
