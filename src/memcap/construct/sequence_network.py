"""Tokens to labels: a token front, one uniform attention, and a network on the summed key, as one `Network`.

Next token (one label a sequence): the key is the sum of the values, read at the last position.
Sequence to sequence (a label at every position): the key is ``value(token) + 3 * sum``; any factor of at least two
keeps swapped tokens apart.

Source: the shape (embedding, feed-forward, attention, feed-forward) is that of Kajitsuka & Sato (arXiv 2409.17677);
the exact integer form is derived here, docs/theory/tokens.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memcap.construct.token_values import TokenFront
from memcap.exact.affine import Affine
from memcap.exact.network import Attention, Block, Network

OWN_FACTOR = 3


def _lifted(layer: Affine, outputs: int | None, inputs: int | None, output_shift: int, input_shift: int) -> Affine:
    """``layer`` with its outputs and/or inputs moved into a wider residual stream."""
    new_outputs = layer.outputs if outputs is None else outputs
    new_inputs = layer.inputs if inputs is None else inputs
    bias = np.zeros(new_outputs, dtype=layer.bias.dtype)
    shift_out = 0 if outputs is None else output_shift
    shift_in = 0 if inputs is None else input_shift
    bias[shift_out : shift_out + layer.outputs] = layer.bias
    return Affine.from_arrays(
        new_outputs, new_inputs, layer.row + shift_out, layer.column + shift_in, layer.weight, bias
    )


def _lifted_block(block: Block, width: int, shift: int) -> Block:
    first, *middle, last = block.layers
    layers = (_lifted(first, None, width, 0, shift), *middle, _lifted(last, width, None, shift, 0))
    return Block(block.name, layers, block.grouped)


def assemble(front: TokenFront, key: Network, *, length: int, tokens: int, per_position: bool) -> Network:
    """Join a token front and a key network through uniform attention over ``length`` positions.

    Args:
        front: token-wise blocks; as many value channels as ``key`` has inputs.
        key: network of length 1 on the key (or its two limbs).
        length: positions, padding included.
        tokens: token ids are in [0, tokens), the padding id included.
        per_position: sequence to sequence.
    """
    shift = len(front.channels)
    key_channels = tuple(f"key.{name}" for name in key.channels)
    channels = front.channels + key_channels
    width = len(channels)
    limbs = len(front.value_channels)
    value_columns = [front.channels.index(name) for name in front.value_channels]
    stages: list[Block | Attention] = [_lifted_block(b, width, 0) for b in front.blocks]
    factor = length * (OWN_FACTOR if per_position else 1)
    value = Affine.from_entries(limbs, width, [(i, c, factor) for i, c in enumerate(value_columns)])
    if per_position:
        output = Affine.from_entries(width, limbs, [(c, i, 1) for i, c in enumerate(value_columns)])
        stages.append(Attention("attention", value, output))
        read_key = Affine.from_entries(limbs, width, [(i, c, 1) for i, c in enumerate(value_columns)])
        stages.append(Block("key", (read_key, _lifted(key.embed, width, None, shift, 0))))
    else:
        stages.append(Attention("attention", value, _lifted(key.embed, width, None, shift, 0)))
    for stage in key.stages:
        assert isinstance(stage, Block), "a key network has no attention"
        stages.append(_lifted_block(stage, width, shift))
    return Network(
        inputs=("token", "position"),
        input_range=((0, tokens - 1), (0, length - 1)),
        length=length,
        channels=channels,
        embed=_lifted(front.embed, width, None, 0, 0),
        stages=tuple(stages),
        read=_lifted(key.read, None, width, 0, shift),
        unit=key.unit,
        per_position=per_position,
    )


def depth_before_key(front: TokenFront, *, per_position: bool) -> int:
    """ReLU layers and attention that `assemble` puts before the key network."""
    return sum(len(block.layers) - 1 for block in front.blocks) + 1 + per_position


def key_part(network: Network) -> Network:
    """The network on the key that `assemble` joined in, read back from the weights alone (a key network is itself)."""
    if network.attention_index is None:
        return network
    shift = next(i for i, name in enumerate(network.channels) if name.startswith("key."))
    width = len(network.channels) - shift
    start = network.attention_index
    attention = network.stages[start]
    assert isinstance(attention, Attention)
    source = attention.output
    if network.per_position:
        reader = network.stages[start + 1]
        assert isinstance(reader, Block)
        source = reader.layers[1]
        start += 1
    narrow = _narrowed(source, width, None, shift, 0)
    stages = []
    for stage in network.stages[start + 1 :]:
        assert isinstance(stage, Block)
        first, *middle, last = stage.layers
        stages.append(
            Block(
                stage.name,
                (_narrowed(first, None, width, 0, shift), *middle, _narrowed(last, width, None, shift, 0)),
                stage.grouped,
            )
        )
    inputs = ("key",) if source.inputs == 1 else ("sel", "q")
    return Network(
        inputs=inputs,
        input_range=tuple((0, 2**62) for _ in inputs),
        length=1,
        channels=tuple(name.removeprefix("key.") for name in network.channels[shift:]),
        embed=narrow,
        stages=tuple(stages),
        read=_narrowed(network.read, None, width, 0, shift),
        unit=network.unit,
    )


def _narrowed(layer: Affine, outputs: int | None, inputs: int | None, output_shift: int, input_shift: int) -> Affine:
    """The inverse of `_lifted`; an entry outside the key's channels is an error."""
    new_outputs = layer.outputs if outputs is None else outputs
    new_inputs = layer.inputs if inputs is None else inputs
    row = layer.row - (0 if outputs is None else output_shift)
    column = layer.column - (0 if inputs is None else input_shift)
    shift_out = 0 if outputs is None else output_shift
    bias = layer.bias[shift_out : shift_out + new_outputs]
    return Affine.from_arrays(new_outputs, new_inputs, row, column, layer.weight, bias)


def keys_of(values: NDArray[np.int64], symbols: NDArray[np.int64], *, per_position: bool) -> NDArray[np.int64]:
    """Keys by direct summation: int64 (rows, limbs), or (rows, length, limbs) per position.

    Args:
        values: value(s) of the symbols that occur, (symbols, limbs).
        symbols: (rows, length) places in ``values``, padding included.
    """
    sums = np.zeros((len(symbols), values.shape[1]), dtype=np.int64)
    for position in range(symbols.shape[1]):  # no (rows, length, limbs) temporary
        sums += values[symbols[:, position]]
    if not per_position:
        return sums
    return values[symbols] + OWN_FACTOR * sums[:, None, :]


def front_part(network: Network) -> Network:
    """The network from tokens to the key, read back from the weights of an assembled one-key network.

    Its "label" is the key: at the last position, or at every position for sequence to sequence.
    """
    at = network.attention_index
    assert at is not None, "a network on single keys has no front"
    attention = network.stages[at]
    assert isinstance(attention, Attention)
    shift = next(i for i, name in enumerate(network.channels) if name.startswith("key."))  # the front's own channels
    wide = shift + 1
    if network.per_position:
        source = int(attention.output.row[0])
        output = _resized(attention.output, wide, attention.output.inputs)
    else:  # every position after the sum is the same: put it into a channel of its own
        source = shift
        output = Affine.from_entries(wide, 1, [(source, 0, 1)])
    stages: list[Block | Attention] = []
    for stage in network.stages[:at]:
        assert isinstance(stage, Block)
        first, *middle, last = stage.layers
        layers = (_resized(first, first.outputs, wide), *middle, _resized(last, wide, last.inputs))
        stages.append(Block(stage.name, layers, stage.grouped))
    stages.append(Attention("attention", _resized(attention.value, 1, wide), output))
    return Network(
        inputs=network.inputs,
        input_range=network.input_range,
        length=network.length,
        channels=(*network.channels[:shift], "the key"),
        embed=_resized(network.embed, wide, network.embed.inputs),
        stages=tuple(stages),
        read=Affine.from_entries(1, wide, [(0, source, 1)]),
        per_position=network.per_position,
    )


def _resized(layer: Affine, outputs: int, inputs: int) -> Affine:
    """``layer`` in a narrower or wider stream; an entry that does not fit is an error."""
    bias = np.zeros(outputs, dtype=layer.bias.dtype)
    kept = min(outputs, layer.outputs)
    bias[:kept] = layer.bias[:kept]
    return Affine.from_arrays(outputs, inputs, layer.row, layer.column, layer.weight, bias)
