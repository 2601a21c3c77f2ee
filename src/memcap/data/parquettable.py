"""Parquet tables through pyarrow; places are 1-based row numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from memcap.data.origin import Origin
from memcap.data.table import Table, choose_columns
from memcap.data.textfile import read_bytes
from memcap.errors import DataError


def read_parquet(path: str | Path, *, sequence: str | None, label: str | None) -> Table:
    """Two columns of a Parquet file, with the types they are stored in.

    Raises:
        DataError: not a Parquet file, a missing column, a null, no rows; names the row.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = str(path)
    content = read_bytes(path)
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        columns = list(file.schema_arrow.names)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{name}: not a Parquet file ({_first_line(error)})") from None
    chosen = choose_columns(name, columns, sequence, label)
    try:
        table = file.read(columns=list(chosen))
        values = [table.column(column).to_pylist() for column in chosen]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{name}: the Parquet file is damaged ({_first_line(error)})") from None
    if table.num_rows == 0:
        raise DataError(f"{name}: 0 rows: nothing to learn")
    for what, column, listed in zip(("sequence", "label"), chosen, values, strict=True):
        if table.column(column).null_count:
            raise DataError(f"{name}, row {listed.index(None) + 1}: the {what} is null (column {column!r})")
    items: list[Any] = values[0]
    return Table(items, values[1], np.arange(1, len(items) + 1, dtype=np.int64), Origin(name, "row"), chosen[1])


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
