"""The network every construction writes: integer affine maps, ReLU, residual blocks and one uniform attention.

This is the common language between rooms: `construct` writes a `Network`, `exact` evaluates and certifies it in integer
arithmetic, `model` turns it into a torch module with ordinary weights.  It is a description; it computes nothing.

The residual stream has named channels.  Stages act on it in order::

    state  = embed(token, position)                       at every position
    Block: state += layer_k(relu(... relu(layer_1(state))))   token-wise, all neurons read the state before the block
    Attention: state += output(mean over positions of value(state))   softmax with zero queries and keys
    label  = read(state) / unit                            exact division; anything else is not a label

A memory of single integers (length 1) has no attention and `embed` reads the key(s) directly.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from memcap.errors import ConfigurationError
from memcap.exact.affine import Affine


@dataclass(frozen=True, eq=False)
class Block:
    """A residual feed-forward block: ``state += layers[-1](relu(... relu(layers[0](state))))``.

    Attributes:
        name: what the block does, ``part/detail`` (``"selector"``, ``"hash/3"``, ``"fold/2/17"``): parameter counts are
            grouped by the part before the first slash.
        layers: at least two affine maps; ReLU between them, none after the last.
        grouped: indices of layers stored as structured pairs: layer i (outputs m, inputs 2m) whose output j reads only
            inputs 2j and 2j+1.  Only storage and `dense` counts depend on it.
    """

    name: str
    layers: tuple[Affine, ...]
    grouped: frozenset[int] = frozenset()

    @property
    def part(self) -> str:
        return self.name.split("/", 1)[0]


@dataclass(frozen=True, eq=False)
class Attention:
    """One head of uniform attention: ``state += output(mean_j value(state_j))``; queries and keys are zero matrices.

    The mean over ``length`` positions must divide exactly (``value`` carries the factor ``length``).

    Attributes:
        name: as in `Block`.
        value: state -> head channels, no bias.
        output: head channels -> state.
    """

    name: str
    value: Affine
    output: Affine

    @property
    def part(self) -> str:
        return self.name.split("/", 1)[0]


@dataclass(frozen=True, eq=False)
class Network:
    """A complete integer network from tokens to a label.

    Attributes:
        inputs: names of the embedding's inputs: ``("token", "position")`` for sequences, ``("key",)`` or
            ``("sel", "q")`` (float32 limbs) for single integers.
        input_range: inclusive (low, high) per input; outside it the network promises nothing.
        length: positions of a sequence, padding included (1: no attention).
        channels: names of the residual channels.
        embed: inputs -> channels.
        stages: blocks and at most one attention, in order.
        read: channels -> 1 output.
        unit: the output is ``unit * label``.
        per_position: read at every position (sequence to sequence), else at the last one.
        key_limbs: ``(shift, bits)`` when a single integer key enters as two limbs ``sel = key >> shift`` and
            ``q = key mod 2^bits`` (float32, whose exact integers are too narrow for one), else None.
    """

    inputs: tuple[str, ...]
    input_range: tuple[tuple[int, int], ...]
    length: int
    channels: tuple[str, ...]
    embed: Affine
    stages: tuple[Block | Attention, ...]
    read: Affine
    unit: int = 1
    per_position: bool = False
    key_limbs: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        width = len(self.channels)
        if len(set(self.channels)) != width:
            raise ConfigurationError("two channels of a network carry the same name")
        if (self.embed.outputs, self.embed.inputs) != (width, len(self.inputs)):
            raise ConfigurationError(f"embed must be {width} x {len(self.inputs)}")
        if (self.read.outputs, self.read.inputs) != (1, width):
            raise ConfigurationError(f"read must be 1 x {width}")
        for stage in self.stages:
            maps = stage.layers if isinstance(stage, Block) else (stage.value, stage.output)
            sizes = [maps[0].inputs, *(m.outputs for m in maps)]
            if sizes[0] != width or sizes[-1] != width or len(maps) < 2:
                raise ConfigurationError(f"stage {stage.name!r} does not map the {width} channels to themselves")
            for before, after in itertools.pairwise(maps):
                if after.inputs != before.outputs:
                    raise ConfigurationError(
                        f"stage {stage.name!r}: {before.outputs} outputs meet {after.inputs} inputs"
                    )
        if sum(isinstance(s, Attention) for s in self.stages) > 1:
            raise ConfigurationError("a network has at most one attention")

    def maps(self) -> Iterator[tuple[str, Affine]]:
        """Every affine map with a stable, unique name (``embed``, ``007.fold/2.0``, ..., ``read``), in order."""
        yield "embed", self.embed
        for number, stage in enumerate(self.stages):
            if isinstance(stage, Block):
                for depth, layer in enumerate(stage.layers):
                    yield f"{number:04d}.{stage.name}.{depth}", layer
            else:
                yield f"{number:04d}.{stage.name}.value", stage.value
                yield f"{number:04d}.{stage.name}.output", stage.output
        yield "read", self.read

    @property
    def attention_index(self) -> int | None:
        """Position of the attention among the stages, or None."""
        return next((i for i, s in enumerate(self.stages) if isinstance(s, Attention)), None)

    @property
    def depth(self) -> int:
        """Number of ReLU layers from input to output, the attention counted as one layer."""
        return sum(len(s.layers) - 1 if isinstance(s, Block) else 1 for s in self.stages)

    @property
    def widest(self) -> int:
        """Most neurons of any hidden layer."""
        return max((m.outputs for s in self.stages if isinstance(s, Block) for m in s.layers[:-1]), default=0)
