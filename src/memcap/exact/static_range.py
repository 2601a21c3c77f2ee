"""The static range proof: bounds of every partial sum from the stored weights and the input ranges alone, no item seen.

Every channel is a function of a few integer variables (`abstract_values`).  Within a block the neurons are grouped by
the variables they depend on (`block_range`); groups add up as if independent.  This keeps what plain intervals lose:
x + 2 relu(-x) - c stays |x| - c, relu(x) - relu(x - 1) stays a bit, and of a one-hot row one entry is 1.  Not an
evaluator; called by certificates.
"""

from __future__ import annotations

import numpy as np

from memcap.exact.abstract_values import Value, Variables, add
from memcap.exact.affine import Affine, integers
from memcap.exact.block_range import BlockRange, Interval, Piece, bounded_exactly, dependencies
from memcap.exact.network import Attention, Block, Network


def static_bounds(network: Network, *, after_attention: list[Interval] | None = None) -> dict[str, int]:
    """Layer name -> largest magnitude any partial sum can reach, summed in any order, for every input in range.

    Args:
        after_attention: known range of every channel after the attention (of the items a certificate is about); the
            stages behind it are then bounded for these ranges instead of for every possible sequence.

    Source: derived here; sound because each step bounds all integer values of the variables it keeps.
    """
    return _prove(network, after_attention).bounds


def static_states(network: Network) -> list[list[Interval]]:
    """Range of every channel before every stage and before the read-out, for every input in range."""
    return _prove(network, None).states


def _prove(network: Network, after_attention: list[Interval] | None) -> _Proof:
    proof = _Proof()
    inputs = [Value.unknown(proof.variables, low, high) for low, high in network.input_range]
    state = proof.affine("embed", network.embed, inputs)
    for number, stage in enumerate(network.stages):
        name = f"{number:04d}.{stage.name}"
        proof.states.append([(v.low, v.high) for v in state])
        if isinstance(stage, Block):
            state = proof.block(name, stage, state)
        else:
            state = proof.attention(name, stage, state)
            if after_attention is not None:
                state = [Value.unknown(proof.variables, low, high) for low, high in after_attention]
    proof.states.append([(v.low, v.high) for v in state])
    proof.affine("read", network.read, state)
    return proof


class _Proof:
    def __init__(self) -> None:
        self.variables = Variables()
        self.bounds: dict[str, int] = {}
        self.states: list[list[Interval]] = []

    def note(self, name: str, *bounds: int) -> None:
        self.bounds[name] = max(self.bounds.get(name, 0), *bounds)

    def affine(self, name: str, layer: Affine, state: list[Value]) -> list[Value]:
        """Values of ``layer(state)``: a residual block without hidden layers and without the state."""
        zero = [Value.constant(0)] * layer.outputs
        return self._residual(name, [layer], state, zero)

    def block(self, name: str, block: Block, state: list[Value]) -> list[Value]:
        return self._residual(name, list(block.layers), state, state)

    def attention(self, name: str, stage: Attention, state: list[Value]) -> list[Value]:
        """A mean lies between the smallest and the largest value of its summands, whatever the other positions hold."""
        values = self.affine(f"{name}.value", stage.value, state)
        means = [Value.unknown(self.variables, v.low, v.high) for v in values]
        return self._residual(f"{name}.output", [stage.output], means, state)

    def _residual(self, name: str, layers: list[Affine], inputs: list[Value], state: list[Value]) -> list[Value]:
        names = [f"{name}.{depth}" for depth in range(len(layers))] if len(layers) > 1 else [name]
        shared = state is inputs
        inputs = self._coarsened(layers, inputs)
        state = inputs if shared else state
        block = BlockRange(self.variables, self.note, names, layers, inputs)
        last = layers[-1]
        touched = np.unique(np.concatenate([last.row, np.flatnonzero(np.asarray(last.bias != 0, dtype=bool))]))
        after = list(state)
        pieces = block.contributions({int(o): state[int(o)] for o in touched})
        for o in touched.tolist():
            after[o] = self._joined(names[-1], int(last.bias[o]), state[o], pieces[o])
        for o in set(range(len(state))) - set(touched.tolist()):
            self.note(names[-1], abs(state[o].low), abs(state[o].high))
        return after

    def _coarsened(self, layers: list[Affine], inputs: list[Value]) -> list[Value]:
        """``inputs``, of which some are taken as new variables where a group would otherwise be too large to enumerate.

        A channel that is a table over a large variable but takes few values itself loses its ties to other channels and
        becomes small.  Sound: forgetting what a channel depends on only adds possibilities.
        """
        for _ in inputs:
            sets = dependencies(layers, inputs)
            bad = {s for found in sets[1:] for s in found if not bounded_exactly(self.variables, s)}
            bad |= {
                sets[-1][c] for c in set(layers[-1].column.tolist()) if not bounded_exactly(self.variables, sets[-1][c])
            }
            read = set(layers[0].column.tolist())
            gains = [
                (len(v.table) / (v.high - v.low + 1), i)
                for i, v in enumerate(inputs)
                if i in read and v.table is not None and any(set(v.variables) & s for s in bad)
            ]
            gain, channel = max(gains, default=(0.0, -1))
            if gain <= 1:
                break
            inputs = list(inputs)
            inputs[channel] = Value.unknown(self.variables, inputs[channel].low, inputs[channel].high)
        return inputs

    def _joined(self, name: str, bias: int, own: Value, pieces: list[Piece]) -> Value:
        """The value of one output: its pieces are taken as independent unless there is only one."""
        rise, fall = max(bias, 0), max(-bias, 0)
        low = high = bias
        if not any(p.own for p in pieces):
            rise, fall = rise + max(own.high, 0), fall + max(-own.low, 0)
            low, high = low + own.low, high + own.high
        for p in pieces:
            rise, fall = rise + p.rise, fall + p.fall
            low, high = low + p.low, high + p.high
        self.note(name, rise, fall)
        pieces = [p for p in pieces if p.low or p.high or p.own]  # the others add nothing but summands that cancel
        if len(pieces) == 1 and pieces[0].table is not None and (pieces[0].own or not own.variables):
            constant = bias + (0 if pieces[0].own else own.offset)
            return Value.tabulated(pieces[0].over, add(pieces[0].table, integers([constant])))
        if len(pieces) == 1 and pieces[0].line is not None and (pieces[0].own or not own.variables):
            slope, offset = pieces[0].line
            constant = bias + (0 if pieces[0].own else own.offset)
            return Value.linear(self.variables, pieces[0].over[0], slope, offset + constant)
        if not pieces:
            return own.shifted(bias)
        return Value.unknown(self.variables, low, high)
