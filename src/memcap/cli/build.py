"""``memcap build``: data in, certified memory folder out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from memcap.cli.app import out, print_json
from memcap.cli.build_report import print_report, record_of
from memcap.cli.progress import showing
from memcap.cli.reading import read
from memcap.cli.shared_options import data_options, output_options
from memcap.errors import ConfigurationError


def _lanes(context: click.Context, parameter: click.Parameter, value: str) -> int | str:
    if value == "max":
        return value
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"expected a positive integer or 'max', got {value!r}") from None


@click.command(name="build")
@click.argument("data", type=click.Path())
@click.option("--out", "destination", required=True, type=click.Path(), help="Folder to write; must not exist.")
@click.option("--force", is_flag=True, help="Replace the folder if it is a memory.")
@data_options
@click.option(
    "--weights", default="float64", show_default=True, metavar="KIND", help="float64 | float32 | int64 | exact."
)
@click.option(
    "--method",
    default="keyless",
    show_default=True,
    metavar="NAME",
    help="keyless | keyed (rejects unknown items; exact weights).",
)
@click.option("--selector", default="auto", show_default=True, metavar="NAME", help="auto takes the smallest.")
@click.option(
    "--lanes",
    default="1",
    show_default=True,
    callback=_lanes,
    metavar="N|max",
    help="Accepted; all words fold side by side (see --max-depth).",
)
@click.option("--bits", type=int, metavar="B", help="Bits of the longest word: labels take about N/B weights.")
@click.option("--words", type=int, metavar="R", help="Words per label bit.")
@click.option("--max-depth", type=int, metavar="L", help="Most layers of the whole network; fewer cost parameters.")
@click.option(
    "--reject-bits", type=int, default=0, metavar="F", help="Unknown items pass with chance 2^-F (exact weights)."
)
@click.option("--token-values", default="hash", show_default=True, metavar="KIND", help="hash | distinguishing.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same weights.")
@output_options
def command(
    data: str,
    destination: str,
    force: bool,
    lanes: int | str,
    as_json: bool,
    quiet: bool,
    weights: str,
    method: str,
    selector: str,
    bits: int | None,
    words: int | None,
    max_depth: int | None,
    reject_bits: int,
    token_values: str,
    seed: int,
    **reading: Any,
) -> None:
    """Write a transformer that recalls every item of DATA, and prove it.

    Example:

        memcap build cities.csv --sequence city --label country --encoding characters --out cities.memory
    """
    from memcap.model.build import build
    from memcap.model.certify import certify
    from memcap.model.files import check_destination

    target = Path(destination)
    if target.exists() and not force:
        raise ConfigurationError(f"{target} exists; choose another --out, or --force to replace a memory")
    check_destination(target)
    with showing(quiet or as_json) as progress:
        began = time.perf_counter()
        items, options = read(data, reading, progress)
        read_seconds = time.perf_counter() - began
        began = time.perf_counter()
        memory = build(
            items,
            weights=weights,
            method=method,
            selector=selector,
            seed=seed,
            lanes=lanes,
            bits=bits,
            words=words,
            max_depth=max_depth,
            reject_bits=reject_bits,
            token_values=token_values,
            progress=progress,
        )
        build_seconds = time.perf_counter() - began
        memory = memory.with_reading(options)
        began = time.perf_counter()
        certificate = certify(memory, items, progress=progress)
        certify_seconds = time.perf_counter() - began
        memory.with_certificate(certificate).save(target)
    seconds = {"read": read_seconds, "build": build_seconds, "certify": certify_seconds}
    record = record_of(memory, items, certificate, target, seconds)
    if as_json:
        print_json(record)
    elif quiet:
        out.print(str(target), markup=False)
    else:
        print_report(record)
    if not certificate:
        raise SystemExit(1)
