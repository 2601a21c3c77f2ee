"""Writes the blocks of a residual network neuron by neuron, with constants deferred into later biases.

A channel's true value is ``stored + offset``; a fold or a centring changes the offset only, and every later bias that
reads the channel absorbs it, so that a constant costs no parameter.  Called by the exact constructions; it knows
nothing of hashes or words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memcap.errors import ConfigurationError
from memcap.exact.affine import Affine
from memcap.exact.network import Block, Network


@dataclass
class Neuron:
    """``relu(sum inputs + bias)`` of true channel values, and where its output is added."""

    inputs: Mapping[str, int]
    bias: int
    outputs: Mapping[str, int]


@dataclass
class ResidualWriter:
    """Collects blocks; `finish` returns the network.

    Attributes:
        channels: names of the residual channels, in order.
        offset: true minus stored value of every channel.
        blocks: what was written so far.
    """

    channels: tuple[str, ...]
    offset: dict[str, int] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.index = {name: i for i, name in enumerate(self.channels)}
        for name in self.channels:
            self.offset.setdefault(name, 0)

    def _first(self, neurons: Sequence[Neuron]) -> Affine:
        entries, bias = [], []
        for row, neuron in enumerate(neurons):
            total = neuron.bias
            for name, weight in neuron.inputs.items():
                entries.append((row, self.index[name], weight))
                total += weight * self.offset[name]
            bias.append(total)
        return Affine.from_entries(len(neurons), len(self.channels), entries, bias)

    def block(self, name: str, neurons: Sequence[Neuron], shifts: Mapping[str, int] | None = None) -> None:
        """One block: all ``neurons`` read the state before it; then ``shifts`` are added to the true values for free.

        A fold of channel v at c is ``Neuron({v: -1}, c, {v: 2})`` with the shift ``{v: -c}``: ``|v - c|``.
        """
        if neurons:
            outputs = [
                (self.index[channel], column, weight)
                for column, neuron in enumerate(neurons)
                for channel, weight in neuron.outputs.items()
            ]
            last = Affine.from_entries(len(self.channels), len(neurons), outputs)
            self.blocks.append(Block(name, (self._first(neurons), last)))
        for channel, amount in (shifts or {}).items():
            self.offset[channel] += amount

    def tents(self, channel: str, rounds: int, scale: int, modulus: int) -> None:
        """Warm-up: ``rounds`` tent rounds of a channel; one is ``scale`` before and ``scale / 2^rounds`` after."""
        for t in range(rounds):
            at = (scale >> (t + 1)) * modulus
            self.block(f"warm-up/{t}", [Neuron({channel: -1}, at, {channel: 2})], {channel: -at})

    def digits(self, channel: str, scale: int, thresholds: Sequence[int], outputs: Sequence[Mapping[str, int]]) -> None:
        """Index rounds: fold ``channel`` at each even threshold and add its bit to ``outputs``, in units of ``scale``.

        The channel holds ``scale`` times an odd number, so the bit is ``relu(c - u) - relu(c - u - 1)``.
        """
        for k, (c, to) in enumerate(zip(thresholds, outputs, strict=True)):
            here = Neuron({channel: -1}, c * scale, {channel: 2} | dict(to))
            one_lower = Neuron({channel: -1}, (c - 1) * scale, {name: -weight for name, weight in to.items()})
            self.block(f"index/{k}", [here, one_lower], {channel: -c * scale})

    def two_layers(self, name: str, first: Sequence[Neuron], second: Sequence[Neuron]) -> None:
        """A block with two hidden layers; ``second`` names the neurons of ``first`` by number (``"0"``, ``"1"``)."""
        entries = [(row, int(n), w) for row, neuron in enumerate(second) for n, w in neuron.inputs.items()]
        middle = Affine.from_entries(len(second), len(first), entries, [neuron.bias for neuron in second])
        outputs = [
            (self.index[channel], column, weight)
            for column, neuron in enumerate(second)
            for channel, weight in neuron.outputs.items()
        ]
        last = Affine.from_entries(len(self.channels), len(second), outputs)
        self.blocks.append(Block(name, (self._first(first), middle, last)))

    def finish(
        self,
        *,
        largest_key: int,
        key: Mapping[str, int],
        read: Mapping[str, int],
        read_bias: int,
        unit: int,
        constant: Mapping[str, int] | None = None,
    ) -> Network:
        """The network with embedding ``channel = weight * key + constant`` and output ``sum read + read_bias``."""
        if any(name not in self.index for name in (*key, *read)):
            raise ConfigurationError("a network reads and writes its own channels only")
        embed = Affine.from_entries(
            len(self.channels),
            1,
            [(self.index[n], 0, w) for n, w in key.items()],
            [(self.index[n], c) for n, c in (constant or {}).items()],
        )
        bias = read_bias + sum(weight * self.offset[name] for name, weight in read.items())
        out = Affine.from_entries(1, len(self.channels), [(0, self.index[n], w) for n, w in read.items()], [bias])
        return Network(
            inputs=("key",),
            input_range=((0, largest_key),),
            length=1,
            channels=self.channels,
            embed=embed,
            stages=tuple(self.blocks),
            read=out,
            unit=unit,
        )
