"""``memcap recall``: ask a memory for the labels of items."""

from __future__ import annotations

import sys
from typing import Any

import click

from memcap.cli.app import out, print_json
from memcap.cli.shared_options import output_options
from memcap.errors import DataError


def _shown(label: Any) -> str:
    if isinstance(label, list):
        return " ".join(_shown(part) for part in label)
    return "unknown" if label is None else str(label)


@click.command(name="recall")
@click.argument("memory", type=click.Path())
@click.argument("items", nargs=-1, required=True)
@output_options
def command(memory: str, items: tuple[str, ...], as_json: bool, quiet: bool) -> None:
    """Print the label of every ITEM, one a line; ``-`` reads items from standard input, one a line.

    A memory built with ``--method keyed`` or ``--reject-bits`` prints ``unknown`` for items it does not hold.

    Example:

        memcap recall cities.memory Lyon "Buenos Aires"
    """
    from memcap.model.load import load

    del quiet
    asked = [line.rstrip("\r\n") for line in sys.stdin] if items == ("-",) else list(items)
    if not asked:
        raise DataError("standard input is empty: expected one item a line")
    labels = load(memory).predict(asked)
    if as_json:
        print_json({"items": asked, "labels": labels})
        return
    for label in labels:
        out.print(_shown(label), markup=False)
