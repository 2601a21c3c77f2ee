"""Arrays and lists from a caller as flat integers and label codes; every complaint names the row."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from jaxtyping import Int64

from memcap.data.encoding import LARGEST_VOCABULARY
from memcap.data.labels import Label, number_labels
from memcap.data.origin import shorten
from memcap.data.padding import pad_rows
from memcap.errors import DataError


def _is_sequence(value: object) -> bool:
    return isinstance(value, list | tuple) or (hasattr(value, "__array__") and np.ndim(value) == 1)


def _plain(values: Any) -> Any:
    """A list, or a NumPy array where ``values`` is (or knows how to become) one."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "__array__"):  # torch, pandas, pyarrow
        return np.asarray(values)
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise DataError(f"expected an array or a list of rows, got {shorten(repr(values))}")
    return list(values)


def _refuse(value: object, row: int) -> DataError:
    hint = "; for text use memcap.read_sequences" if isinstance(value, str) else ""
    return DataError(
        f"row {row}: expected whole numbers, got {shorten(repr(value))} of type {type(value).__name__}{hint}"
    )


def _whole(flat: list[Any], lengths: Int64[np.ndarray, " rows"]) -> Int64[np.ndarray, " tokens"]:
    """``flat`` as int64; anything but whole numbers in range is refused with its row."""
    row_of = np.repeat(np.arange(1, len(lengths) + 1), lengths)
    for i, value in enumerate(flat):
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
            raise _refuse(value.item() if isinstance(value, np.generic) else value, int(row_of[i]))
        if not 0 <= int(value) < LARGEST_VOCABULARY:
            raise _range(int(value), int(row_of[i]))
    return np.array(flat, dtype=np.int64)


def _range(value: int, row: int) -> DataError:
    what = "must not be negative" if value < 0 else "must be below 2^62"
    return DataError(f"row {row}: token ids {what}, got {value}")


def integer_rows(tokens: Any) -> tuple[Int64[np.ndarray, " tokens"], Int64[np.ndarray, " rows"]]:
    """All ids one row after the other, and the length of each row.

    Raises:
        DataError: on 0 rows, an empty row, more than two dimensions, anything but whole numbers in [0, 2^62).
    """
    tokens = _plain(tokens)
    if isinstance(tokens, np.ndarray) and tokens.dtype == object:
        tokens = list(tokens)
    if len(tokens) == 0:
        raise DataError("0 rows: nothing to learn")
    if isinstance(tokens, np.ndarray):
        if tokens.ndim not in (1, 2):
            raise DataError(f"expected tokens of shape (rows,) or (rows, length), got {tokens.shape}")
        width = 1 if tokens.ndim == 1 else tokens.shape[1]
        lengths = np.full(len(tokens), width, dtype=np.int64)
        if width == 0:
            raise DataError("row 1: empty sequence")
        flat = tokens.reshape(-1)
        if tokens.dtype.kind not in "iu":
            raise _refuse(flat[0].item(), 1)
    else:
        nested = [_is_sequence(row) for row in tokens]
        if not any(nested):
            lengths = np.ones(len(tokens), dtype=np.int64)
            items: list[Any] = tokens
        elif not all(nested):
            row = nested.index(not nested[0]) + 1
            raise DataError(f"row {row}: {shorten(repr(tokens[row - 1]))} among rows of another shape")
        else:
            lengths = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens))
            if not lengths.all():
                raise DataError(f"row {int(np.argmin(lengths)) + 1}: empty sequence")
            items = list(chain.from_iterable(tokens))
        flat = _whole_fast(items, lengths)
    low, high = int(flat.min()), int(flat.max())
    if low < 0 or high >= LARGEST_VOCABULARY:
        where = int(flat.argmin() if low < 0 else flat.argmax())
        raise _range(low if low < 0 else high, int(np.searchsorted(np.cumsum(lengths), where, side="right")) + 1)
    return flat.astype(np.int64), lengths


def _whole_fast(items: list[Any], lengths: Int64[np.ndarray, " rows"]) -> Int64[np.ndarray, " tokens"]:
    if {type(value) for value in items} == {int}:
        try:
            return np.array(items, dtype=np.int64)
        except OverflowError:
            pass  # the slow path names the row
    return _whole(items, lengths)


def label_rows(
    labels: Any, lengths: Int64[np.ndarray, " rows"]
) -> tuple[Int64[np.ndarray, " rows"] | Int64[np.ndarray, "rows width"], list[Label]]:
    """Provisional label codes, per row or per position (-1 on padding), and the label of each code.

    Raises:
        DataError: if the shape does not match the tokens, or a label is null, a float or no scalar.
    """
    labels = _plain(labels)
    if len(labels) != len(lengths):
        raise DataError(f"expected one label per row: {len(lengths)} rows but {len(labels)} labels")
    if isinstance(labels, np.ndarray) and labels.ndim > 2:
        raise DataError(f"expected labels of shape (rows,) or (rows, length), got {labels.shape}")
    if isinstance(labels, np.ndarray) and labels.ndim == 2:
        labels = list(labels)
    nested = [_is_sequence(row) for row in labels] if not _scalars(labels) else [False]
    if not any(nested):
        return number_labels(labels, lambda i, text: DataError(f"row {i + 1}: {text}"))
    if not all(nested):
        row = nested.index(not nested[0]) + 1
        raise DataError(f"row {row}: label {shorten(repr(labels[row - 1]))} among labels of another shape")
    counts = np.fromiter(map(len, labels), dtype=np.int64, count=len(labels))
    if (counts != lengths).any():
        row = int(np.argmax(counts != lengths))
        raise DataError(f"row {row + 1}: {int(lengths[row])} tokens but {int(counts[row])} labels")
    row_of = np.repeat(np.arange(1, len(lengths) + 1), lengths)
    same = {row.dtype for row in labels} if all(isinstance(row, np.ndarray) for row in labels) else set()
    values: Any = np.concatenate(labels) if len(same) == 1 else list(chain.from_iterable(labels))
    codes, names = number_labels(values, lambda i, text: DataError(f"row {int(row_of[i])}: {text}"))
    return pad_rows(codes, lengths, -1), names


def _scalars(labels: Any) -> bool:
    return isinstance(labels, np.ndarray) and labels.dtype != object
