"""CSV and TSV tables through the standard library's csv module, with the line of every row.

Types of labels: a column of whole numbers written plainly (``7``, not ``007``) is read as int, a column of
``true``/``false`` as bool, a column of decimal numbers is refused, anything else is text exactly as written.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from memcap.data.learn import EVERY, Progress
from memcap.data.origin import Origin, shorten
from memcap.data.table import Table, choose_columns
from memcap.data.textfile import read_text
from memcap.errors import DataError

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,99}")
_DIGITS = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_TRUTH = {"true": True, "false": False}


def read_csv(
    path: str | Path, *, sequence: str | None, label: str | None, separator: str, progress: Progress | None = None
) -> Table:
    """The two columns of a CSV (``separator=","``) or TSV file with a header line.

    Raises:
        DataError: a missing column, a broken line, an empty label, a float label, no rows; names the line.
    """
    name = str(path)
    text = read_text(path)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    total = text.count("\n")
    header: list[str] | None = None
    items: list[str] = []
    labels: list[str] = []
    rows: list[int] = []
    at = (0, 0)
    before = 0  # lines read before this row, so that its first line is before + 1
    try:
        for row in reader:
            line, before = before + 1, reader.line_num
            if not row:
                continue
            if header is None:
                header = row
                chosen = choose_columns(name, _unquoted(header, separator, name), sequence, label)
                at = header.index(chosen[0]), header.index(chosen[1])
                continue
            if len(row) != len(header):
                raise DataError(
                    f"{name}, line {line}: expected {len(header)} columns ({shorten(', '.join(header))}), "
                    f"got {len(row)}; quote fields that hold {separator!r}"
                )
            items.append(row[at[0]])
            labels.append(row[at[1]])
            rows.append(line)
            if progress is not None and len(rows) % EVERY == 0:
                progress(before, max(total, before), "reading")
    except csv.Error as error:
        raise DataError(f"{name}, line {before + 1}: {_explain(str(error))}") from None
    if header is None:
        raise DataError(f"{name}: the file is empty")
    if not rows:
        raise DataError(f"{name}: a header but 0 rows: nothing to learn")
    origin = Origin(name, "line")
    return Table(
        items, typed_labels(labels, rows, origin, chosen[1]), np.array(rows, dtype=np.int64), origin, chosen[1]
    )


def _unquoted(header: list[str], separator: str, name: str) -> list[str]:
    other = {",": "\t", "\t": ","}[separator]
    if len(header) == 1 and any(mark in header[0] for mark in (other, ";")):
        raise DataError(
            f"{name}, line 1: one column {shorten(header[0])!r}; the separator here is {separator!r}: "
            "use format='csv' for commas, 'tsv' for tabs"
        )
    return header


def _explain(problem: str) -> str:
    if "field limit" in problem or "field larger" in problem:
        limit = csv.field_size_limit()
        return f"gigantic field, over {limit} characters; is a quote missing? JSONL and Parquet hold longer sequences"
    if "unexpected end of data" in problem:
        return "a quoted field that starts here is never closed"
    return f"broken line ({problem})"


def typed_labels(labels: list[str], rows: list[int], origin: Origin, column: str) -> Sequence[str | int | bool]:
    """Labels of a text column with their type: int, bool or str (see the first lines of this file).

    Raises:
        DataError: on an empty label, or if every label is a decimal number.
    """
    distinct = dict.fromkeys(labels)
    if "" in distinct:
        raise DataError(f"{origin.at(rows[labels.index('')])}: the label is null (column {column!r} is empty)")
    if all(map(_WHOLE.fullmatch, distinct)):
        return list(map({text: int(text) for text in distinct}.__getitem__, labels))
    if all(text.lower() in _TRUTH for text in distinct):
        return [_TRUTH[text.lower()] for text in labels]
    fraction = next((text for text in distinct if not _DIGITS.fullmatch(text)), None)
    if fraction is not None and all(map(_FLOAT.fullmatch, distinct)):
        place = labels.index(fraction)
        raise DataError(
            f"{origin.at(rows[place])}: the label is a float ({shorten(labels[place])!r} in column {column!r}); "
            "map floats to classes first (whole numbers or text)"
        )
    return labels
