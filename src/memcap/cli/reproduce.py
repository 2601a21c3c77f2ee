"""``memcap reproduce``: rebuild a published figure from its checked-in configuration, and check it.

How a figure joins: add a line ``name -> module`` to ``FIGURES``.  The module (in any room left of ``cli``) has

* ``SUMMARY``: one line for the list of figures;
* ``reproduce(scale, *, seed=0, workers=2, progress=None, only=None) -> dict``, where ``scale`` is ``"small"`` (at most
  3 minutes on 2 cores) or ``"full"``, ``progress`` is None or a callable ``progress(done, total, what)``, and ``only``
  restricts the parts that are measured by a piece of their name.  The dictionary is ready for JSON and holds

  - ``figure``, ``scale``, ``seed``, ``seconds``;
  - ``configuration``: hash of the configuration that was run;
  - ``tables``: a list of ``{"title": str, "columns": [str, ...], "rows": [[str | int | float | None, ...], ...]}``;
  - ``checks``: a list of ``{"what": str, "measured": float | None, "bound": float | None, "passed": bool}`` and, where
    the measurement has sampling noise, ``"noise": float`` (allowed on top of the bound, and shown);
  - anything else the figure wants to keep.

The verb prints tables and checks and exits with 1 if a check fails.  Nothing here knows what a figure measures.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from memcap.cli.app import out, print_json, strict
from memcap.cli.progress import showing
from memcap.cli.shared_options import output_options
from memcap.errors import ConfigurationError, missing_folder, nearest

FIGURES: dict[str, str] = {
    "early-phase": "memcap.retrieval.early_phase.figure",
    "lower-bound": "memcap.retrieval.under_bounds.figure",
    "phase-diagrams": "memcap.study.phase_diagrams.figure",
    "sqrt-law": "memcap.study.memory_laws.sqrt_law",
    "seq2seq-law": "memcap.study.memory_laws.seq2seq_law",
    "depth-tradeoff": "memcap.study.memory_laws.depth_tradeoff",
}
"""Figure -> module with ``SUMMARY`` and ``reproduce``."""

DRAWINGS: dict[str, str] = {"lower-bound": "memcap.report.bounds"}
"""Figure -> module whose ``figures(record)`` draws it; the phase diagrams are drawn by ``memcap study report``."""

SCALES = ("small", "full")


@click.command(name="reproduce")
@click.argument("figure", required=False)
@click.option("--scale", default="small", show_default=True, metavar="small|full", help="Minutes, or all of it.")
@click.option("--seed", type=int, default=0, show_default=True, help="First seed.")
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True, help="Runs at once.")
@click.option("--only", metavar="TEXT", help="Measure only the parts whose name contains TEXT.")
@click.option("--out", "destination", type=click.Path(dir_okay=False), help="Also write the record as JSON.")
@click.option("--draw", "folder", metavar="FOLDER", help="Also draw it there, one SVG a chart (lower-bound).")
@output_options
def command(
    figure: str | None,
    scale: str,
    seed: int,
    workers: int,
    only: str | None,
    destination: str | None,
    folder: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Rebuild FIGURE from its checked-in configuration; without FIGURE, list the figures.

    Exit code 1 if a check of the figure fails.

    Examples:

        memcap reproduce early-phase --scale small

        memcap reproduce lower-bound --draw pictures
    """
    if figure is None:
        _list_figures(as_json)
        return 0
    if figure not in FIGURES:
        raise ConfigurationError(f"no figure {figure!r}{nearest(figure, FIGURES)}; figures: {', '.join(FIGURES)}")
    if scale not in SCALES:
        raise ConfigurationError(f"scale must be small or full, got {scale!r}{nearest(scale, SCALES)}")
    for place in (destination, folder):
        if place is not None and not Path(place).absolute().parent.is_dir():
            raise missing_folder(place)
    if folder is not None and figure not in DRAWINGS:
        raise ConfigurationError(f"--draw draws {', '.join(DRAWINGS)}, not {figure}")
    module = importlib.import_module(FIGURES[figure])
    with showing(quiet or as_json) as progress:
        record = module.reproduce(scale, seed=seed, workers=workers, progress=progress, only=only)
    if destination is not None:
        text = json.dumps(strict(record), ensure_ascii=False, allow_nan=False, indent=1)
        Path(destination).write_text(text + "\n", encoding="utf-8")
    if folder is not None:
        Path(folder).mkdir(exist_ok=True)
        charts = importlib.import_module(DRAWINGS[figure]).figures(record)
        drawn = [str(chart.save(Path(folder) / f"{chart.name}.svg", theme="light", width=720)) for chart in charts]
        record = {**record, "drawn": drawn}
    failed = [check for check in record["checks"] if not check["passed"]]
    if as_json:
        print_json(record)
    else:
        _print(record, quiet)
        for path in record.get("drawn", []):
            out.print(f"drawn: {path}", markup=False)
    return 1 if failed else 0


def _list_figures(as_json: bool) -> None:
    summaries = {name: importlib.import_module(module).SUMMARY for name, module in FIGURES.items()}
    if as_json:
        print_json({"figures": summaries})
        return
    for name, summary in summaries.items():
        out.print(f"{name}  {summary}", markup=False)


def _print(record: dict[str, Any], quiet: bool) -> None:
    if not quiet:
        for table in record["tables"]:
            shown = Table(*table["columns"], title=Text(table["title"]), title_justify="left")
            for row in table["rows"]:
                shown.add_row(*[Text(_cell(value)) for value in row])
            out.print(shown)
    checks = Table("check", "measured", "bound", "noise", "", title="Checks", title_justify="left")
    for check in record["checks"]:
        noise = check.get("noise")
        checks.add_row(
            Text(check["what"]),
            _cell(check["measured"]),
            _cell(check["bound"]),
            _cell(noise) if noise else "",
            "passed" if check["passed"] else "FAILED",
        )
    out.print(checks)
    failed = sum(not check["passed"] for check in record["checks"])
    verdict = f"{failed} of {len(record['checks'])} checks failed" if failed else "all checks passed"
    out.print(
        f"{record['figure']}, scale {record['scale']}, configuration {record['configuration']}: {verdict} "
        f"in {record['seconds']:.0f} s",
        markup=False,
    )


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
