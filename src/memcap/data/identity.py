"""The name of a data set: SHA-256 over canonical bytes of everything that defines it.

Canonical bytes, format 1: one line of JSON (keys sorted, UTF-8) with the format, ``ordered``, whether labels are per
position, the number of items, the label names with their types and the encoding; then, for the items in lexicographic
order of their padded tokens (tokens of a multiset sorted), little-endian int64: all lengths, all tokens without
padding, all labels without padding.  Row numbers, file names, duplicates and what was left out are not part of it.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
from jaxtyping import Int64

from memcap.data.encoding import Encoding
from memcap.data.grouping import group_rows
from memcap.data.labels import Label

FORMAT = 1


def content_hash(
    tokens: Int64[np.ndarray, "rows length"],
    lengths: Int64[np.ndarray, " rows"],
    labels: Int64[np.ndarray, " rows"] | Int64[np.ndarray, "rows length"],
    *,
    ordered: bool,
    label_names: tuple[Label, ...],
    encoding: Encoding,
) -> str:
    """SHA-256, hex, of the canonical bytes of the given distinct items.

    Source:
        Derived here; the format is in the first lines of this file.
    """
    per_position = labels.ndim == 2
    if not ordered:
        turn = np.argsort(tokens, axis=1, kind="stable")
        tokens = np.take_along_axis(tokens, turn, axis=1)
        labels = np.take_along_axis(labels, turn, axis=1) if per_position else labels
    order = group_rows(tokens).order
    tokens, lengths, labels = tokens[order], lengths[order], labels[order]
    header = {
        "format": FORMAT,
        "ordered": ordered,
        "per_position": per_position,
        "items": len(tokens),
        "label_names": [[type(name).__name__, name] for name in label_names],
        "encoding": encoding.to_json(),
    }
    filled = np.arange(tokens.shape[1]) < lengths[:, None]
    digest = hashlib.sha256(json.dumps(header, sort_keys=True, ensure_ascii=False).encode() + b"\n")
    for part in (lengths, tokens[filled], labels[filled] if per_position else labels):
        digest.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
    return digest.hexdigest()
