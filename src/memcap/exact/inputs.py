"""What a network's embedding reads: token sequences or single integer keys, checked against the promised range.

Not encoding (words to token ids) and not padding: rows arrive padded to the network's length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memcap.errors import DomainError
from memcap.exact.affine import integers
from memcap.exact.network import Network

Rows = NDArray[Any]
"""Rows given to a network: (rows, length) token ids, or (rows,) integer keys."""


def is_sequence(network: Network) -> bool:
    """True when the network reads token sequences, False when it reads single integer keys."""
    return network.inputs == ("token", "position")


def as_rows(network: Network, rows: Rows | Sequence[int] | Sequence[Sequence[int]]) -> Rows:
    """``rows`` as an integer array of the shape the network reads; keys above int64 stay Python integers.

    Raises:
        DomainError: for fractions, a wrong shape, or a value outside the network's input range (names the first row).
    """
    array = rows if isinstance(rows, np.ndarray) else np.asarray(rows, dtype=object if len(rows) else np.int64)
    if is_sequence(network):
        if array.ndim != 2 and array.size == 0:
            array = array.reshape(0, network.length)
        if array.ndim != 2 or array.shape[1] != network.length:
            raise DomainError(
                f"this network reads sequences padded to {network.length} tokens, shape (rows, {network.length}); "
                f"got shape {array.shape}"
            )
    elif array.ndim != 1:
        raise DomainError(f"this network reads one integer key per row, shape (rows,); got shape {array.shape}")
    if array.dtype.kind not in "iuO":
        raise DomainError(f"tokens and keys are integers; got an array of {array.dtype}")
    array = integers(array.reshape(-1)).reshape(array.shape)
    for name, column, (low, high) in zip(network.inputs, split(network, array), network.input_range, strict=True):
        bad = np.asarray((column < low) | (column > high), dtype=bool)
        if bad.any():
            where = np.argwhere(bad)[0]
            at = f"row {int(where[0]) + 1}" + (f", position {int(where[1]) + 1}" if len(where) > 1 else "")
            raise DomainError(
                f"{name} {column[tuple(where)]} at {at} is outside [{low}, {high}], "
                "the range this network was built for"
            )
    return array


def split(network: Network, array: Rows) -> list[Rows]:
    """One array per embedding input, in the network's order, each of the shape of ``array``."""
    if is_sequence(network):
        return [array, np.broadcast_to(np.arange(network.length, dtype=np.int64), array.shape)]
    if network.key_limbs is not None:
        shift, bits = network.key_limbs
        return [array >> shift, array & ((1 << bits) - 1)]
    return [array] * len(network.inputs)
