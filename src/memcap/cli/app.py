"""The typer application, what all verbs share (``--json``, ``--quiet``, ``--debug``) and how errors are shown."""

from __future__ import annotations

import importlib
import json
import math
import signal
import traceback
from collections.abc import Sequence
from typing import Any

import click
import typer
from rich.console import Console

from memcap.errors import MemcapError, nearest
from memcap.version import __version__

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)

VERBS: dict[str, tuple[str, str]] = {}
"""Verb -> (module in memcap.cli that defines ``app``, one-line help)."""


class Verbs(typer.core.TyperGroup):
    """A group whose verbs are imported on use, with a hint for a misspelt verb."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(VERBS[cmd_name][0])
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        command.short_help = VERBS[cmd_name][1]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in VERBS:
            raise click.UsageError(f"no verb {args[0]!r}{nearest(args[0], VERBS)}; verbs: {', '.join(VERBS)}")
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=Verbs, add_completion=False, rich_markup_mode=None, no_args_is_help=True)


def _version(value: bool) -> None:
    if value:
        out.print(f"memcap {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """How much can a transformer memorise and recall, and what is the smallest one that does?"""


def strict(value: Any) -> Any:
    """``value`` with NaN and infinities as strings, so that what is printed is strict JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dict):
        return {str(k): strict(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [strict(v) for v in value]
    return value


def print_json(record: dict[str, Any]) -> None:
    """Print one strict JSON object and nothing else."""
    print(json.dumps(strict(record), ensure_ascii=False, allow_nan=False))


def _interrupt(signum: int, frame: object) -> None:
    raise KeyboardInterrupt


def main(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit code and never lets a user's mistake become a traceback."""
    arguments = list(arguments)
    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"]
    as_json = "--json" in arguments
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        result = typer.main.get_command(app).main(args=arguments, prog_name="memcap", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return 2
    except click.ClickException as error:
        message, code = error.format_message(), 2
        if isinstance(error, click.UsageError) and error.ctx is not None:
            message += f"\ntry: {error.ctx.command_path} --help"
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, click.Abort):
        message, code = "interrupted; nothing half-written was left behind", 130
    except BrokenPipeError:
        return 1
    except MemcapError as error:
        if debug:
            traceback.print_exc()
        message, code = str(error), error.exit_code
    if as_json:
        print_json({"error": message, "exit_code": code})
    err.print(f"memcap: {message}", markup=False)
    return code
