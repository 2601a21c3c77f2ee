"""Information bounds of a memory: how few stored numbers could hold its labels at all.

Bounds for ReLU networks of unbounded precision (growth, any depth, given depth) are in `memcap.capacity.bounds`.
"""

from __future__ import annotations

import math

from memcap.exact.counts import ParameterCount
from memcap.model.header import Header

STORED_BITS = {"float64": 64, "float32": 32, "int64": 64}
"""Bits of one stored number; exact memories store as many as a number needs."""


def information_bounds(header: Header, counts: ParameterCount) -> dict[str, float]:
    """Lower bounds for any network with the same stored width, and how many times they this memory is.

    W numbers of B bits tell at most 2^(W B) functions apart: W B >= N log2 C for arbitrary labels, and N H on average
    for labels of entropy H.

    Returns:
        ``label_bits`` N log2 C, ``entropy_bits`` N H, ``stored_bits``, the ratios ``stored_bits_over_label_bits`` and
        ``stored_bits_over_entropy_bits``, and for formats of fixed width ``least_parameters`` and
        ``parameters_over_least``.
    """
    label_bits = header.items * math.log2(max(header.classes, 2))
    entropy_bits = header.items * header.entropy
    width = STORED_BITS.get(header.weights)
    stored_bits = counts.nonzero * width if width else counts.bits
    bounds: dict[str, float] = {
        "label_bits": label_bits,
        "entropy_bits": entropy_bits,
        "stored_bits": stored_bits,
        "stored_bits_over_label_bits": stored_bits / label_bits,
    }
    if entropy_bits > 0:
        bounds["stored_bits_over_entropy_bits"] = stored_bits / entropy_bits
    if width:
        least = math.ceil(label_bits / width)
        bounds["least_parameters"] = least
        bounds["parameters_over_least"] = counts.nonzero / least
    return bounds
