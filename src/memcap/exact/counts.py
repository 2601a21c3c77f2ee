"""Parameter counts of a network: never one ambiguous number."""

from __future__ import annotations

from dataclasses import dataclass, field

from memcap.exact.network import Block, Network


@dataclass(frozen=True)
class ParameterCount:
    """How large a network is, by four definitions.

    Attributes:
        nonzero: non-zero weights and biases, structural 1, -1, 2 included.
        stored: numbers that must be saved to use it (here: all non-zero ones; nothing is regenerated from a seed).
        dense: entries of the materialised matrices (structured pair layers count two weights per output).
        bits: sum over non-zero entries of the width needed to write it, sign included.
        by_part: part -> non-zero parameters (``embed``, ``token``, ``attention``, ``selector``, ``read``...).
        bounds: lower bounds for what is memorised, and how many times they this is; empty for a bare network.
    """

    nonzero: int
    stored: int
    dense: int
    bits: int
    by_part: dict[str, int] = field(default_factory=dict)
    bounds: dict[str, float] = field(default_factory=dict)


def count(network: Network) -> ParameterCount:
    """Count the parameters of ``network``."""
    parts: dict[str, int] = {"embed": network.embed.nonzero}
    dense = network.embed.dense + network.read.dense
    bits = network.embed.bits + network.read.bits
    for stage in network.stages:
        maps = stage.layers if isinstance(stage, Block) else (stage.value, stage.output)
        grouped = stage.grouped if isinstance(stage, Block) else frozenset()
        for index, layer in enumerate(maps):
            parts[stage.part] = parts.get(stage.part, 0) + layer.nonzero
            dense += 3 * layer.outputs if index in grouped else layer.dense
            bits += layer.bits
        if not isinstance(stage, Block):
            dense += 2 * len(network.channels) * stage.value.outputs  # the zero query and key matrices
    parts["read"] = parts.get("read", 0) + network.read.nonzero
    total = sum(parts.values())
    return ParameterCount(nonzero=total, stored=total, dense=dense, bits=bits, by_part=parts)
