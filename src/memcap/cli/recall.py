"""``memcap recall``: ask a memory for the labels of items."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from memcap.cli.app import err, out, print_json
from memcap.cli.shared_options import output_options
from memcap.errors import DataError, DomainError

NO_LABEL = "(no label)"


def _shown(label: Any, none: str) -> str:
    if isinstance(label, list):
        return " ".join(_shown(part, none) for part in label)
    return none if label is None else str(label)


@click.command(name="recall")
@click.argument("memory", type=click.Path())
@click.argument("items", nargs=-1, required=True)
@output_options
def command(memory: str, items: tuple[str, ...], as_json: bool, quiet: bool) -> int:
    """Print the label of every ITEM, one a line; ``-`` reads items from standard input, one a line.

    A memory built with ``--method keyed`` or ``--reject-bits`` prints ``unknown`` for items it does not hold.  Any
    other gives them an arbitrary label, or ``(no label)`` where its output happens to be none.  An item that cannot be
    asked (empty, too long, a symbol that never occurred) gets an empty line, is named on standard error, and makes the
    exit code 2; the others are answered.

    ``--json`` keeps what the lines do not show: the type of a label (1 and "1" are two labels), and null for no label,
    so that a label called ``unknown`` is not mistaken for one.

    Example:

        memcap recall cities.memory Lyon "Buenos Aires"
    """
    from memcap.model.load import load

    del quiet
    lines = items == ("-",)
    asked = [line.rstrip("\r\n") for line in sys.stdin] if lines else list(items)
    if not asked:
        raise DataError("standard input is empty: expected one item a line")
    stored = load(memory)
    labels, refused = _answers(stored.predict, asked)
    if len(refused) == len(asked):
        stored.predict(asked)
    told = [{"line" if lines else "item": place + 1, "reason": reason} for place, reason in refused.items()]
    if as_json:
        print_json({"items": asked, "labels": labels, "not_asked": told})
    else:
        none = "unknown" if stored.header.tells_strangers else NO_LABEL
        for place, label in enumerate(labels):
            out.print("" if place in refused else _shown(label, none), markup=False)
    for place, reason in refused.items():
        err.print(f"memcap: {'line' if lines else 'item'} {place + 1}: {reason}", markup=False)
    return 2 if refused else 0


def _answers(predict: Callable[[list[str]], list[Any]], asked: list[str]) -> tuple[list[Any], dict[int, str]]:
    """A label for every item, None for those refused; and why these are, by place.  Halves the list around them."""
    try:
        return predict(asked), {}
    except (DataError, DomainError) as error:
        if len(asked) == 1:
            return [None], {0: str(error).removeprefix("item 1: ")}
    half = len(asked) // 2
    labels, refused = _answers(predict, asked[:half])
    more, others = _answers(predict, asked[half:])
    return labels + more, refused | {half + place: reason for place, reason in others.items()}
