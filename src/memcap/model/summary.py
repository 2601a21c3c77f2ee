"""The facts of a memory as one plain record: what ``memcap build --json`` prints and the report shows."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from memcap.model.memory import Memory

STORED_BITS = {"float64": 64, "float32": 32, "int64": 64}


def bounds_of(memory: Memory) -> dict[str, Any]:
    """Lower bounds that hold for any network with the same stored width, and how far this memory is from them."""
    header, parameters = memory.header, memory.parameters
    label_bits = header.items * math.log2(max(header.classes, 2))
    entropy_bits = header.items * header.entropy
    width = STORED_BITS.get(header.weights)
    stored_bits = parameters.nonzero * width if width else parameters.bits
    bounds: dict[str, Any] = {
        "label_bits": label_bits,
        "entropy_bits": entropy_bits,
        "stored_bits": stored_bits,
        "stored_bits_over_label_bits": stored_bits / label_bits,
        "stored_bits_over_entropy_bits": stored_bits / entropy_bits if entropy_bits else math.inf,
    }
    if width:
        least = math.ceil(label_bits / width)
        bounds["least_parameters"] = least
        bounds["parameters_over_least"] = parameters.nonzero / least
    return bounds


def summary(memory: Memory) -> dict[str, Any]:
    """Items, sizes, bounds and structure of ``memory``.

    ``bits_per_parameter`` is label bits memorised, N log2 C, per non-zero parameter.  ``bounds`` are lower bounds for
    any network with the same stored width: N log2 C (any labels) and N H (labels of this entropy) over the bits of a
    weight.
    """
    header, parameters = memory.header, memory.parameters
    bounds = bounds_of(memory)
    return {
        "items": header.items,
        "classes": header.classes,
        "length": memory.network.length,
        "weights": header.weights,
        "method": header.method,
        "selector": header.selector,
        "parameters": asdict(parameters),
        "depth": memory.network.depth,
        "widest": memory.network.widest,
        "bits_per_parameter": bounds["label_bits"] / parameters.nonzero,
        "bounds": bounds,
        "structure": header.structure,
        "seed": header.seed,
        "data_hash": header.data_hash,
        "network_hash": memory.identity,
    }
