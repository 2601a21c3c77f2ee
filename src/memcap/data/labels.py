"""Labels of any scalar type as class indices, and back with their type.

Text, whole numbers and truth values keep their type; dates, times, decimals and UUIDs become text (``str(value)``);
floats are refused, because two floats that print alike may differ.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Iterable

import numpy as np
from jaxtyping import Int64, Integer

from memcap.data.origin import brief
from memcap.errors import DataError

Label = str | int | bool
AS_TEXT = (datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, uuid.UUID)

LARGEST_BITS = 4096
"""Python prints integers of at most 4,300 digits; a label must be printable."""


def plain_label(value: object) -> Label:
    """One label as a JSON-able scalar.

    Raises:
        DataError: for nulls, floats and anything that is not a scalar.

    >>> plain_label(np.int8(3)), plain_label(datetime.date(2024, 2, 29))
    (3, '2024-02-29')
    """
    if isinstance(value, np.datetime64 | np.timedelta64):
        if np.isnat(value):
            raise DataError("the label is null")
        return str(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise DataError(f"the label {value!r} holds half a character (lone surrogate)") from None
        return str(value)
    if isinstance(value, bool | int):
        if value.bit_length() > LARGEST_BITS:
            raise DataError(f"whole-number labels have at most {LARGEST_BITS} bits, got one of {value.bit_length()}")
        return value
    if value is None or (isinstance(value, float | decimal.Decimal) and value != value):
        raise DataError("the label is null")
    if isinstance(value, float):
        raise DataError(f"the label is a float ({value!r}); map floats to classes first (whole numbers or text)")
    if isinstance(value, AS_TEXT):
        return str(value)
    raise DataError(
        f"labels must be text, whole numbers or truth values, got {brief(value)} of type {type(value).__name__}"
    )


def label_order(label: Label) -> tuple[int, int, str]:
    """Sort key over labels of all types: truth values, then whole numbers, then text by code point."""
    if isinstance(label, str):
        return (2, 0, label)
    return (0 if isinstance(label, bool) else 1, int(label), "")


def number_labels(
    values: Iterable[object], complaint: Callable[[int, str], DataError]
) -> tuple[Int64[np.ndarray, " values"], list[Label]]:
    """A provisional code per value and the label of each code; ``1``, ``True`` and ``"1"`` are three labels.

    Args:
        values: raw labels; ``complaint``: makes the error for value number i (0-based) from what is wrong with it.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        return _number_integers(values)
    index: dict[tuple[type, object], int] = {}
    codes_list: list[int] = []
    for i, value in enumerate(values):
        kind = type(value)
        if (kind is not str and kind is not int and kind is not bool) or (kind, value) not in index:
            try:
                value = plain_label(value)
            except DataError as error:
                raise complaint(i, str(error)) from None
        codes_list.append(index.setdefault((type(value), value), len(index)))
    return np.array(codes_list, dtype=np.int64), [name for _, name in index]  # type: ignore[misc]


def _number_integers(values: Integer[np.ndarray, " values"]) -> tuple[Int64[np.ndarray, " values"], list[Label]]:
    low, high = int(values.min()), int(values.max())
    if high - low >= 2 * len(values) + 1000:
        names, codes = np.unique(values, return_inverse=True)
        return codes.reshape(-1).astype(np.int64), [int(name) for name in names]
    wide = values if values.dtype.kind == "u" else values.astype(np.int64)
    places = (wide - wide.dtype.type(low)).astype(np.int64)  # a narrow range needs no sorting
    used = np.bincount(places) > 0
    return (np.cumsum(used) - 1)[places], [low + i for i in np.flatnonzero(used).tolist()]


def order_classes(
    codes: Int64[np.ndarray, "..."], names: list[Label], prefix: str = ""
) -> tuple[Int64[np.ndarray, "..."], tuple[Label, ...]]:
    """Class indices from provisional codes: common labels first, equally common ones by value; unused names go.

    The order depends on the set of items only, not on the order of their rows.  Codes of -1 (padding) stay.

    Raises:
        DataError: if there is only one class.
    """
    used = np.bincount(codes[codes >= 0].reshape(-1), minlength=len(names))
    ranked = sorted(np.flatnonzero(used).tolist(), key=lambda c: (-int(used[c]), label_order(names[c])))
    if len(ranked) == 1:
        raise DataError(f"{prefix}one class only ({names[ranked[0]]!r}): nothing to learn")
    position = np.full(len(names) + 1, -1, dtype=np.int64)  # the last place serves code -1
    position[ranked] = np.arange(len(ranked))
    return position[codes], tuple(names[c] for c in ranked)
