"""A residual block written with names instead of positions: neurons read channels or neurons of the layer before.

Called by `budgeted_network`.  It adds no number of its own: every entry of the result was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memcap.errors import ConfigurationError
from memcap.exact.affine import Affine
from memcap.exact.network import Block


@dataclass
class Unit:
    """``name = relu(sum weight * input + bias)``; inputs are channels (first layer) or units of the layer before."""

    name: str
    inputs: Mapping[str, int]
    bias: int = 0


@dataclass
class NamedBlock:
    """Layers of units, and what is added to which channel.

    Attributes:
        name: of the block, ``part/detail``.
        layers: units of every hidden layer.
        outputs: (channel, unit of the last layer, weight) triples.
        bias: channel -> constant added.
    """

    name: str
    layers: list[list[Unit]]
    outputs: list[tuple[str, str, int]] = field(default_factory=list)
    bias: dict[str, int] = field(default_factory=dict)

    def written(self, channels: Sequence[str]) -> Block:
        """The block over ``channels``."""
        places = {name: i for i, name in enumerate(channels)}
        maps = []
        for units in self.layers:
            entries = [
                (row, _place(places, name, self.name), weight)
                for row, unit in enumerate(units)
                for name, weight in unit.inputs.items()
            ]
            maps.append(Affine.from_entries(len(units), len(places), entries, [u.bias for u in units]))
            places = {unit.name: i for i, unit in enumerate(units)}
            if len(places) != len(units):
                raise ConfigurationError(f"block {self.name!r} names two units alike")
        rows = {name: i for i, name in enumerate(channels)}
        triples = [
            (_place(rows, channel, self.name), _place(places, unit, self.name), weight)
            for channel, unit, weight in self.outputs
        ]
        bias = [self.bias.get(name, 0) for name in channels]
        maps.append(Affine.from_entries(len(channels), len(places), triples, bias))
        return Block(self.name, tuple(maps))


def _place(places: Mapping[str, int], name: str, block: str) -> int:
    if name not in places:
        raise ConfigurationError(f"block {block!r} reads or writes {name!r}, which does not exist there")
    return places[name]
