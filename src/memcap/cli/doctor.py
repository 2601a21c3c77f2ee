"""``memcap doctor``: versions, threads, and whether float arithmetic here is exact where memcap relies on it."""

from __future__ import annotations

import click
from rich.table import Table

from memcap.cli.app import out, print_json
from memcap.cli.shared_options import output_options


@click.command(name="doctor")
@output_options
def command(as_json: bool, quiet: bool) -> None:
    """Report versions and threads, and compare float64 and float32 results on every device with the integer answer.

    Exit code 1 if any device computes a sum of exactly representable integers wrongly.

    Example:

        memcap doctor
    """
    from memcap.model.doctor import examine

    report = examine()
    if as_json:
        print_json(report.to_json())
    else:
        table = Table(show_header=False, box=None, pad_edge=False)
        for name, value in {**report.versions, **report.threads}.items():
            table.add_row(name, str(value))
        if not quiet:
            out.print(table)
        for finding in report.findings:
            mark = "exact" if finding.exact else "NOT EXACT"
            out.print(f"{finding.device:8} {finding.dtype:8} {finding.what:42} {mark}", markup=False)
        out.print("every check agrees with the integer answer" if report else "some checks disagree", markup=False)
    raise SystemExit(0 if report else 1)
