"""The command group, what all verbs share (``--json``, ``--quiet``, ``--debug``) and how errors are shown."""

from __future__ import annotations

import importlib
import json
import math
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console

from memcap.errors import MemcapError, nearest
from memcap.version import __version__

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)

VERBS: dict[str, tuple[str, str]] = {
    "build": ("memcap.cli.build", "Write a transformer that recalls every item of a data file, and prove it."),
    "check": ("memcap.cli.check", "Check a memory against data, from the stored weights, in integers."),
    "recall": ("memcap.cli.recall", "Ask a memory for the labels of items."),
    "export": ("memcap.cli.export", "Write a memory as ONNX, as a plain perceptron, or as a torch state."),
    "doctor": ("memcap.cli.doctor", "Versions, threads, and whether float arithmetic here is exact."),
    "simulate": ("memcap.cli.simulate", "Train on a retrieval task by a few gradient steps and measure recall."),
    "predict": ("memcap.cli.predict", "Expected recall of a retrieval task, by theory without fitted constants."),
    "critical": ("memcap.cli.critical", "The size at which a retrieval task reaches a target recall, by theory."),
    "reproduce": ("memcap.cli.reproduce", "Rebuild a published figure from its checked-in configuration."),
    "study": ("memcap.cli.study", "Sweeps that survive crashes, with fits and a report."),
}
"""Verb -> (module in memcap.cli that defines ``command``, one-line help)."""


class Verbs(click.Group):
    """A group whose verbs are imported on use, with a hint for a misspelt verb."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(VERBS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in VERBS:
            raise click.UsageError(f"no verb {args[0]!r}{nearest(args[0], VERBS)}; verbs: {', '.join(VERBS)}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="memcap %(version)s")
def app() -> None:
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
    debug = "--debug" in arguments  # accepted anywhere on the line
    arguments = [a for a in arguments if a != "--debug"]
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        result = app.main(args=arguments, prog_name="memcap", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return 2
    except click.ClickException as error:
        message, code = error.format_message(), 2
        if isinstance(error, click.UsageError) and error.ctx is not None:
            message += f"\ntry: {error.ctx.command_path} --help"
    except (KeyboardInterrupt, click.Abort):
        message, code = "interrupted; nothing half-written was left behind", 130
    except BrokenPipeError:
        return 1
    except (MemcapError, OSError) as error:
        if debug:
            traceback.print_exc()
        message = str(error)
        code = error.exit_code if isinstance(error, MemcapError) else 2
    if "--json" in arguments:
        print_json({"error": message, "exit_code": code})
    err.print(f"memcap: {message}", markup=False)
    return code
