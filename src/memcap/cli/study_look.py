"""``memcap study status`` and ``memcap study export``."""

from __future__ import annotations

import re
from typing import Any

import click

from memcap.cli.app import out, print_json
from memcap.cli.shared_options import output_options

_SHOWN = 10  # reasons printed
_EXAMPLES = 3  # cells printed for each


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
    varied = _varied(meta["grids"])
    failures = [
        {
            "cell": " ".join(f"{k}={v}" for k, v in [*r.settings.items(), ("seed", r.seed)]),
            "varied": " ".join(f"{k}={v}" for k, v in [*r.settings.items(), ("seed", r.seed)] if k in varied),
            "state": str(r.state),
            "error": f"{r.outcome.error_type}: {r.outcome.error}" if r.outcome else "its driver died",
        }
        for r in bad
    ]
    groups = _by_reason(failures)
    if as_json:
        record = {"store": store, "question": meta["question"], "created": meta["created"], **counts}
        print_json({**record, "failures": failures})
        return
    out.print(f"{store}: {', '.join(f'{n} {s}' for s, n in counts.items())}", markup=False)
    if quiet:
        return
    if meta["question"]:
        out.print(f"question: {meta['question']}", markup=False)
    for failures_of_one in groups[:_SHOWN]:
        state, error = failures_of_one[0]["state"], failures_of_one[0]["error"]
        out.print(f"{len(failures_of_one)} {state}: {error}", markup=False)
        examples = "; ".join(failure["varied"] for failure in failures_of_one[:_EXAMPLES])
        more = ", ..." if len(failures_of_one) > _EXAMPLES else ""
        out.print(f"  at {examples}{more}", markup=False)
    if len(groups) > _SHOWN:
        out.print(f"... and {len(groups) - _SHOWN} more reasons")
    if failures:
        out.print("--json lists every one of these cells with all settings")


def _varied(grids: list[dict[str, Any]]) -> set[str]:
    """Names of the settings that tell cells of these grids apart, the seed included."""
    names = {name for grid in grids for kind in ("axes", "derived") for name in grid.get(kind, {})}
    fixed = [grid.get("fixed", {}) for grid in grids]
    names |= {name for some in fixed for name in some if any(other.get(name) != some[name] for other in fixed)}
    return names | {"seed"}


def _by_reason(failures: list[dict[str, str]]) -> list[list[dict[str, str]]]:
    """Failures of one kind together, the most frequent first; reasons that differ in numbers only are one."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for failure in failures:
        groups.setdefault((failure["state"], re.sub(r"[0-9]+([.][0-9]+)?", "#", failure["error"])), []).append(failure)
    return sorted(groups.values(), key=len, reverse=True)


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
