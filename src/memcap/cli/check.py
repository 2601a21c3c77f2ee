"""``memcap check``: are the stored weights the certified ones, and is every item recalled?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memcap.cli.app import out, print_json
from memcap.cli.progress import showing
from memcap.cli.reading import read
from memcap.cli.shared_options import data_options, output_options
from memcap.errors import FormatError
from memcap.exact.certificate import Certificate
from memcap.model.files import read_folder
from memcap.model.header import Header

SHOWN = 10


@click.command(name="check")
@click.argument("memory", type=click.Path())
@click.argument("data", type=click.Path())
@data_options
@output_options
def command(memory: str, data: str, as_json: bool, quiet: bool, **reading: Any) -> None:
    """Check MEMORY against DATA in integer arithmetic, from the stored weights alone.

    DATA is read as it was for the build unless an option says otherwise.  Exit code 0: the weights are the certified
    ones and every item is recalled; 1: not, and it says which.

    Example:

        memcap check cities.memory cities.csv
    """
    from memcap.model.certify import check
    from memcap.model.load import load

    with showing(quiet or as_json) as progress:
        if not Path(memory).is_dir():
            raise FormatError(f"{memory} is not a memory folder")
        try:
            stored = load(memory, allow_changed=True)
        except FormatError as broken:  # whatever is stored there, it is not the certified memory
            if as_json:
                print_json({"certified": False, "error": str(broken)})
            else:
                out.print(f"weights  cannot be read: {broken}\nNOT certified", markup=False)
            raise SystemExit(1) from None
        intact = facts_intact(memory)
        items, _ = read(data, reading, progress, stored.header)
        verdict = check(stored, items, progress=progress)
    if as_json:
        print_json({**verdict_record(verdict, stored.certificate is not None and intact), "facts_match": intact})
    else:
        if not intact:
            out.print(
                "facts    memory.json was CHANGED: labels, encoding or method are not the saved ones", markup=False
            )
        print_verdict(verdict, stored.certificate is not None, intact)
    raise SystemExit(0 if verdict and stored.certificate is not None and intact else 1)


def facts_intact(memory: str) -> bool:
    """Whether the facts in memory.json (labels, encoding, method, ...) are the ones that were saved."""
    try:
        Header.from_json(read_folder(memory).header)
    except FormatError:
        return False
    return True


def verdict_record(verdict: Certificate, had_certificate: bool) -> dict[str, Any]:
    """What ``--json`` prints."""
    return {
        "certified": bool(verdict) and had_certificate,
        "weights_match": verdict.identity_holds if had_certificate else None,
        "differences": [str(d) for d in verdict.differences],
        "data_match": verdict.data_matches,
        "recall": {"correct": verdict.recalled, "total": verdict.items},
        "not_recalled": list(verdict.wrong_rows),
        "range_holds": bool(verdict.range),
        "range": str(verdict.range),
        "network_hash": verdict.network_hash,
        "data_hash": verdict.data_hash,
        "seconds": verdict.seconds,
    }


def print_verdict(verdict: Certificate, had_certificate: bool, intact: bool) -> None:
    """The verdict for people: weights, data, recall and range, apart."""
    if not had_certificate:
        weights = "no certificate is stored beside them, so they cannot be compared"
    elif verdict.identity_holds:
        weights = f"are the certified ones, every number (network {verdict.network_hash[:16]})"
    elif verdict.differences:
        shown = "; ".join(str(d) for d in verdict.differences[:SHOWN])
        more = f" and {len(verdict.differences) - SHOWN} more layers" if len(verdict.differences) > SHOWN else ""
        weights = f"DIFFER from the certified ones: {shown}{more}"
    else:
        weights = "DIFFER from the certified ones: the structure of the network"
    data = {True: "are the certified ones", False: "are not the ones of the certificate", None: "asked"}
    out.print(f"weights  {weights}", markup=False)
    out.print(f"data     {data[verdict.data_matches]} (data {verdict.data_hash[:16]})", markup=False)
    out.print(f"recall   {verdict.recalled:,} / {verdict.items:,} items", markup=False)
    if verdict.wrong_rows:
        rows = ", ".join(str(row) for row in verdict.wrong_rows[:SHOWN])
        more = f" and {len(verdict.wrong_rows) - SHOWN} more" if len(verdict.wrong_rows) > SHOWN else ""
        out.print(f"         not recalled: rows {rows}{more}", markup=False)
    out.print(f"range    {verdict.range}", markup=False)
    out.print("certified" if verdict and had_certificate and intact else "NOT certified", markup=False)
