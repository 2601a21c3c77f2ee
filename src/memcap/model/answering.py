"""Which evaluator answers: the exact reference, or a fast path that reads only stored weights.

The fast paths are checked against the reference in the tests and by every certificate; a memory answers with the
fastest one that understands its network and falls back to the reference.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from memcap.construct.fused import Fused
from memcap.construct.sequence_network import front_part, key_part
from memcap.errors import ConfigurationError, nearest
from memcap.exact.evaluate import evaluate
from memcap.exact.grouped import NotGrouped, evaluate_grouped
from memcap.exact.network import Network

ENGINES = ("auto", "exact", "fused")

Progress = Callable[[int, int, str], None]


def answer(
    network: Network,
    weights: str,
    tokens: NDArray[np.int64],
    *,
    engine: str = "auto",
    progress: Progress | None = None,
) -> NDArray[np.int64]:
    """Network outputs as integers; negative where the output is no label.

    Args:
        network: any network.
        weights: its number format.
        tokens: padded token ids (rows, length).
        engine: ``exact`` (reference, integer arithmetic), ``fused`` (compiled; not for exact weights) or ``auto``.
        progress: called as ``progress(done, total, what)``.

    Returns:
        int64 (rows,), or (rows, length) for a network read per position.

    Raises:
        ConfigurationError: for an unknown engine.
        PrecisionError: if ``fused`` is asked of weights wider than 64 bits.
    """
    if engine not in ENGINES:
        raise ConfigurationError(
            f"engine must be one of {', '.join(ENGINES)}, got {engine!r}{nearest(engine, ENGINES)}"
        )
    rows = tokens[:, 0] if network.inputs != ("token", "position") else tokens
    if engine == "fused" or (engine == "auto" and weights != "exact"):
        return Fused(network).labels(rows)
    fast = fast_exact(network) if engine == "auto" and len(rows) > 100 else None
    return fast(network, rows) if fast is not None else evaluate(network, rows, progress=progress)


def fast_exact(network: Network) -> Callable[[Network, NDArray[np.generic]], NDArray[np.int64]] | None:
    """The grouped evaluator for exact networks, or None where the compiled one does (no weight beyond 64 bits).

    It falls back to the reference when a network does not have the structure it needs.
    """
    wide = any(layer.weight.dtype == object or layer.bias.dtype == object for _, layer in network.maps())
    return grouped if wide else None


def grouped(network: Network, rows: NDArray[np.generic]) -> NDArray[np.int64]:
    """Labels by grouped evaluation: keys from the exact front, then the key network group by group."""
    try:
        if network.attention_index is None:
            return evaluate_grouped(network, rows)
        keys = evaluate(front_part(network), rows)
        labels = evaluate_grouped(key_part(network), keys.ravel())
        return labels.reshape(keys.shape)
    except NotGrouped:
        return evaluate(network, rows)
