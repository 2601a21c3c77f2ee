"""The fast evaluator: the stored network, layer by layer, with zero activations skipped, compiled.

It reads every stored entry of the network and assumes nothing about its structure: a hidden unit that is 0 contributes
0, so its column is not visited.  Where words are chosen by one-hot units nearly all units are 0, which makes this a
gather.  Sums are int64 or float64; both give what the reference `exact.evaluate` gives wherever no partial sum leaves
the format's exact integers, which is what certificates prove.  It does not check that itself.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, no_type_check

import numba
import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from memcap.errors import ConfigurationError, PrecisionError
from memcap.exact.affine import Affine
from memcap.exact.inputs import Rows, as_rows, is_sequence, split
from memcap.exact.network import Attention, Block, Network

_NUMBERS = ("int64", "float64")
_BATCH = 1 << 15
_ROWS_A_THREAD = 512


@dataclass(frozen=True)
class _Program:
    """Consecutive blocks as flat arrays; layer i reads ``sources`` columns and adds to ``outputs`` sums.

    Attributes:
        last: per layer 1 if it ends a block, else 0.
        outputs, inputs: shape per layer.
        bias_start, column_start: where its non-zero biases and its column pointers begin.
        bias, bias_row: non-zero biases and the sums they belong to.
        pointer, row, weight: the other entries, columns compressed.
        live: columns that hold entries, and where each layer's begin.
    """

    last: NDArray[np.int64]
    outputs: NDArray[np.int64]
    inputs: NDArray[np.int64]
    bias_start: NDArray[np.int64]
    column_start: NDArray[np.int64]
    bias: NDArray[Any]
    bias_row: NDArray[np.int64]
    pointer: NDArray[np.int64]
    row: NDArray[np.int64]
    weight: NDArray[Any]
    live: NDArray[np.int64]
    live_start: NDArray[np.int64]


def _program(blocks: list[Block], numbers: str) -> _Program:
    layers = [(layer, depth == len(b.layers) - 1) for b in blocks for depth, layer in enumerate(b.layers)]
    bias_start, column_start, live_start = [0], [0], [0]
    biases, bias_rows, pointers, rows, weights, lives = [], [], [], [], [], []
    entries = 0
    for layer, _ in layers:
        if layer.weight.dtype == object or layer.bias.dtype == object:
            raise PrecisionError("a weight of this network is wider than 64 bits; use the exact evaluator")
        order = np.argsort(layer.column, kind="stable")
        counts = np.bincount(layer.column, minlength=layer.inputs)
        pointers.append(entries + np.concatenate([[0], np.cumsum(counts)]))
        entries += len(layer.weight)
        rows.append(layer.row[order])
        weights.append(layer.weight[order])
        bias_rows.append(np.flatnonzero(layer.bias))
        biases.append(layer.bias[bias_rows[-1]])
        lives.append(np.flatnonzero(counts))
        bias_start.append(bias_start[-1] + len(biases[-1]))
        column_start.append(column_start[-1] + layer.inputs + 1)
        live_start.append(live_start[-1] + len(lives[-1]))

    def joined(parts: Sequence[NDArray[Any]], dtype: str) -> NDArray[Any]:
        return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype=dtype)

    return _Program(
        last=np.array([int(last) for _, last in layers], dtype=np.int64),
        outputs=np.array([layer.outputs for layer, _ in layers], dtype=np.int64),
        inputs=np.array([layer.inputs for layer, _ in layers], dtype=np.int64),
        bias_start=np.array(bias_start, dtype=np.int64),
        column_start=np.array(column_start, dtype=np.int64),
        bias=joined(biases, numbers),
        bias_row=joined(bias_rows, "int64"),
        pointer=joined(pointers, "int64"),
        row=joined(rows, "int64"),
        weight=joined(weights, numbers),
        live=joined(lives, "int64"),
        live_start=np.array(live_start, dtype=np.int64),
    )


class Fused:
    """A network prepared for fast evaluation.

    Args:
        network: any network whose entries fit 64 bits.
        numbers: ``int64`` or ``float64``: in which the sums are computed.

    Raises:
        PrecisionError: if an entry does not fit.
        ConfigurationError: for unknown ``numbers``.
    """

    def __init__(self, network: Network, numbers: str = "int64") -> None:
        if numbers not in _NUMBERS:
            raise ConfigurationError(f"numbers must be one of {', '.join(_NUMBERS)}, got {numbers!r}")
        self.network = network
        self.numbers = numbers
        at = network.attention_index
        stages = network.stages
        before = stages[:at] if at is not None else ()
        after = stages if at is None else stages[at + 1 :]
        self._before = _program([b for b in before if isinstance(b, Block)], numbers)
        self._after = _program([b for b in after if isinstance(b, Block)], numbers)

    def labels(self, rows: Rows) -> NDArray[np.int64]:
        """As `memcap.exact.evaluate.evaluate`: the label of every row, -1 where the output is not a label."""
        network = self.network
        array = as_rows(network, rows)
        if not is_sequence(network):
            return self.labels_of_inputs(np.stack([c.astype(np.int64) for c in split(network, array)], axis=1))
        shape = array.shape if network.per_position else array.shape[:1]
        answers = np.empty(shape, dtype=np.int64)
        batch = max(1, _BATCH // network.length)
        for start in range(0, len(array), batch):
            answers[start : start + batch] = self._sequences(array[start : start + batch].astype(np.int64))
        return answers

    def labels_of_inputs(self, inputs: Int[np.ndarray, "items inputs"]) -> Int[np.ndarray, " items"]:
        """Labels of a network without attention from its raw inputs, one column each."""
        answers = np.empty(len(inputs), dtype=np.int64)
        for start in range(0, len(inputs), _BATCH):
            state = self._linear(self.network.embed, inputs[start : start + _BATCH].astype(self.numbers))
            _run(self._after, state)
            answers[start : start + _BATCH] = self._read(state)
        return answers

    def _sequences(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        network = self.network
        at = network.attention_index
        rows, length = tokens.shape
        pairs = tokens * length + np.arange(length)
        distinct, inverse = np.unique(pairs, return_inverse=True)
        states = self._linear(network.embed, np.stack([distinct // length, distinct % length], axis=1))
        _run(self._before, states)
        inverse = inverse.reshape(rows, length)
        if at is None:
            mixed = np.zeros((rows, len(network.channels)), dtype=self.numbers)
        else:
            attention = network.stages[at]
            assert isinstance(attention, Attention)
            heads = self._linear(attention.value, states)
            total = heads[inverse].sum(axis=1)
            mean = total // length if self.numbers == "int64" else total / length
            mixed = self._linear(attention.output, mean)
            broken = np.any(mean * length != total, axis=1)
            mixed[broken] = 0
        if network.per_position:
            state = (states[inverse] + mixed[:, None, :]).reshape(rows * length, -1)
        else:
            state = states[inverse[:, -1]] + mixed
        state = np.ascontiguousarray(state)
        _run(self._after, state)
        answers = self._read(state)
        if network.per_position:
            answers = answers.reshape(rows, length)
        if at is not None:
            answers[broken] = -1
        return answers

    def _linear(self, layer: Affine, x: NDArray[Any]) -> NDArray[Any]:
        """``layer`` on rows of ``x``; only for the narrow maps outside blocks."""
        y: NDArray[Any] = np.zeros((len(x), layer.outputs), dtype=self.numbers) + layer.bias.astype(self.numbers)
        for r, c, w in zip(layer.row.tolist(), layer.column.tolist(), layer.weight.tolist(), strict=True):
            y[:, r] += x[:, c] * w
        return y

    def _read(self, state: NDArray[Any]) -> NDArray[np.int64]:
        out = self._linear(self.network.read, state)[:, 0].astype(np.int64)
        unit = self.network.unit
        labels: NDArray[np.int64] = np.where((out % unit == 0) & (out >= 0), out // unit, -1)
        return labels


def _run(program: _Program, state: NDArray[Any]) -> None:
    """Apply all blocks to every row of ``state``, in place; rows are shared out to as many threads as may run here."""
    threads = min(_threads(), max(1, len(state) // _ROWS_A_THREAD))
    shares = np.array_split(state, threads) if threads > 1 else [state]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda share: _run_rows(program, share), shares))


def _threads() -> int:
    """Processors this process may use, at most ``OMP_NUM_THREADS`` where that is set."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return min(len(os.sched_getaffinity(0)), int(wanted) if wanted.isdigit() and int(wanted) > 0 else 64)


def _run_rows(program: _Program, state: NDArray[Any]) -> None:
    widest = int(max(program.outputs.max(initial=1), state.shape[1]))
    _apply(
        program.last,
        program.outputs,
        program.bias_start,
        program.column_start,
        program.bias,
        program.bias_row,
        program.pointer,
        program.row,
        program.weight,
        program.live,
        program.live_start,
        np.zeros((2, widest), dtype=state.dtype),
        state,
    )


@numba.njit(cache=True, nogil=True)
@no_type_check
def _apply(
    last, outputs, bias_start, column_start, bias, bias_row, pointer, row, weight, live, live_start, scratch, state
):
    for item in range(state.shape[0]):
        now = state[item]
        source, turn = now, 0
        for layer in range(last.shape[0]):
            pointers = pointer[column_start[layer] :]
            target = scratch[turn]
            if last[layer]:
                target = now
            else:
                for r in range(outputs[layer]):
                    target[r] = 0
            for k in range(bias_start[layer], bias_start[layer + 1]):
                target[bias_row[k]] += bias[k]
            for k in range(live_start[layer], live_start[layer + 1]):
                column = live[k]
                x = source[column]
                if x != 0:
                    for e in range(pointers[column], pointers[column + 1]):
                        target[row[e]] += weight[e] * x
            if last[layer]:
                source = now
            else:
                for r in range(outputs[layer]):
                    if target[r] < 0:
                        target[r] = 0
                source = target
                turn = 1 - turn
