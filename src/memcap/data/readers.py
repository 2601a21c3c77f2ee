"""`read_sequences`: one call for every kind of file.  It finds the reader by the file's name and hands rows on."""

from __future__ import annotations

from pathlib import Path

from memcap.data.arrays import label_rows
from memcap.data.conflicts import check_choice
from memcap.data.csvtable import read_csv
from memcap.data.encoding import Encoding
from memcap.data.jsonltable import read_jsonl
from memcap.data.learn import Progress, encode_items, resolve_encoding
from memcap.data.parquettable import read_parquet
from memcap.data.sequences import SequenceData
from memcap.data.table import Table
from memcap.data.windows import check_window, read_text_windows
from memcap.errors import ConfigurationError, nearest

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "text",
}
FORMATS = ("csv", "tsv", "jsonl", "parquet", "text")


def read_sequences(
    path: str | Path,
    *,
    sequence: str | None = None,
    label: str | None = None,
    encoding: str | Path | Encoding = "words",
    ordered: bool = True,
    on_conflict: str = "error",
    window: int | None = None,
    stride: int = 1,
    format: str | None = None,
    progress: Progress | None = None,
) -> SequenceData:
    """Read labelled sequences from a file, or next-token windows from plain text.

    Args:
        path: CSV, TSV (with a header), JSONL, Parquet or text file; UTF-8, with or without a byte-order mark.
        sequence: column of the sequences (default: the column called ``sequence``): text, or lists of strings or
            integers in JSONL and Parquet, or integers written ``1 2 3`` or ``1,2,3`` in CSV.
        label: column of the labels (default: the column called ``label``): text, whole numbers or truth values keep
            their type; dates, times, decimals become text; floats are refused.  A list per row (JSONL, Parquet) is one
            label per position.
        encoding: ``words``, ``characters``, ``bytes``, ``integers``, the path of a tokenizer.json, or an `Encoding`.
        ordered: False reads sequences as multisets.
        on_conflict: ``error``, ``drop`` (leave out items with several labels) or ``first`` (keep the first label).
        window: for text: tokens per window; the label is the next token.
        stride: for text: tokens between the starts of windows.
        format: csv, tsv, jsonl, parquet or text (default: by the file's suffix).
        progress: called with (done, total, what) now and then.

    Raises:
        DataError: anything wrong with the file; names file and line.
        ConflictError: if an item carries different labels; lists the groups.
        ConfigurationError: an unknown option value, or one that does not fit the format.
        DomainError: a symbol that a given `Encoding` does not know.
        MissingExtraError: a tokenizer.json without the package ``tokenizers``.
    """
    check_choice(on_conflict)
    kind = _format(path, format)
    known = resolve_encoding(encoding)
    if kind == "text":
        if sequence is not None or label is not None:
            raise ConfigurationError("text has no columns: leave out sequence and label, pass window")
        if window is None:
            raise ConfigurationError(f"{path}: text is read in windows; pass window=16 (command line: --window 16)")
        check_window(window, stride)
        return read_text_windows(
            path,
            window=window,
            stride=stride,
            encoding=known,
            ordered=ordered,
            on_conflict=on_conflict,
            progress=progress,
        )
    if window is not None or stride != 1:
        raise ConfigurationError(f"window and stride are for text, not for {kind}; pass format='text' to read windows")
    table = _read_table(path, kind, sequence, label, progress)
    flat, lengths, learnt = encode_items(table.items, known, table.rows, table.origin, progress)
    codes, names = label_rows(table.labels, lengths, table.at, f" (column {table.label_column!r})")
    return SequenceData.from_rows(
        flat,
        lengths,
        codes,
        names,
        table.rows,
        learnt,
        ordered=ordered,
        on_conflict=on_conflict,
        origin=table.origin,
    )


def _format(path: str | Path, format: str | None) -> str:
    if format is not None:
        if format not in FORMATS:
            raise ConfigurationError(f"no format {format!r}{nearest(format, FORMATS)}; known: {', '.join(FORMATS)}")
        return format
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ConfigurationError(
            f"{path}: cannot tell the format from {suffix or 'a name without suffix'!r}; "
            f"pass format= one of {', '.join(FORMATS)}"
        )
    return SUFFIXES[suffix]


def _read_table(
    path: str | Path, kind: str, sequence: str | None, label: str | None, progress: Progress | None
) -> Table:
    if kind == "jsonl":
        return read_jsonl(path, sequence=sequence, label=label, progress=progress)
    if kind == "parquet":
        return read_parquet(path, sequence=sequence, label=label)
    separator = "," if kind == "csv" else "\t"
    return read_csv(path, sequence=sequence, label=label, separator=separator, progress=progress)
