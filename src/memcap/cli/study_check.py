"""``memcap study check``: what a grid is and what it will cost, before it runs."""

from __future__ import annotations

import click

from memcap.cli.app import err, out, print_json
from memcap.cli.shared_options import output_options


@click.command(name="check")
@click.argument("grid", type=click.Path())
@click.option("--workers", type=int, default=1, show_default=True, metavar="N", help="Local processes assumed.")
@click.option("--memory-limit", metavar="SIZE", help="Most that a cell may use, such as '2 GiB'.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Most that the run may take.")
@click.option("--patience", type=float, default=60.0, show_default=True, help="Seconds that one probe may take.")
@output_options
def check(
    grid: str,
    workers: int,
    memory_limit: str | None,
    time_limit: float | None,
    patience: float,
    as_json: bool,
    quiet: bool,
) -> int:
    """Count the cells of GRID, run up to three of them, and estimate time and memory of all.

    Exit code 1 if the grid cannot run here as it is.

    Example:

        memcap study check grid.yaml --workers 2
    """
    from memcap.study import backends
    from memcap.study.grid import Grid
    from memcap.study.probes import counted, estimate

    backends.check(workers=workers, tries=1, time_limit=time_limit, memory_limit=memory_limit)
    checked = Grid.read(grid)
    limit = None if memory_limit is None else backends.bytes_of(memory_limit)
    cost = estimate(checked, workers=workers, memory_limit=limit, time_limit=time_limit, patience=patience)
    if as_json:
        print_json({"grid": grid, "task": checked.task, **cost.to_dict()})
    else:
        which = f"{cost.cells} cells"
        if cost.cells_to_run != cost.cells:
            which += f", at most about {cost.cells_to_run} of them near the boundary"
        out.print(f"{grid}: task {checked.task}, {which}", markup=False)
        if not quiet:
            for name, values in checked.axes.items():
                out.print(f"  {name}: {len(values)} values, {values[0]} .. {values[-1]}", markup=False)
            for probe in cost.probes:
                settings = " ".join(f"{k}={probe.settings[k]}" for k in (*checked.axes, "seed"))
                out.print(f"  probe {settings}: {probe.seconds:.3g} s, {probe.memory / 2**20:.0f} MiB", markup=False)
        out.print(
            f"  estimated: {cost.seconds:.3g} s with {counted(cost.workers, 'worker')}, {cost.start_up:.3g} s of "
            f"them for imports and compilation; {cost.memory / 2**30:.2f} GiB of "
            f"{cost.available_memory / 2**30:.2f} GiB",
            markup=False,
        )
        for obstacle in cost.obstacles:
            told = obstacle.replace("(patience)", "(--patience)")
            err.print(f"memcap: cannot run: {told}", markup=False)
    return 1 if cost.obstacles else 0
