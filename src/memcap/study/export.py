"""Write a study's tidy table as Parquet, CSV or JSON lines; the file appears whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from memcap.errors import ConfigurationError, RunError, missing_folder, nearest
from memcap.study.record import plain
from memcap.study.table import Columns
from memcap.study.text_rows import csv_lines, json_lines


def _text(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)


def _parquet(columns: Columns, path: Path) -> None:
    arrays = []
    for values in columns.values():
        try:
            array = pa.array(values, from_pandas=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # values of several kinds, or beyond 64 bits
            array = pa.array([None if v is None else _text(v) for v in values])
        arrays.append(array.cast(pa.string()) if pa.types.is_null(array.type) else array)
    pq.write_table(pa.table(arrays, names=list(columns)), path)


def _csv(columns: Columns, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(csv_lines(columns))


def _jsonl(columns: Columns, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(json_lines(columns))


WRITERS: dict[str, Callable[[Columns, Path], None]] = {".parquet": _parquet, ".csv": _csv, ".jsonl": _jsonl}


def check_destination(path: Path) -> None:
    """Refuse a file that ``write_table`` could not write, before anything is read for it.

    Raises:
        ConfigurationError: for another ending, or if the folder does not exist.
    """
    if path.suffix.lower() not in WRITERS:
        hint = nearest(path.suffix, WRITERS)
        raise ConfigurationError(
            f"{path}: export writes {', '.join(WRITERS)}, not {path.suffix or 'no ending'!r}{hint}"
        )
    if not path.absolute().parent.is_dir():
        raise missing_folder(path)


def write_table(columns: Columns, path: Path) -> None:
    """Write ``columns`` to ``path``; its ending says the format.

    In Parquet NaN stays NaN and a missing value is null.  In CSV NaN and infinities are ``NaN``, ``Infinity`` and
    ``-Infinity`` and a missing value is empty.  In JSON lines they are these words as strings, and a missing value's
    key is left out.

    Raises:
        ConfigurationError: for another ending, or if the folder does not exist.
        RunError: if the file cannot be written.
    """
    check_destination(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        WRITERS[path.suffix.lower()](columns, partial)
        os.replace(partial, path)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)
