"""Arrays and lists from a caller as flat integers and label codes; every complaint names the row."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64, Integer

from memcap.data.labels import Label, number_labels
from memcap.data.origin import brief
from memcap.data.padding import pad_rows
from memcap.data.symbols import LARGEST_VOCABULARY
from memcap.errors import DataError


def _is_sequence(value: Any) -> bool:
    return isinstance(value, list | tuple) or (hasattr(value, "__array__") and np.ndim(value) == 1)


def _joined(rows: Any) -> Any:
    """All values of all rows, one after the other: an array where rows are arrays of one type, else a list."""
    if isinstance(rows, np.ndarray) and rows.ndim == 2:
        return rows.reshape(-1)
    plain = [row if isinstance(row, list | tuple) else np.asarray(row) for row in rows]
    if len({row.dtype if isinstance(row, np.ndarray) else None for row in plain}) == 1 and isinstance(
        plain[0], np.ndarray
    ):
        return np.concatenate(plain)
    return list(chain.from_iterable(plain))


def _plain(values: Any) -> Any:
    """A list, or a NumPy array where ``values`` is (or knows how to become) one."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "__array__"):  # torch, pandas, pyarrow
        return np.asarray(values)
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise DataError(f"expected an array or a list of rows, got {brief(values)}")
    return list(values)


def _refuse(value: object, row: int) -> DataError:
    hint = "; for text use memcap.read_sequences" if isinstance(value, str) else ""
    return DataError(f"row {row}: expected whole numbers, got {brief(value)} of type {type(value).__name__}{hint}")


def _whole(items: Any, lengths: Int64[np.ndarray, " rows"]) -> Integer[np.ndarray, " tokens"]:
    """``items`` as integers; anything but whole numbers is refused with its row."""
    if isinstance(items, np.ndarray) and items.dtype.kind in "iu":
        return items
    if isinstance(items, list) and set(map(type, items)) == {int}:
        try:
            return np.array(items, dtype=np.int64)
        except OverflowError:
            pass  # the loop below names the row
    row_of = np.repeat(np.arange(1, len(lengths) + 1), lengths)
    for i, value in enumerate(items):
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, bool) or not isinstance(plain, int):
            raise _refuse(plain, int(row_of[i]))
        if not 0 <= plain < LARGEST_VOCABULARY:
            raise _range(plain, int(row_of[i]))
    return np.array([int(value) for value in items], dtype=np.int64)


def _range(value: int, row: int) -> DataError:
    what = "must not be negative" if value < 0 else "must be below 2^62"
    return DataError(f"row {row}: token ids {what}, got {brief(value)}")


def integer_rows(tokens: Any) -> tuple[Int64[np.ndarray, " tokens"], Int64[np.ndarray, " rows"]]:
    """All ids one row after the other, and the length of each row.

    Raises:
        DataError: on 0 rows, an empty row, more than two dimensions, anything but whole numbers in [0, 2^62).
    """
    tokens = _plain(tokens)
    if isinstance(tokens, np.ndarray) and tokens.ndim == 1 and tokens.dtype == object:
        tokens = list(tokens)
    if np.shape(tokens)[:1] == (0,) if isinstance(tokens, np.ndarray) else not tokens:
        raise DataError("0 rows: nothing to learn")
    if isinstance(tokens, np.ndarray):
        if tokens.ndim not in (1, 2):
            raise DataError(f"expected tokens of shape (rows,) or (rows, length), got {tokens.shape}")
        lengths = np.full(len(tokens), 1 if tokens.ndim == 1 else tokens.shape[1], dtype=np.int64)
        items: Any = tokens.reshape(-1)
    else:
        nested = [_is_sequence(row) for row in tokens]
        if any(nested) and not all(nested):
            row = nested.index(not nested[0])
            raise DataError(f"row {row + 1}: {brief(tokens[row])} among rows of another shape")
        lengths = np.array([len(row) for row in tokens] if nested[0] else [1] * len(tokens), dtype=np.int64)
        items = _joined(tokens) if nested[0] else tokens
    if not lengths.all():
        raise DataError(f"row {int(np.argmin(lengths)) + 1}: empty sequence")
    flat = _whole(items, lengths)
    low, high = int(flat.min()), int(flat.max())
    if low < 0 or high >= LARGEST_VOCABULARY:
        where = int(flat.argmin() if low < 0 else flat.argmax())
        raise _range(low if low < 0 else high, int(np.searchsorted(np.cumsum(lengths), where, side="right")) + 1)
    return flat.astype(np.int64), lengths


def vector_rows(tokens: Any) -> tuple[Float64[np.ndarray, "tokens dimension"], Int64[np.ndarray, " rows"]]:
    """All vectors one row after the other, and the length of each row.

    Raises:
        DataError: on 0 rows, an empty row, mixed dimensions, or a coordinate that is no finite number.
    """
    tokens = _plain(tokens)
    if len(tokens) == 0:
        raise DataError("0 rows: nothing to learn")
    rows: list[np.ndarray] = []
    for number, row in enumerate(tokens, 1):
        try:
            array = np.asarray(row, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"row {number}: expected numbers, got {brief(row)}") from None
        if array.ndim != 2 or array.size == 0:
            raise DataError(f"row {number}: expected vectors of shape (length, d), got shape {array.shape}")
        if rows and array.shape[1] != rows[0].shape[1]:
            raise DataError(f"row {number}: vectors of {array.shape[1]} coordinates among ones of {rows[0].shape[1]}")
        if not np.isfinite(array).all():
            where = int(np.argwhere(~np.isfinite(array))[0, 0])
            raise DataError(f"row {number}, position {where + 1}: a coordinate is not a finite number")
        rows.append(array)
    return np.concatenate(rows), np.array([len(row) for row in rows], dtype=np.int64)


def label_rows(
    labels: Any, lengths: Int64[np.ndarray, " rows"], place: Callable[[int], str], note: str = ""
) -> tuple[Int64[np.ndarray, " rows"] | Int64[np.ndarray, "rows width"], list[Label]]:
    """Provisional label codes, per row or per position (-1 on padding), and the label of each code.

    Args:
        labels: scalars, or one list of scalars per row; ``lengths``: tokens of each row.
        place: 1-based row -> how a message calls it; ``note``: what a message adds (the column).

    Raises:
        DataError: if the shape does not match the tokens, or a label is null, a float or no scalar.
    """
    labels = _plain(labels)
    if isinstance(labels, np.ndarray) and labels.ndim not in (1, 2):
        raise DataError(f"expected labels of shape (rows,) or (rows, length), got {labels.shape}")
    if len(labels) != len(lengths):
        raise DataError(f"expected one label per row: {len(lengths)} rows but {len(labels)} labels")
    scalars = isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype != object
    nested = [False] if scalars else [_is_sequence(row) for row in labels]
    if not any(nested):
        return number_labels(labels, lambda i, text: DataError(f"{place(i + 1)}: {text}{note}"))
    if not all(nested):
        row = nested.index(not nested[0])
        raise DataError(f"{place(row + 1)}: label {brief(labels[row])} among labels of another shape{note}")
    counts = np.fromiter(map(len, labels), dtype=np.int64, count=len(labels))
    if (counts != lengths).any():
        row = int(np.argmax(counts != lengths))
        raise DataError(f"{place(row + 1)}: {int(lengths[row])} tokens but {int(counts[row])} labels{note}")
    row_of = np.repeat(np.arange(1, len(lengths) + 1), lengths)
    values = _joined(labels)
    codes, names = number_labels(values, lambda i, text: DataError(f"{place(int(row_of[i]))}: {text}{note}"))
    return pad_rows(codes, lengths, -1, place=place), names
