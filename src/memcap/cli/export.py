"""``memcap export``: a memory as a file for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memcap.cli.app import out, print_json
from memcap.cli.progress import showing
from memcap.cli.reading import read
from memcap.cli.shared_options import data_options, output_options
from memcap.errors import ConfigurationError, FormatError, nearest

FORMATS = {"onnx": ".onnx", "mlp": ".json", "state": ".safetensors"}
"""Format -> the suffix that names it."""


@click.command(name="export")
@click.argument("memory", type=click.Path())
@click.argument("file", type=click.Path())
@click.option(
    "--as",
    "kind",
    metavar="KIND",
    help="onnx | mlp (layers without skip connections, JSON) | state (of the torch module, safetensors); "
    "by default what the suffix says: .onnx, .json, .safetensors.",
)
@click.option("--data", metavar="FILE", help="Data to ask the exported file for; it is kept only if all is right.")
@click.option(
    "--neurons",
    type=int,
    metavar="N",
    help="mlp: most neurons a layer adds (2: width 4 for a memory built with --selector step, more for others).",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@data_options
@output_options
def command(
    memory: str,
    file: str,
    kind: str | None,
    data: str | None,
    neurons: int | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Write MEMORY as FILE for other programs, and with --data ask the file for every item before it is kept.

    Example:

        memcap export cities.memory cities.onnx --data cities.csv
    """
    from memcap.model.export_files import report_record, write_plain_mlp, write_state
    from memcap.model.load import load

    target, chosen = Path(file), _kind(file, kind)
    if neurons is not None and chosen != "mlp":
        raise ConfigurationError(f"--neurons belongs to --as mlp, not to {chosen}")
    if target.is_dir():
        raise FormatError(f"{target} is a folder; name a file to write")
    if target.exists() and not force:
        raise ConfigurationError(f"{target} exists; choose another name, or --force to replace it")
    with showing(quiet or as_json) as progress:
        stored = load(memory)
        items = None if data is None else read(data, reading, progress, stored.header)[0]
        report: Any
        if chosen == "onnx":
            report = stored.to_onnx(target, items, progress=progress)
        elif chosen == "mlp":
            report = write_plain_mlp(stored, target, items, neurons=neurons, progress=progress)
        else:
            report = write_state(stored, target, items, progress=progress)
    record = {"format": chosen, **report_record(report)}
    if as_json:
        print_json(record)
    elif quiet:
        out.print(str(target), markup=False)
    else:
        _print(record)


def _kind(file: str, kind: str | None) -> str:
    if kind is None:
        found = [name for name, suffix in FORMATS.items() if file.endswith(suffix)]
        if not found:
            raise ConfigurationError(
                f"{file}: the suffix names no format ({', '.join(FORMATS.values())}); say --as {'|'.join(FORMATS)}"
            )
        return found[0]
    if kind not in FORMATS:
        raise ConfigurationError(f"--as must be one of {', '.join(FORMATS)}, got {kind!r}{nearest(kind, FORMATS)}")
    return kind


def _print(record: dict[str, Any]) -> None:
    asked = (
        f"{record['correct']:,} / {record['items']:,} items right, asked of the file"
        if record["items"]
        else "written, not asked for any item (--data FILE asks it for all)"
    )
    out.print(f"{record['path']}: {asked}", markup=False)
    shape = f", width {record['width']}, depth {record['depth']}" if "width" in record else f", opset {record['opset']}"
    out.print(f"{record['format']}, {record['weights']} numbers, {record['bytes']:,} bytes{shape}", markup=False)
