"""``memcap critical``: the size at which the predicted recall reaches a target, and how it scales."""

from __future__ import annotations

from typing import Any

import click

from memcap.cli.app import out, print_json
from memcap.cli.retrieval_options import task_from, task_options
from memcap.cli.shared_options import output_options

STARTS = {"samples": 1000, "dimension": 64, "length": 16, "vocabulary": 256}
"""Where the search starts when the variable is not given; the answer does not depend on it."""


@click.command(name="critical")
@task_options
@click.option("--solve-for", default="samples", show_default=True, metavar="NAME", help="samples | dimension | …")
@click.option("--recall", type=float, metavar="P", help="Target recall of fresh sequences.  [default: 0.5]")
@click.option("--clean-recall", "clean", type=float, metavar="P", help="Target recall of clean queries, instead.")
@click.option("--attention-success", "success", type=float, metavar="P", help="Target attention success, instead.")
@click.option("--exponents", is_flag=True, help="Also the local exponents in every other size.")
@output_options
def command(
    as_json: bool,
    quiet: bool,
    solve_for: str,
    recall: float | None,
    clean: float | None,
    success: float | None,
    exponents: bool,
    **options: Any,
) -> int:
    """The smallest (length, vocabulary: largest) size that reaches a target, by theory; exit code 1 if none does.

    Example:

        memcap critical -V 1024 -L 16 -N 40000 --solve-for dimension --recall 0.99
    """
    from memcap.retrieval.critical import check_solve_for, critical, scaling

    check_solve_for(solve_for)
    given = options.get(solve_for) is not None
    fill = {} if given or solve_for not in STARTS else {solve_for: STARTS[solve_for]}
    task = task_from(options, fill=fill)
    target: dict[str, Any] = {"recall": recall, "clean_recall": clean, "attention": success}
    found = critical(task, solve_for=solve_for, **target)
    law = scaling(task, solve_for=solve_for, **target) if exponents and found.value is not None else None
    if as_json:
        record = found.to_dict() | ({"scaling": law.to_dict()} if law else {})
        print_json(record)
        return 0 if found.value is not None else 1
    name = {"attention": "attention success", "clean_recall": "clean recall"}.get(found.target, "recall")
    if found.value is None:
        out.print(f"no {solve_for} reaches {name} {found.level:g}: {found.reason}", markup=False)
        return 1
    out.print(
        f"{solve_for} = {found.value:,}   for {name} {found.level:g} (predicted there: {found.reached:.4f})",
        markup=False,
    )
    ends = ["out of reach" if end is None else f"{end:,.0f}" for end in found.interval]
    out.print(f"interval from the theory's known error: {ends[0]} … {ends[1]}", markup=False)
    if law:
        for variable, exponent in law.exponents.items():
            note = law.notes.get(variable, "")
            out.print(f"d ln {solve_for} / d ln {variable:12} {exponent:7.2f}  {note}", markup=False)
    return 0
