"""``memcap critical``: the size at which the predicted recall reaches a target, and how it scales."""

from __future__ import annotations

from typing import Any

import click

from memcap.cli.app import out, print_json
from memcap.cli.critical_curve import NAMES, sweep
from memcap.cli.retrieval_options import curve_options, task_from, task_options
from memcap.cli.shared_options import output_options
from memcap.errors import ConfigurationError

STARTS = {"samples": 1000, "dimension": 64, "length": 16, "vocabulary": 256}
"""Where the search starts when the variable is not given; the answer does not depend on it."""


@click.command(name="critical")
@task_options
@click.option("--solve-for", default="samples", show_default=True, metavar="NAME", help="samples | dimension | …")
@click.option("--recall", type=float, metavar="P", help="Target recall of fresh sequences.  [default: 0.5]")
@click.option("--clean-recall", "clean", type=float, metavar="P", help="Target recall of clean queries, instead.")
@click.option("--attention-success", "success", type=float, metavar="P", help="Target attention success, instead.")
@click.option("--exponents", is_flag=True, help="Also the local exponents in every other size.")
@curve_options
@output_options
def command(
    as_json: bool,
    quiet: bool,
    curve: str | None,
    seeds: int | None,
    test_samples: int | None,
    destination: str | None,
    solve_for: str,
    recall: float | None,
    clean: float | None,
    success: float | None,
    exponents: bool,
    **options: Any,
) -> int:
    """The smallest (length, vocabulary: largest) size that reaches a target, by theory; exit code 1 if none does.

    Examples:

        memcap critical -V 1024 -L 16 -N 40000 --solve-for dimension --recall 0.99

        memcap critical -V 64 -d 48 --curve length=8..128:5 --out critical.svg
    """
    from memcap.retrieval.critical import critical
    from memcap.retrieval.crossing import check_solve_for
    from memcap.retrieval.scaling import scaling

    check_solve_for(solve_for)
    given = options.get(solve_for) is not None
    fill = {} if given or solve_for not in STARTS else {solve_for: STARTS[solve_for]}
    target: dict[str, Any] = {"recall": recall, "clean_recall": clean, "attention": success}
    if curve is not None:
        if exponents:
            raise ConfigurationError("--exponents belongs to one task: leave out --curve")
        return sweep(curve, options, fill, solve_for, target, seeds, test_samples, destination, as_json, quiet)
    if (seeds, test_samples, destination) != (None, None, None):
        raise ConfigurationError(
            "--seeds, --test-samples and --out belong to --curve; for one task run: memcap simulate"
        )
    task = task_from(options, fill=fill)
    found = critical(task, solve_for=solve_for, **target)
    law = scaling(task, solve_for=solve_for, **target) if exponents and found.value is not None else None
    if as_json:
        record = found.to_dict() | ({"scaling": law.to_dict()} if law else {})
        print_json(record)
        return 0 if found.value is not None else 1
    name = NAMES[found.target]
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
