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
from memcap.exact.seal import CHANGED, FACTS_CHANGED, MISSING, STORED, UNSEALED

SHOWN = 10


@click.command(name="check")
@click.argument("memory", type=click.Path())
@click.argument("data", type=click.Path())
@data_options
@output_options
def command(memory: str, data: str, as_json: bool, quiet: bool, **reading: Any) -> None:
    """Check MEMORY against DATA in integer arithmetic, from the stored weights alone.

    DATA is read as it was for the build unless an option says otherwise.  Exit code 0: weights, facts and certificate
    are the stored ones and every item is recalled; 1: not, or no certificate is stored, and it says which.

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
        items, _ = read(data, reading, progress, stored.header)
        verdict = check(stored, items, progress=progress)
    if as_json:
        print_json(verdict_record(verdict))
    else:
        print_verdict(verdict)
    raise SystemExit(0 if verdict else 1)


def verdict_record(verdict: Certificate) -> dict[str, Any]:
    """What ``--json`` prints."""
    return {
        "certified": bool(verdict),
        "certificate": verdict.stored,
        "facts_match": verdict.facts_match,
        "weights_match": None if verdict.stored == MISSING else verdict.identity_holds,
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


def print_verdict(verdict: Certificate) -> None:
    """The verdict for people: certificate, facts, weights, data, recall and range, apart."""
    if verdict.stored in (CHANGED, UNSEALED):
        out.print(f"stored   {STORED[verdict.stored]}", markup=False)
    if not verdict.facts_match:
        out.print(f"facts    {FACTS_CHANGED}", markup=False)
    if verdict.stored == MISSING:
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
    out.print("certified" if verdict else "NOT certified", markup=False)
