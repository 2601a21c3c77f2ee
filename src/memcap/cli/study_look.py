"""``memcap study status`` and ``memcap study export``."""

from __future__ import annotations

import click

from memcap.cli.app import out, print_json
from memcap.cli.shared_options import output_options

_SHOWN = 10  # failures printed


@click.command(name="status")
@click.argument("store", type=click.Path())
@output_options
def status(store: str, as_json: bool, quiet: bool) -> None:
    """Say how many cells of STORE are done, failed, lost or to do, and why some failed.

    Example:

        memcap study status phase.db
    """
    from memcap.study.study import Study

    with Study.open(store, create=False) as study:
        counts, meta = study.status(), study.meta
        bad = study.records(["failed", "lost"])
    failures = [
        {
            "cell": " ".join(f"{k}={v}" for k, v in [*r.settings.items(), ("seed", r.seed)]),
            "state": str(r.state),
            "error": f"{r.outcome.error_type}: {r.outcome.error}" if r.outcome else "its driver died",
        }
        for r in bad
    ]
    if as_json:
        record = {"store": store, "question": meta["question"], "created": meta["created"], **counts}
        print_json({**record, "failures": failures})
        return
    out.print(f"{store}: {', '.join(f'{n} {s}' for s, n in counts.items())}", markup=False)
    if quiet:
        return
    if meta["question"]:
        out.print(f"question: {meta['question']}", markup=False)
    for failure in failures[:_SHOWN]:
        out.print(f"{failure['state']}: {failure['cell']}: {failure['error']}", markup=False)
    if len(failures) > _SHOWN:
        out.print(f"... and {len(failures) - _SHOWN} more; --json lists all")


@click.command(name="export")
@click.argument("store", type=click.Path())
@click.option("--out", "-o", "destination", required=True, type=click.Path(), help="A .parquet, .csv or .jsonl file.")
@click.option("--where", metavar="EXPRESSION", help="Only these cells, such as 'dimension == 64 and recall > 0.5'.")
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only cells in this state; may be repeated.")
@output_options
def export(
    store: str, destination: str, where: str | None, states: tuple[str, ...], as_json: bool, quiet: bool
) -> None:
    """Write the table of cells of STORE.

    Example:

        memcap study export phase.db -o phase.parquet --where "recall > 0.5"
    """
    from memcap.study.study import Study

    with Study.open(store, create=False) as study:
        rows = study.export(destination, where=where, states=list(states) or None)
    if as_json:
        print_json({"store": store, "out": destination, "rows": rows})
    elif not quiet:
        out.print(f"{destination}: {rows} rows", markup=False)
