"""Ragged rows of ids as one rectangle, padded on the right.  It knows nothing about what the ids mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Int64

from memcap.errors import DataError

LARGEST_TABLE = 2**30
"""Cells of the padded table (8 GiB of int64); one endless row among many short ones would otherwise fill the memory."""


def pad_rows(
    flat: Int64[np.ndarray, " tokens"],
    lengths: Int64[np.ndarray, " rows"],
    pad: int,
    *,
    width: int | None = None,
    place: Callable[[int], str] = "row {}".format,
) -> Int64[np.ndarray, "rows length"]:
    """Rows of ``lengths`` taken from ``flat`` one after the other, each padded with ``pad`` to ``width``.

    Args:
        place: 1-based row -> how a message calls it.

    Raises:
        DataError: if the padded table would have more than 2^30 cells; names the longest row.

    >>> pad_rows(np.array([5, 6, 7]), np.array([1, 2]), 9).tolist()
    [[5, 9], [6, 7]]
    """
    rows = len(lengths)
    longest = int(lengths.max()) if rows else 0
    width = longest if width is None else width
    if rows * width > LARGEST_TABLE:
        raise DataError(
            f"padding {rows} rows to {width} tokens takes {rows * width * 8 / 2**30:.0f} GiB; the longest is "
            f"{place(int(lengths.argmax()) + 1)} with {longest} tokens (median {int(np.median(lengths))}): "
            "cut or split long rows"
        )
    if len(flat) == rows * width:
        return flat.reshape(rows, width)
    table = np.full((rows, width), pad, dtype=np.int64)
    table[np.arange(width) < lengths[:, None]] = flat
    return table
