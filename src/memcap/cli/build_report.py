"""The short report after a build: items, recall, parameters by part, bounds, where the result is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

from memcap.capacity.bounds import layers_of, report
from memcap.cli.app import out
from memcap.data.sequences import SequenceData
from memcap.exact.certificate import Certificate
from memcap.model.memory import Memory
from memcap.model.summary import summary

PART_NAMES = {
    "embed": "embedding",
    "token": "token hash (feed-forward 1)",
    "attention": "attention",
    "key": "key read-in",
    "selector": "selector (words)",
    "hash": "hash rounds",
    "load": "word loads",
    "fold": "folds",
    "readout": "label read-out",
    "decode": "prefix decoder",
    "warm-up": "hash warm-up",
    "index": "bucket index",
    "words": "words",
    "junk": "word read-in",
    "word": "word folds",
    "noise": "noise folds",
    "ramp": "interpolator",
    "steps": "interpolator",
    "read": "output",
}


def record_of(
    memory: Memory, data: SequenceData, certificate: Certificate, path: Path, seconds: dict[str, float]
) -> dict[str, Any]:
    """Everything the report shows, as one plain record."""
    record = summary(memory)
    header, network = memory.header, memory.network
    growth = report(
        memory.parameters, header.items, max(header.classes, 2), depth=network.depth, layers=layers_of(network)
    )
    record["bounds"] |= {
        "any_depth_parameters": growth.any_depth,
        "at_depth_parameters": growth.at_depth,
        "growth_items": growth.growth_items,
    }
    return {
        "path": str(path),
        **record,
        "recall": {"correct": certificate.recalled, "total": certificate.items},
        "certified": bool(certificate),
        "certificate": str(path / "certificate.json"),
        "duplicates": data.duplicates,
        "left_out": {"groups": data.dropped.groups, "rows": data.dropped.rows},
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
    }


def print_report(record: dict[str, Any]) -> None:
    """The report for people."""
    parameters = record["parameters"]
    recall = record["recall"]
    verdict = "certified" if record["certified"] else "NOT certified"
    out.print(f"[bold]{recall['correct']:,} / {recall['total']:,} items recalled[/bold], {verdict}")
    left = record["left_out"]
    if left["groups"]:
        out.print(
            f"left out by --on-conflict: {left['groups']:,} ambiguous items ({left['rows']:,} rows); "
            f"{record['duplicates']:,} repeated rows counted once"
        )
    elif record["duplicates"]:
        out.print(f"{record['duplicates']:,} repeated rows counted once")
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    for part, number in parameters["by_part"].items():
        table.add_row(f"  {PART_NAMES.get(part, part)}", f"{number:,}")
    table.add_row("[bold]non-zero parameters[/bold]", f"[bold]{parameters['nonzero']:,}[/bold]")
    out.print(table)
    out.print(
        f"{record['items']:,} sequences of {record['length']} tokens, {record['classes']:,} labels; "
        f"{record['weights']}, {record['method']} / {record['selector']}, depth {record['depth']}, "
        f"widest layer {record['widest']:,}"
    )
    bounds = record["bounds"]
    line = (
        f"{record['bits_per_parameter']:.1f} label bits per parameter; stored bits are "
        f"{bounds['stored_bits_over_label_bits']:.2f} x the bound N log2 C, "
        f"{bounds['stored_bits_over_entropy_bits']:.2f} x N H"
    )
    if "parameters_over_least" in bounds:
        line += (
            f"; parameters {bounds['parameters_over_least']:.1f} x the least possible ({bounds['least_parameters']:,})"
        )
    out.print(line)
    out.print(
        f"any ReLU network for these items needs {bounds['any_depth_parameters']:,} parameters, one of this depth "
        f"{bounds['at_depth_parameters']:,} (growth bound, unbounded precision)"
    )
    seconds = record["seconds"]
    out.print("seconds: " + ", ".join(f"{name} {value:.1f}" for name, value in seconds.items()))
    out.print(f"memory       {record['path']}", markup=False)
    out.print(f"certificate  {record['certificate']}", markup=False)
