"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from memcap.cli.wording import in_options
from memcap.errors import MemcapError

F = TypeVar("F", bound=Callable[..., Any])


def output_options(function: F) -> F:
    """``--json`` and ``--quiet``; and errors that name arguments as the options of this verb."""

    @wraps(function)
    def told(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except MemcapError as error:
            if len(error.args) == 1:
                error.args = (in_options(str(error.args[0]), click.get_current_context().command.params),)
            raise

    quiet = click.option("--quiet", is_flag=True, help="Print only the result; no progress.")
    strict = click.option("--json", "as_json", is_flag=True, help=_JSON)
    return cast(F, strict(quiet(told)))


_JSON = "Print one strict JSON object and nothing else; what JSON cannot write is 'NaN', 'Infinity', '-Infinity'."


def data_options(function: F) -> F:
    """How a data file is read."""
    for option in (
        click.option("--sequence", metavar="COLUMN", help="Column that holds the sequence."),
        click.option("--label", metavar="COLUMN", help="Column that holds the label."),
        click.option(
            "--encoding",
            metavar="KIND",
            help="words | characters | bytes | integers | path of a tokenizer.json.  [default: words]",
        ),
        click.option(
            "--ordered/--multiset", "ordered", default=None, help="Does the order of tokens matter?  [default: ordered]"
        ),
        click.option("--window", type=int, metavar="N", help="Text: N tokens, then the next one as label."),
        click.option("--stride", type=int, metavar="N", help="Text: step between windows.  [default: 1]"),
        click.option(
            "--format",
            "file_format",
            metavar="NAME",
            help="csv | tsv | jsonl | parquet | text, if the name does not say.",
        ),
        click.option(
            "--on-conflict",
            metavar="RULE",
            help="Items with contradictory labels: error | drop | first.  [default: error]",
        ),
    ):
        function = option(function)
    return function
