"""JSON lines: one object per line, with the line of every complaint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from memcap.data.learn import EVERY, Progress
from memcap.data.origin import Origin
from memcap.data.table import Table, choose_columns
from memcap.data.textfile import read_text
from memcap.errors import DataError

LONGEST_LINE = 2**24
"""Characters of one line (16 MiB of ASCII); a longer one is more likely a file that is not JSON lines."""


def read_jsonl(path: str | Path, *, sequence: str | None, label: str | None, progress: Progress | None = None) -> Table:
    """Two fields of every object of a JSONL file; blank lines are skipped.

    Raises:
        DataError: bad JSON, something that is not an object, a missing or null field, a gigantic line, no rows; names
            the line.
    """
    name = str(path)
    lines = read_text(path).split("\n")
    items: list[Any] = []
    labels: list[Any] = []
    rows: list[int] = []
    chosen: tuple[str, str] | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        record = _object(line, f"{name}, line {number}")
        if chosen is None:
            chosen = choose_columns(f"{name}, line {number}", list(record), sequence, label)
        for field in chosen:
            if field not in record:
                listed = ", ".join(map(repr, record))
                raise DataError(f"{name}, line {number}: no field {field!r}; fields: {listed or 'none'}")
            if record[field] is None:
                what = "sequence" if field == chosen[0] else "label"
                raise DataError(f"{name}, line {number}: the {what} is null (field {field!r})")
        items.append(record[chosen[0]])
        labels.append(record[chosen[1]])
        rows.append(number)
        if progress is not None and len(rows) % EVERY == 0:
            progress(number, len(lines), "reading")
    if chosen is None:
        raise DataError(f"{name}: 0 rows: nothing to learn")
    return Table(items, labels, np.array(rows, dtype=np.int64), Origin(name, "line"), chosen[1])


class _TwinError(Exception):
    """A field that occurs twice in one object."""


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        names = [name for name, _ in pairs]
        raise _TwinError(next(name for name in names if names.count(name) > 1))
    return record


def _object(line: str, place: str) -> dict[str, Any]:
    if len(line) > LONGEST_LINE:
        raise DataError(f"{place}: gigantic line of {len(line)} characters (limit {LONGEST_LINE}); one object per line")
    try:
        record = json.loads(line, object_pairs_hook=_no_twins)
    except json.JSONDecodeError as error:
        raise DataError(f"{place}, column {error.colno}: not JSON ({error.msg})") from None
    except _TwinError as error:
        raise DataError(f"{place}: field {str(error)!r} is there twice") from None
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else "a number with too many digits"
        raise DataError(f"{place}: not usable JSON ({what})") from None
    if not isinstance(record, dict):
        raise DataError(f"{place}: expected an object {{...}}, got a JSON {type(record).__name__}")
    return record
