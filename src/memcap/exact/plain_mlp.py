"""A residual network as a plain multilayer perceptron: no skip connection, the same integers.

Every channel that is still needed is carried through each layer by one more ReLU unit, which is the identity because
the carried number is not negative (a channel that can be negative is shifted by its lowest value first).  Networks of
single keys only: an attention is not a perceptron.  Where several units would each read a long sum, a layer that only
adds up comes first: deeper by one, with fewer entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memcap.errors import ConfigurationError, FormatError
from memcap.exact.affine import Affine
from memcap.exact.evaluate import NOT_A_LABEL, trace
from memcap.exact.inputs import Rows, as_rows, is_sequence, split
from memcap.exact.network import Block, Network
from memcap.exact.static_range import static_states

Form = dict[int, int]
"""A linear form: unit of the previous layer -> weight; `_ONE` -> constant."""
_ONE = -1


@dataclass(frozen=True, eq=False)
class PlainMLP:
    """``labels = layers[-1](relu(... relu(layers[0](inputs)))) / unit``.

    Attributes:
        layers: affine maps with integer entries, ReLU between them.
        unit: the output is ``unit * label``.
        source: a network with the same inputs, for checking and splitting keys.
        proved: True when the shifts of carried channels hold for every input in range; False when for the given rows.
    """

    layers: tuple[Affine, ...]
    unit: int
    source: Network
    proved: bool

    @property
    def nonzero(self) -> int:
        """Non-zero weights and biases."""
        return sum(layer.nonzero for layer in self.layers)

    @property
    def dense(self) -> int:
        """Entries of the materialised matrices and biases."""
        return sum(layer.dense for layer in self.layers)

    @property
    def width(self) -> int:
        """Most units of any hidden layer."""
        return max((layer.outputs for layer in self.layers[:-1]), default=0)

    @property
    def depth(self) -> int:
        """Number of hidden layers."""
        return len(self.layers) - 1

    def evaluate(self, rows: Rows | Sequence[int]) -> NDArray[np.int64]:
        """Labels of keys (rows,) in Python integers; `NOT_A_LABEL` where the output is not ``unit * label``."""
        array = as_rows(self.source, rows)
        labels = np.full(len(array), NOT_A_LABEL, dtype=np.int64)
        for start in range(0, len(array), 2048):
            x = np.stack([c.astype(object) for c in split(self.source, array[start : start + 2048])])
            for depth, layer in enumerate(self.layers):
                x = _apply(layer, np.maximum(x, 0) if depth else x)
            for row, out in enumerate(x[0]):
                if out % self.unit == 0 and 0 <= out // self.unit < 2**62:
                    labels[start + row] = out // self.unit
        return labels

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: every layer as [row, column, hex] triples and hex biases."""
        layers = [
            {
                "shape": [m.outputs, m.inputs],
                "weight": [[int(r), int(c), hex(int(w))] for r, c, w in zip(m.row, m.column, m.weight, strict=True)],
                "bias": [hex(int(b)) for b in m.bias],
            }
            for m in self.layers
        ]
        return {"format": "memcap plain mlp", "format_version": 1, "unit": hex(self.unit), "layers": layers}


def layers_from_json(record: dict[str, Any]) -> tuple[tuple[Affine, ...], int]:
    """Layers and unit written by `PlainMLP.to_json`.

    Raises:
        FormatError: for anything else.
    """
    if record.get("format") != "memcap plain mlp" or record.get("format_version") != 1:
        raise FormatError(
            f"expected a memcap plain mlp of version 1, got {record.get('format')!r} {record.get('format_version')!r}"
        )
    try:
        layers = tuple(
            Affine.from_entries(
                int(item["shape"][0]),
                int(item["shape"][1]),
                [(r, c, int(w, 16)) for r, c, w in item["weight"]],
                [int(b, 16) for b in item["bias"]],
            )
            for item in record["layers"]
        )
        return layers, int(record["unit"], 16)
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"not a complete memcap plain mlp ({error})") from None


def to_plain_mlp(network: Network, rows: Rows | Sequence[int] | None = None, *, neurons: int | None = None) -> PlainMLP:
    """``network`` without skip connections.

    Args:
        network: reads single keys (no attention).
        rows: keys the perceptron must be exact for.  Without them it is exact for every key in range, by the static
            ranges of the channels, which may need a few more biases.
        neurons: split wide blocks so that at most this many neurons (and those that must see the same state) share a
            layer: with 2 the width does not grow with the items: 4 for the step selector, more for others.

    Raises:
        ConfigurationError: for a network with attention.

    Source: derived here; relu(s) = s for s >= 0.
    """
    if is_sequence(network):
        raise ConfigurationError(
            "a network with attention has no plain MLP: only memories of single tokens have one; export this one as "
            "ONNX"
        )
    if neurons is not None:
        network = narrowed(network, neurons)
    lows = _lows(network, rows)
    live = _live(network)
    writer = _Writer(len(network.inputs), _forms(network.embed))
    for number, stage in enumerate(network.stages):
        assert isinstance(stage, Block)
        needed, kept = sorted(live[number]), sorted(live[number + 1])
        wanted = _feeding(stage, live[number + 1])
        first = _some(_forms(stage.layers[0]), wanted[0])
        direct = writer.cost(kept, first, lows[number])
        settled = writer.copy()
        settled.carry(needed, [], lows[number])
        if settled.cost(kept, first, lows[number]) + settled.layers[-1].nonzero < direct:
            writer = settled
        units = writer.carry(kept, first, lows[number])
        for depth in range(1, len(stage.layers) - 1):
            inner = [
                _combine(form, dict(zip(wanted[depth - 1], units, strict=True)))
                for form in _some(_forms(stage.layers[depth]), wanted[depth])
            ]
            units = writer.carry_on(kept, inner)
        update, hidden = _forms(stage.layers[-1]), dict(zip(wanted[-1], units, strict=True))
        for c in kept:
            writer.state[c] = _sum(writer.state[c], _combine(update[c], hidden))
    writer.layers.append(_layer([_combine(form, writer.state) for form in _forms(network.read)], writer.size))
    return PlainMLP(tuple(writer.layers), network.unit, network, rows is None)


class _Writer:
    """Layers written so far, and every channel as a linear form over the units of the last one."""

    def __init__(self, size: int, state: list[Form]) -> None:
        self.size, self.state = size, state
        self.layers: list[Affine] = []

    def copy(self) -> _Writer:
        other = _Writer(self.size, list(self.state))
        other.layers = list(self.layers)
        return other

    def cost(self, kept: list[int], first: list[Form], lows: list[int]) -> int:
        """Non-zero entries of the layer that `carry` would write."""
        other = self.copy()
        other.carry(kept, first, lows)
        return other.layers[-1].nonzero

    def carry(self, kept: list[int], first: list[Form], lows: list[int]) -> list[Form]:
        """One layer: the channels ``kept``, then neurons reading the state by the forms ``first``; returns their units.

        A channel is carried less a shift that keeps it from being negative.  A constant part is shifted away where that
        is possible, for later biases absorb it for nothing.
        """
        neurons = [_combine(form, self.state) for form in first]
        carried: list[Form] = []
        after: list[Form] = [{} for _ in self.state]
        for c in kept:
            form = self.state[c]
            if not set(form) - {_ONE}:
                after[c] = form  # constant: no unit
                continue
            constant = form.get(_ONE, 0)
            shift = constant if constant <= lows[c] else min(lows[c], 0)
            after[c] = _plus({len(carried): 1}, shift)
            carried.append(_plus(form, -shift))
        self.layers.append(_layer(carried + neurons, self.size))
        self.size = len(carried) + len(neurons)
        self.state = after
        return [{len(carried) + k: 1} for k in range(len(neurons))]

    def carry_on(self, kept: list[int], inner: list[Form]) -> list[Form]:
        """One more layer inside a block: the carried units as they are, then the neurons ``inner``."""
        count = sum(1 for c in kept if set(self.state[c]) - {_ONE})
        self.layers.append(_layer([{k: 1} for k in range(count)] + inner, self.size))
        self.size = count + len(inner)
        return [{count + k: 1} for k in range(len(inner))]


def narrowed(network: Network, neurons: int) -> Network:
    """The same function with wide blocks split into blocks of at most ``neurons`` neurons where the order is free.

    Neurons that write a channel some neuron of the block reads must see the same state and stay together.
    """
    stages: list[Any] = []
    for stage in network.stages:
        if not isinstance(stage, Block) or len(stage.layers) != 2 or stage.layers[0].outputs <= neurons:
            stages.append(stage)
            continue
        first, last = stage.layers
        reads: list[set[int]] = [set() for _ in range(first.outputs)]
        writes: list[set[int]] = [set() for _ in range(first.outputs)]
        for r, c in zip(first.row.tolist(), first.column.tolist(), strict=True):
            reads[r].add(c)
        for r, c in zip(last.row.tolist(), last.column.tolist(), strict=True):
            writes[c].add(r)
        both = set().union(*reads) & set().union(*writes)
        free = [n for n in range(first.outputs) if not writes[n] & both]
        bound = [n for n in range(first.outputs) if writes[n] & both]
        groups = [free[i : i + neurons] for i in range(0, len(free), neurons)] + ([bound] if bound else [])
        for k, group in enumerate(groups):
            bias = last.bias if k == len(groups) - 1 else np.zeros(last.outputs, dtype=np.int64)
            stages.append(Block(f"{stage.name}/{k}", (_rows(first, group), _columns(last, group, bias))))
    return replace(network, stages=tuple(stages))


def _rows(layer: Affine, rows: list[int]) -> Affine:
    at = {r: k for k, r in enumerate(rows)}
    keep = np.array([k for k, r in enumerate(layer.row.tolist()) if r in at], dtype=np.int64)
    row = np.array([at[int(r)] for r in layer.row[keep]], dtype=np.int64)
    return Affine.from_arrays(len(rows), layer.inputs, row, layer.column[keep], layer.weight[keep], layer.bias[rows])


def _columns(layer: Affine, columns: list[int], bias: NDArray[Any]) -> Affine:
    at = {c: k for k, c in enumerate(columns)}
    keep = np.array([k for k, c in enumerate(layer.column.tolist()) if c in at], dtype=np.int64)
    column = np.array([at[int(c)] for c in layer.column[keep]], dtype=np.int64)
    return Affine.from_arrays(layer.outputs, len(columns), layer.row[keep], column, layer.weight[keep], bias)


def _lows(network: Network, rows: Rows | Sequence[int] | None) -> list[list[int]]:
    """Lowest value of every channel before every stage: of all rows, or of every input in range."""
    if rows is None:
        return [[low for low, _ in state] for state in static_states(network)]
    array = as_rows(network, rows)
    lows: list[list[int]] = []
    for start in range(0, len(array), 1024):
        states = trace(network, array[start : start + 1024], engine="auto")[:-1]
        found = [[int(v) for v in state.min(axis=1)] for _, state in states]
        lows = [[min(pair) for pair in zip(*p, strict=True)] for p in zip(lows or found, found, strict=True)]
    return lows


def _live(network: Network) -> list[set[int]]:
    """Channels whose value before stage k (last: before the read-out) still matters."""
    live = [{int(c) for c in network.read.column}]
    for stage in reversed(network.stages):
        assert isinstance(stage, Block)
        wanted = _feeding(stage, live[0])
        first = stage.layers[0]
        read = {int(c) for r, c in zip(first.row, first.column, strict=True) if int(r) in set(wanted[0])}
        live.insert(0, live[0] | read)
    return live


def _feeding(block: Block, outputs: set[int]) -> list[list[int]]:
    """Neurons of every hidden layer that the given outputs depend on."""
    wanted: list[list[int]] = []
    needed = outputs
    for layer in reversed(block.layers[1:]):
        needed = {int(c) for r, c in zip(layer.row, layer.column, strict=True) if int(r) in needed}
        wanted.insert(0, sorted(needed))
    return wanted


def _forms(layer: Affine) -> list[Form]:
    forms: list[Form] = [{_ONE: int(b)} if b else {} for b in layer.bias]
    for r, c, w in zip(layer.row.tolist(), layer.column.tolist(), layer.weight, strict=True):
        forms[r][c] = int(w)
    return forms


def _some(forms: list[Form], wanted: list[int]) -> list[Form]:
    return [forms[i] for i in wanted]


def _plus(form: Form, constant: int) -> Form:
    return _sum(form, {_ONE: constant})


def _sum(a: Form, b: Form) -> Form:
    total = {k: a.get(k, 0) + b.get(k, 0) for k in a.keys() | b.keys()}
    return {k: v for k, v in total.items() if v}


def _combine(form: Form, parts: list[Form] | dict[int, Form]) -> Form:
    """``form`` over ``parts``, written over what the parts are written in."""
    total: Form = {_ONE: form[_ONE]} if _ONE in form else {}
    for i, w in form.items():
        if i == _ONE:
            continue
        part = parts[i] if isinstance(parts, list) else parts.get(i, {})
        for k, v in part.items():
            total[k] = total.get(k, 0) + w * v
    return {k: v for k, v in total.items() if v}


def _layer(forms: list[Form], inputs: int) -> Affine:
    entries = [(r, c, w) for r, form in enumerate(forms) for c, w in form.items() if c != _ONE]
    return Affine.from_entries(len(forms), inputs, entries, [form.get(_ONE, 0) for form in forms])


def _apply(layer: Affine, x: NDArray[Any]) -> NDArray[Any]:
    y = np.zeros((layer.outputs, x.shape[1]), dtype=object)
    y += np.array([int(b) for b in layer.bias], dtype=object)[:, None]
    for r, c, w in zip(layer.row.tolist(), layer.column.tolist(), layer.weight, strict=True):
        y[r] += x[c] if w == 1 else x[c] * int(w)
    return y
