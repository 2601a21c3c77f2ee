"""Two engines that apply a network's stages to a batch of integer states, from the stored entries alone.

`Int64Engine` multiplies sparse int64 matrices and proves, for the batch at hand and before it multiplies, that no
partial sum in any order leaves int64.  `ObjectEngine` computes with Python integers of any size and needs no proof.
Neither knows how a network was constructed.  Called by `evaluate`; a state is an array (channels, batch).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from memcap.exact.affine import INT64_MAX, Affine
from memcap.exact.network import Block

State = NDArray[Any]
_SAFE = 1.0 + 2.0**-20
"""Float bounds are inflated by this: it covers every rounding of a sum of non-negative terms below a billion terms."""


def _sound(total: float) -> float:
    """An upper bound of a sum of non-negative integers from its float64 value: below 2^53 that value is exact."""
    return total if total < 2.0**53 else total * _SAFE


class Overflow(ArithmeticError):
    """A partial sum could leave int64 on this batch; the object engine must be used."""


class Audit:
    """Upper bounds, per layer, of the largest magnitude of any partial sum in any order, over every row evaluated.

    Attributes:
        limit: the exact integers reach to this magnitude (2^53, 2^24, 2^63 - 1); bounds near it are refined row by row.
        bound: layer name -> bound so far.
        after_attention: smallest and largest value so far of every channel after the attention, None without one.
    """

    def __init__(self, limit: int = INT64_MAX) -> None:
        self.limit = limit
        self.bound: dict[str, int] = {}
        self.after_attention: list[tuple[int, int]] | None = None

    def note(self, name: str, value: float | int) -> None:
        self.bound[name] = max(self.bound.get(name, 0), math.ceil(value))

    def note_after_attention(self, state: State) -> None:
        found = list(zip(state.min(axis=1).tolist(), state.max(axis=1).tolist(), strict=True))
        if self.after_attention is not None:
            pairs = zip(self.after_attention, found, strict=True)
            found = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs]
        self.after_attention = found


class _Sparse:
    """One affine map prepared for int64: matrix, its positive and negative parts and magnitudes in float64."""

    def __init__(self, layer: Affine) -> None:
        shape = (layer.outputs, layer.inputs)
        place = (layer.row.astype(np.int32), layer.column.astype(np.int32))
        self.matrix = csr_array((layer.weight.astype(np.int64), place), shape=shape)
        real = layer.weight.astype(np.float64)
        self.magnitude = csr_array((np.abs(real), place), shape=shape)
        self.rising = csr_array((np.maximum(real, 0), place), shape=shape)
        self.falling = csr_array((np.maximum(-real, 0), place), shape=shape)
        self.bias = layer.bias.astype(np.int64)[:, None]
        self.has_bias = bool(np.any(self.bias != 0))
        self.bias_magnitude = np.abs(layer.bias.astype(np.float64))


def _peak(x: State) -> NDArray[np.float64]:
    """Largest magnitude per channel over the batch."""
    if x.shape[1] == 0:
        return np.zeros(x.shape[0])
    peak: NDArray[np.float64] = np.maximum(x.max(axis=1).astype(np.float64), -x.min(axis=1).astype(np.float64))
    return peak


class Int64Engine:
    """int64 sparse products; raises `Overflow` before a batch whose partial sums are not proved to fit."""

    name = "int64"

    def __init__(self, audit: Audit | None = None) -> None:
        self._prepared: dict[int, _Sparse] = {}
        self.audit = audit

    def state(self, columns: Sequence[State]) -> State:
        return np.stack([np.asarray(c).astype(np.int64) for c in columns])

    def linear(self, name: str, layer: Affine, x: State, base: State | None = None) -> State:
        """``layer(x)``, plus ``base`` when given; ``base`` counts as one more summand in the proof."""
        prepared = self._prepared.get(id(layer))
        if prepared is None:
            prepared = self._prepared[id(layer)] = _Sparse(layer)
        bounds = prepared.magnitude @ _peak(x) + prepared.bias_magnitude
        if base is not None:
            bounds = bounds + _peak(base)
        bound = _sound(float(bounds.max(initial=0.0)))
        limit = INT64_MAX if self.audit is None else self.audit.limit
        if bound > limit / 16:  # too coarse near the limit: worst subset sum of every single row instead
            bound = self._worst(prepared, x, base)
        if bound >= 2.0**63:
            raise Overflow(name)
        if self.audit is not None:
            self.audit.note(name, bound)
        y: State = prepared.matrix @ x
        if prepared.has_bias:
            y += prepared.bias
        if base is not None:
            y += base
        return y

    @staticmethod
    def _worst(layer: _Sparse, x: State, base: State | None) -> float:
        """Largest sum of the positive, or of the negative, summands of any output of any row."""
        real = x.astype(np.float64)
        up, down = np.maximum(real, 0), np.maximum(-real, 0)
        rise = layer.rising @ up + layer.falling @ down + np.maximum(layer.bias, 0)
        fall = layer.rising @ down + layer.falling @ up + np.maximum(-layer.bias.astype(np.float64), 0)
        if base is not None:
            rise += np.maximum(base, 0)
            fall += np.maximum(-base.astype(np.float64), 0)
        return _sound(max(float(rise.max(initial=0.0)), float(fall.max(initial=0.0))))


class ObjectEngine:
    """Python integers in object arrays, one stored entry at a time: the definition of what a network computes."""

    name = "object"

    def __init__(self) -> None:
        self._prepared: dict[int, list[tuple[int, list[tuple[int, int]]]]] = {}

    def state(self, columns: Sequence[State]) -> State:
        return np.stack([np.asarray(c).astype(object) for c in columns])

    def linear(self, name: str, layer: Affine, x: State, base: State | None = None) -> State:
        """``layer(x)``, plus ``base`` when given."""
        rows = self._prepared.get(id(layer))
        if rows is None:
            rows = [(int(b), []) for b in layer.bias]
            for r, c, w in zip(layer.row, layer.column, layer.weight, strict=True):
                rows[int(r)][1].append((int(c), int(w)))
            self._prepared[id(layer)] = rows
        y = np.zeros((layer.outputs, x.shape[1]), dtype=object) if base is None else base.copy()
        for r, (bias, terms) in enumerate(rows):
            total = y[r] if base is not None else None
            for c, w in terms:
                term = x[c] if w == 1 else x[c] * w
                total = term if total is None else total + term
            if bias:
                total = bias if total is None else total + bias
            if total is not None:
                y[r] = total
        return y


Engine = Int64Engine | ObjectEngine


def apply_block(engine: Engine, number: int, block: Block, state: State) -> State:
    """The state after one residual block."""
    hidden = state
    for depth, layer in enumerate(block.layers):
        last = depth == len(block.layers) - 1
        hidden = engine.linear(f"{number:04d}.{block.name}.{depth}", layer, hidden, state if last else None)
        if not last:
            hidden = np.maximum(hidden, 0)
    return hidden
