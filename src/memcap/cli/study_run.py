"""``memcap study run`` and ``memcap study resume``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from memcap.cli.app import out, print_json
from memcap.cli.shared_options import output_options

F = TypeVar("F", bound=Callable[..., Any])
TIME_IS_UP = 3
"""Exit code of a run that its time limit ended with cells still to do; failed and lost cells make it 1."""


def _run_options(function: F) -> F:
    for option in (
        click.option(
            "--workers",
            type=int,
            default=0,
            show_default=True,
            metavar="N",
            help="Local processes; 0 computes in this one.",
        ),
        click.option("--scheduler", metavar="ADDRESS", help="A Dask cluster instead, such as tcp://host:8786."),
        click.option("--threads", type=int, default=1, show_default=True, help="Numeric threads in each process."),
        click.option("--memory-limit", metavar="SIZE", help="Most that a local process may use, such as '2 GiB'."),
        click.option(
            "--time-limit", type=float, metavar="SECONDS", help="Stop then, with exit code 3 if cells are left."
        ),
        click.option("--tries", type=int, default=3, show_default=True, help="For a cell that ends its worker."),
        click.option("--retry-failed", is_flag=True, help="Compute failed cells again."),
        click.option("--fail-fast", is_flag=True, help="Stop at the first failed cell."),
        output_options,
    ):
        function = option(function)
    return function


@click.command(name="run")
@click.argument("grid", type=click.Path())
@click.option("--store", required=True, type=click.Path(), help="The study's file; created if missing.")
@_run_options
def run(grid: str, store: str, as_json: bool, quiet: bool, **options: Any) -> int:
    """Compute the cells of GRID (a YAML file) that are not done yet.

    Ctrl-C loses nothing.  Exit code: 0 all done, 1 a cell failed or was lost, 2 wrong call, 3 the time limit left cells
    to do, 130 interrupted.

    Example:

        memcap study run grid.yaml --store phase.db --workers 2
    """
    from memcap.study.grid import Grid
    from memcap.study.study import Study

    checked = Grid.read(grid)
    if checked.boundary is None:
        checked.cells  # noqa: B018 - every cell is checked before a file is created
    with Study.open(store) as study:
        return _tell(study.run(checked, progress=_progress(as_json, quiet), **options), study, as_json, quiet)


@click.command(name="resume")
@click.argument("store", type=click.Path())
@_run_options
def resume(store: str, as_json: bool, quiet: bool, **options: Any) -> int:
    """Go on with every grid that was run in STORE: cells still to do and cells that were lost.

    Exit code: 0 all done, 1 a cell failed or was lost, 2 wrong call, 3 the time limit left cells to do, 130
    interrupted.

    Example:

        memcap study resume phase.db --workers 2
    """
    from memcap.study.study import Study

    with Study.open(store, create=False) as study:
        return _tell(study.resume(progress=_progress(as_json, quiet), **options), study, as_json, quiet)


def _progress(as_json: bool, quiet: bool) -> bool:
    return not (as_json or quiet)


def _tell(summary: Any, study: Any, as_json: bool, quiet: bool) -> int:
    record = {"store": study.name, **summary.to_dict()}
    if as_json:
        print_json(record)
    else:
        parts = [f"{summary.done} done in {summary.seconds:.1f} s"]
        for name in ("failed", "lost", "already_done", "elsewhere", "pending"):
            if record[name]:
                parts.append(f"{record[name]} {name.replace('_', ' ')}")
        stopped = f" (stopped: {summary.stopped})" if summary.stopped else ""
        out.print(f"{study.name}: {', '.join(parts)}{stopped}", markup=False)
        before = study.status()["failed"] - summary.failed
        if before and not quiet:
            out.print(
                f"{before} failed in earlier runs and were left: --retry-failed computes them again", markup=False
            )
        if not quiet and (summary.pending or summary.lost or summary.stopped):
            out.print(f"go on with: memcap study resume {study.name}", markup=False)
    if summary.failed or summary.lost:
        return 1
    return TIME_IS_UP if summary.stopped == "time limit" else 0
