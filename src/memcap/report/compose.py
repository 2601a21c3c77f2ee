"""``memcap.report.write`` and ``memcap.report.figure``: from a study or a frame to a page or one figure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memcap.errors import ConfigurationError, missing_folder
from memcap.report.cells import Cells, read_cells
from memcap.report.drawing import FORMATS, Figure
from memcap.report.gallery import build, gallery
from memcap.report.labels import heading, label, number
from memcap.report.subject import Subject, subject
from memcap.study.fits import Critical, Exponent
from memcap.version import __version__


def write(
    source: object,
    path: str | Path,
    *,
    title: str | None = None,
    question: str | None = None,
    method: str | None = None,
    x: str | None = None,
    y: str | None = None,
    outcome: str | None = None,
    target: int | float | None = None,
    settings: Sequence[str] | None = None,
    criticals: Sequence[Critical] | None = None,
    exponents: Mapping[str, Exponent] | None = None,
    figures: str | Path | None = None,
    formats: Sequence[str] = ("svg",),
) -> Path:
    """Write a study as one HTML file that a reader can explore without a network.

    Args:
        source: a study or a pandas frame with one row per cell.
        path: the file, e.g. ``"phase.html"``.
        title: of the page; by default made from the axes.
        question: what the study asks; by default what the study says.
        method: how it was measured; by default what the study says.
        x: setting of the columns of the phase diagram.
        y: setting of its rows, along which the target is crossed; by default the samples.
        outcome: the result to show; by default recall.
        target: level of the boundary, in units of the result; by default what the study's boundary says, else 0.5.
        settings: which columns of a plain frame define a cell.
        criticals: fitted crossings; by default they are fitted here.
        exponents: source -> fitted law; by default fitted here.
        figures: a folder, made if missing, that also gets every figure as files for a paper.
        formats: of those files: ``svg``, ``pdf``, ``png``, ``json`` (Vega-Lite).

    Returns:
        The path.

    Raises:
        DataError: for an empty study or one without a result.
        ConfigurationError: for unknown names, with the nearest valid one, another ending than ``.html``, or a folder
            that does not exist; ``figures`` itself is created.
    """
    from memcap.report.page import page

    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ConfigurationError(
            f"a report is one HTML file: name it *.html, got {str(path)!r}; figures=DIR writes images"
        )
    for kind in formats:
        if kind not in FORMATS:
            raise ConfigurationError(f"no figure format {kind!r}; formats: {', '.join(FORMATS)}")
    for place in (path, *([Path(figures)] if figures is not None else [])):
        if not place.absolute().parent.is_dir():
            raise missing_folder(place)
    cells = read_cells(source, settings=settings)
    s = subject(cells, x=x, y=y, outcome=outcome, target=target, criticals=criticals, exponents=exponents)
    drawn, reasons = gallery(s)
    text = page(
        s,
        drawn,
        reasons,
        title=title or _title(s),
        question=question if question is not None else str(cells.meta.get("question") or ""),
        method=method if method is not None else str(cells.meta.get("method") or "") or _method(s),
        versions=_versions(cells),
    )
    path.write_text(text, encoding="utf-8")
    if figures is not None:
        export(drawn, Path(figures), formats)
    return path


def figure(
    source: object,
    kind: str = "phase",
    *,
    x: str | None = None,
    y: str | None = None,
    outcome: str | None = None,
    target: int | float | None = None,
    settings: Sequence[str] | None = None,
    criticals: Sequence[Critical] | None = None,
    exponents: Mapping[str, Exponent] | None = None,
) -> Figure:
    """One figure of a study: ``figure(study, "phase").save("phase.pdf")``.

    Args:
        source: as for ``write``.
        kind: ``phase``, ``phase-predicted``, ``difference``, ``critical``, ``curves``, ``curves-across``, ``collapse``,
            ``exponents``, ``agreement``, ``signal``, ``times`` or ``states``.
        x: as for ``write``.
        y: as for ``write``.
        outcome: as for ``write``.
        target: as for ``write``.
        settings: as for ``write``.
        criticals: as for ``write``.
        exponents: as for ``write``.

    Raises:
        ConfigurationError: for unknown names, or a figure that this study cannot support, with the reason.
    """
    cells = read_cells(source, settings=settings)
    s = subject(cells, x=x, y=y, outcome=outcome, target=target, criticals=criticals, exponents=exponents)
    built = build(s, kind)
    if isinstance(built, str):
        raise ConfigurationError(f"this study has no figure {kind!r}: {built}")
    return built


def export(figures: Sequence[Figure], folder: Path, formats: Sequence[str]) -> list[Path]:
    """Every figure in every format, one CSV per plain table, and the captions; returns what was written."""
    folder.mkdir(exist_ok=True)
    written = [f.save(folder / f"{f.name}.{kind}") for f in figures for kind in formats]
    for f in figures:
        for name, table in f.tables.items():
            written.append(folder / f"{f.name}-{name}.csv")
            table.to_csv(written[-1], index=False)
    captions = folder / "captions.md"
    captions.write_text("".join(f"**{f.name}** — {f.title}. {f.caption}\n\n" for f in figures), encoding="utf-8")
    return [*written, captions]


def _title(s: Subject) -> str:
    axes = [heading(a) for a in (s.x, s.y) if a is not None]
    return _sentence(f"{label(s.outcome).name} over {' and '.join(axes)}" if axes else label(s.outcome).name)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _method(s: Subject) -> str:
    seeds = s.cells.frame["seed"].nunique() if "seed" in s.cells.frame else 1
    axes = ", ".join(f"{label(a).title}: {s.cells.frame[a].nunique()} values" for a in s.cells.axes)
    return (
        f"A grid over {axes or 'one setting'}; {number(int(seeds))} seed{'s' if seeds != 1 else ''}. "
        f"Intervals of cells are Student's t over seeds, 95 %. Boundaries and exponents, where drawn, come from "
        f"memcap.study's fits, which use censored lines as bounds."
    )


def _versions(cells: Cells) -> dict[str, str]:
    found: dict[str, Any] = dict(cells.meta.get("versions") or {})
    frame = cells.frame
    if "versions" in frame:
        for text in frame["versions"].dropna().unique()[:20]:
            for name, version in json.loads(text).items() if isinstance(text, str) else []:
                known = str(found.get(name, version))
                found[name] = known if str(version) in known.split(", ") else f"{known}, {version}"
    found["memcap (report)"] = __version__
    for name, column in (("hosts", "host"), ("devices", "device")):
        if column in frame and frame[column].notna().any():
            found[name] = ", ".join(str(v) for v in frame[column].dropna().unique()[:5])
    if cells.meta.get("created"):
        found["study created"] = cells.meta["created"]
    return {str(k): str(v) for k, v in found.items()}
