"""The facts of a memory as one plain record: what ``memcap build --json`` prints and the report shows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from memcap.model.memory import Memory


def summary(memory: Memory) -> dict[str, Any]:
    """Items, sizes, bounds and structure of ``memory``.

    ``bits_per_parameter`` is label bits memorised, N log2 C, per non-zero parameter.  ``bounds`` are lower bounds for
    any network with the same stored width: N log2 C (any labels) and N H (labels of this entropy) over the bits of a
    weight.
    """
    header, parameters = memory.header, memory.parameters
    return {
        "items": header.items,
        "classes": header.classes,
        "length": memory.network.length,
        "weights": header.weights,
        "method": header.method,
        "selector": header.selector,
        "parameters": {name: value for name, value in asdict(parameters).items() if name != "bounds"},
        "depth": memory.network.depth,
        "widest": memory.network.widest,
        "bits_per_parameter": parameters.bounds["label_bits"] / parameters.nonzero,
        "bounds": parameters.bounds,
        "structure": header.structure,
        "seed": header.seed,
        "data_hash": header.data_hash,
        "network_hash": memory.identity,
    }
