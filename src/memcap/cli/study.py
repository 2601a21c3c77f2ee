"""``memcap study``: the group of subcommands; each is imported when it is used."""

from __future__ import annotations

import importlib

import click

from memcap.errors import nearest

SUBCOMMANDS: dict[str, tuple[str, str, str]] = {
    "run": ("memcap.cli.study_run", "run", "Compute the cells of a grid that are not done yet."),
    "resume": ("memcap.cli.study_run", "resume", "Go on with every grid that was run in a study."),
    "check": ("memcap.cli.study_check", "check", "Count the cells of a grid and estimate time and memory."),
    "status": ("memcap.cli.study_look", "status", "How many cells are done, failed, lost, to do; the failures."),
    "export": ("memcap.cli.study_look", "export", "Write the table of cells as Parquet, CSV or JSON lines."),
    "fit": ("memcap.cli.study_fit", "fit", "Critical values and exponents with intervals."),
    "report": ("memcap.cli.study_report", "command", "Write one HTML page that a reader can explore."),
}
"""Subcommand -> (module, name of the command in it, one-line help)."""


class _Subcommands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        module, name, _ = SUBCOMMANDS[cmd_name]
        found: click.Command = getattr(importlib.import_module(module), name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Subcommands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in SUBCOMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in SUBCOMMANDS:
            hint = nearest(args[0], SUBCOMMANDS)
            raise click.UsageError(f"no subcommand {args[0]!r}{hint}; subcommands: {', '.join(SUBCOMMANDS)}", ctx)
        return super().resolve_command(ctx, args)


@click.group(name="study", cls=_Subcommands)
def command() -> None:
    """Sweeps that survive crashes, with fits and a report.

    Example:

        memcap study run grid.yaml --store phase.db --workers 2
    """
