"""Whether data holds the items a memory was built from, whatever their labels.  Called before relabelling.

A loaded memory keeps the hash of its data, labels included, and no item.  But it recalls: asked for every item, it
gives the labels back, and with them the hash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memcap.data.identity import content_hash
from memcap.data.sequences import SequenceData
from memcap.errors import DataError, DomainError

if TYPE_CHECKING:
    from memcap.model.memory import Memory


def require_same_items(memory: Memory, data: SequenceData) -> None:
    """Refuse other items than those of ``memory``.

    Raises:
        DataError: if an item is missing, new or read in another way; says how many there are.
    """
    header = memory.header
    told = f"expected the {header.items:,} items this memory was built from, with other labels"
    kinds = {True: "ordered sequences", False: "multisets"}
    if data.ordered != header.ordered:
        raise DataError(f"{told}; got {kinds[data.ordered]} where it was built from {kinds[header.ordered]}")
    if data.length > memory.network.length:
        raise DataError(f"{told}; got items of {data.length} tokens where it reads {memory.network.length}")
    try:
        tokens = memory.tokens_of(data)[:, : data.length]
    except (DataError, DomainError) as error:
        raise DataError(f"{told}; {error}") from None
    if not _same(memory, data, tokens):
        raise DataError(f"{told}; got {len(data):,} sequences that are not the same; build a memory of them instead")


def _same(memory: Memory, data: SequenceData, tokens: NDArray[np.int64]) -> bool:
    header = memory.header
    if memory.data is not None:
        own = memory.data
        blank = np.zeros(len(own), dtype=np.int64), np.zeros(len(data), dtype=np.int64)
        return content_hash(
            own.tokens, own.lengths, blank[0], ordered=own.ordered, label_names=(), encoding=header.encoding
        ) == content_hash(
            tokens, data.lengths, blank[1], ordered=data.ordered, label_names=(), encoding=header.encoding
        )
    classes = memory.classes_of(data)
    real = np.arange(data.length) < data.lengths[:, None] if memory.network.per_position else np.full((1, 1), True)
    if (classes[:, : data.length] < 0)[np.broadcast_to(real, classes[:, : data.length].shape)].any():
        return False
    labels = np.where(real, classes[:, : data.length], -1) if memory.network.per_position else classes[:, 0]
    found = content_hash(
        tokens,
        data.lengths,
        labels,
        ordered=data.ordered,
        label_names=header.label_names,
        encoding=header.encoding,
    )
    return found == header.data_hash
