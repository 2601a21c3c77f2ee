"""The options that describe a retrieval task on the command line, shared by simulate, predict and critical."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from memcap.errors import ConfigurationError, nearest

F = TypeVar("F", bound=Callable[..., Any])

REQUIRED = ("vocabulary", "length", "samples", "dimension")


class Count(click.ParamType[int]):
    """A whole number written as 20000, 20_000, 20,000 or 2e4."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).replace(",", "").replace("_", "")
        with suppress(ValueError, OverflowError):
            return int(text) if text.lstrip("+-").isdigit() else _whole(float(text))
        raise click.BadParameter(f"{value!r} is not a whole number (20000, 20_000 or 2e4)", ctx, param)


def _whole(number: float) -> int:
    if number != int(number):
        raise ValueError
    return int(number)


COUNT = Count()


def task_options(function: F) -> F:
    """One option per field of ``RetrievalTask``, and ``--task FILE`` to read them from YAML."""
    options = (
        click.option("--vocabulary", "-V", type=COUNT, help="V: tokens, and labels."),
        click.option("--length", "-L", type=COUNT, help="L: tokens a sequence."),
        click.option("--samples", "-N", type=COUNT, help="N: training sequences."),
        click.option("--dimension", "-d", type=COUNT, help="d: of the embeddings."),
        click.option("--width", "-m", type=COUNT, help="m: of the frozen MLP; 0 for none.  [default: 0]"),
        click.option("--activation", metavar="NAME", help="relu | gelu | tanh | he2 | h1+h2 …  [default: relu]"),
        click.option("--embeddings", metavar="NAME", help="gaussian | sphere | orthogonal.  [default: gaussian]"),
        click.option("--trigger-in-value/--no-trigger-in-value", default=None, help="Trigger also in the value path?"),
        click.option(
            "--frequencies", metavar="F", help="uniform | zipf | a Zipf exponent (only simulate).  [default: uniform]"
        ),
        click.option(
            "--facts",
            "-K",
            type=COUNT,
            help="K: facts asked for in every sequence (above 1: only simulate).  [default: 1]",
        ),
        click.option("--label-noise", type=float, metavar="P", help="Chance of a random training label.  [default: 0]"),
        click.option("--attention", metavar="NAME", help="hard | soft | uniform | oracle.  [default: hard]"),
        click.option("--data", metavar="NAME", help="empirical | population (infinite data).  [default: empirical]"),
        click.option("--seed", type=COUNT, help="First seed.  [default: 0]"),
        click.option("--task", "task_file", metavar="FILE", help="Read fields from a YAML file; options override it."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def curve_options(function: F) -> F:
    """``--curve`` and how it is simulated and drawn: the same for simulate, predict and critical."""
    options = (
        click.option("--curve", metavar="FIELD=LOW..HIGH[:POINTS]", help="Sweep one field: table and picture."),
        click.option("--seeds", type=COUNT, help="Runs a point; 0 for theory alone (not simulate).  [default: 3]"),
        click.option("--test-samples", type=COUNT, help="Fresh test sequences a run.  [default: 2048, one run 8192]"),
        click.option("--out", "destination", metavar="FILE", help="Curve: also draw it as .svg, .png, .pdf or .html."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def task_from(options: dict[str, Any], *, fill: Mapping[str, int] | None = None) -> Any:
    """Take the task's options out of ``options`` and build the task.

    Args:
        options: what click collected; the task's own entries are removed.
        fill: a field that need not be given (it is solved for, or swept) and the number to put in its place.

    Raises:
        ConfigurationError: naming the options that are missing, or the field that is wrong.
    """
    from memcap.retrieval.task import RetrievalTask

    path = options.pop("task_file", None)
    fields = _read(path)
    for name in fields:
        if name not in RetrievalTask.__dataclass_fields__:
            known = list(RetrievalTask.__dataclass_fields__)
            raise ConfigurationError(f"{path}: no field {name!r}{nearest(name, known)}; fields: {', '.join(known)}")
    for name in list(RetrievalTask.__dataclass_fields__):
        value = options.pop(name, None)
        if value is not None:
            fields[name] = value
    fields["frequencies"] = _number_if_possible(fields.get("frequencies", "uniform"))
    fields.update(fill or {})
    missing = [f"--{name}" for name in REQUIRED if name not in fields]
    if fields.get("data") == "population" and "--samples" in missing:
        missing.remove("--samples")
        fields["samples"] = 1
    if missing:
        raise ConfigurationError(f"missing {', '.join(missing)} (or a --task file that has them)")
    return RetrievalTask.from_dict(fields)


def _read(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    import yaml

    try:
        fields = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"cannot read the task file {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(fields, dict):
        raise ConfigurationError(f"{path} must hold fields such as 'vocabulary: 256', got {type(fields).__name__}")
    return {str(key): value for key, value in fields.items()}


def _number_if_possible(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value
