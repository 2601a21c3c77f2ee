"""One block of the static range proof: neurons grouped by their variables, each group evaluated where it suffices.

A group over one variable is piecewise linear in it and is bounded exactly at its breakpoints; a group over small
variables is enumerated; anything else is bounded by intervals.  Called by `static_range`, which follows the channels
from block to block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memcap.exact.abstract_values import GRID, Ints, Points, Rows, Value, Variables, crossings, stack
from memcap.exact.affine import Affine, integers

Interval = tuple[int, int]
Note = Callable[..., None]
"""Called with a layer's name and magnitudes that its partial sums can reach."""

_ENTRIES = 2**22
"""Entries of a layer's values held at once."""


@dataclass
class _Sum:
    """Contributions of one group to the outputs of a layer, at the group's points."""

    total: Ints
    rise: Ints
    fall: Ints


@dataclass(frozen=True)
class Piece:
    """What one group of variables contributes to one output.

    Attributes:
        low, high, rise, fall: range of the contribution, and of its positive and negative summands.
        own: the residual channel itself is included.
        over: the variables; with ``table`` (value at every grid point) or ``line`` (slope, offset) when it is known.
    """

    low: int
    high: int
    rise: int
    fall: int
    own: bool
    over: tuple[int, ...] = ()
    table: Ints | None = None
    line: tuple[int, int] | None = None


def dependencies(layers: list[Affine], inputs: list[Value]) -> list[list[frozenset[int]]]:
    """The variables that every input and every neuron of the hidden layers depends on."""
    sets = [[frozenset(v.variables) for v in inputs]]
    for layer in layers[:-1]:
        found: list[set[int]] = [set() for _ in range(layer.outputs)]
        for r, c in zip(layer.row.tolist(), layer.column.tolist(), strict=True):
            found[r] |= sets[-1][c]
        sets.append([frozenset(s) for s in found])
    return sets


def bounded_exactly(variables: Variables, over: frozenset[int]) -> bool:
    """Whether functions of these variables are bounded exactly: one variable, or few enough combinations."""
    return len(over) == 1 or variables.enumerable(over)


class BlockRange:
    """One block: which variables every neuron depends on, and the groups that are evaluated together."""

    def __init__(
        self, variables: Variables, note: Note, names: list[str], layers: list[Affine], inputs: list[Value]
    ) -> None:
        self.variables, self.note = variables, note
        self.names, self.layers, self.inputs = names, layers, inputs
        self.sets = dependencies(layers, inputs)
        self.low: list[list[int]] = [[v.low for v in inputs]] + [[0] * m.outputs for m in layers[:-1]]
        self.high: list[list[int]] = [[v.high for v in inputs]] + [[0] * m.outputs for m in layers[:-1]]
        last = layers[-1]
        used = {self.sets[-1][c] for c in set(last.column.tolist())}
        everything = {s for sets in self.sets[1:] for s in sets} | used
        self.groups = self._maximal([s for s in everything if bounded_exactly(self.variables, s)])

    def _maximal(self, sets: list[frozenset[int]]) -> list[frozenset[int]]:
        kept: list[frozenset[int]] = []
        for s in sorted(sets, key=lambda s: (-len(s), sorted(s))):
            if not any(s <= k for k in kept):
                kept.append(s)
        return kept

    def group_of(self, variables: frozenset[int]) -> int | None:
        """The first group whose variables cover ``variables``, or None: intervals."""
        return next((g for g, group in enumerate(self.groups) if variables <= group), None)

    def contributions(self, own: dict[int, Value]) -> dict[int, list[Piece]]:
        """Output -> what every group contributes to it; ``own`` are the residual channels of these outputs."""
        last = self.layers[-1]
        owner = [self.group_of(s) for s in self.sets[-1]]
        sources: dict[int, dict[int, set[int]]] = {o: {} for o in own}  # output -> group -> inputs
        loose: dict[int, list[tuple[int, int]]] = {o: [] for o in own}  # output -> (input, weight) without a group
        for r, c, w in zip(last.row.tolist(), last.column.tolist(), last.weight, strict=True):
            g = owner[c]
            if g is None:
                loose[r].append((c, int(w)))
            else:
                sources[r].setdefault(g, set()).add(c)
        pieces: dict[int, list[Piece]] = {o: [] for o in own}
        placed: set[int] = set()  # outputs whose residual channel is already part of a piece
        for g, group in enumerate(self.groups):
            outputs = [o for o in own if g in sources[o]]
            mine = {o for o in outputs if own[o].variables and set(own[o].variables) <= group} - placed
            placed |= mine
            for o, piece in self._evaluate(g, owner, {o: own[o] if o in mine else None for o in outputs}).items():
                pieces[o].append(piece)
        self._intervals()
        for o, terms in loose.items():
            for c, w in terms:
                ends = (w * self.low[-1][c], w * self.high[-1][c])
                low, high = min(ends), max(ends)
                pieces[o].append(Piece(low, high, max(high, 0), max(-low, 0), False))
        return pieces

    def _intervals(self) -> None:
        """Ranges of the neurons that no group covers, layer by layer, from the ranges of what they read."""
        for depth, layer in enumerate(self.layers[:-1]):
            wanted = {i for i, s in enumerate(self.sets[depth + 1]) if self.group_of(s) is None}
            rise = {i: max(int(layer.bias[i]), 0) for i in wanted}
            fall = {i: max(-int(layer.bias[i]), 0) for i in wanted}
            for r, c, w in zip(layer.row.tolist(), layer.column.tolist(), layer.weight, strict=True):
                if r in wanted:
                    ends = (int(w) * self.low[depth][c], int(w) * self.high[depth][c])
                    rise[r] += max(*ends, 0)
                    fall[r] += max(-ends[0], -ends[1], 0)
            for i in wanted:
                self.low[depth + 1][i], self.high[depth + 1][i] = self._relu_range(layer, depth, i)
                self.note(self.names[depth], rise[i], fall[i])

    def _relu_range(self, layer: Affine, depth: int, output: int) -> Interval:
        low = high = int(layer.bias[output])
        for k in np.flatnonzero(layer.row == output).tolist():
            w, c = int(layer.weight[k]), int(layer.column[k])
            ends = (w * self.low[depth][c], w * self.high[depth][c])
            low, high = low + min(ends), high + max(ends)
        return max(low, 0), max(high, 0)

    def _evaluate(self, g: int, owner: list[int | None], own: dict[int, Value | None]) -> dict[int, Piece]:
        """Evaluate all neurons of group ``g`` at points that suffice, and collect what they add to the outputs."""
        group = self.groups[g]
        members = [[i for i, s in enumerate(sets) if s <= group] for sets in self.sets]
        hidden = [self._restrict(layer, members[d + 1], members[d]) for d, layer in enumerate(self.layers[:-1])]
        mine = [i for i in members[-1] if owner[i] == g]
        outputs = list(own)
        final = self._restrict(self.layers[-1], outputs, mine, bias=False)
        place = np.searchsorted(members[-1], mine)
        grid = self.variables.enumerable(group)
        points = self.variables.grid(group) if grid else self._breakpoints(next(iter(group)), members[0], hidden, own)
        count = len(next(iter(points.values()))) if points else 1
        widest = max([len(m) for m in members] + [len(outputs), 1])
        step = max(1, _ENTRIES // widest)
        parts: list[_Sum] = []
        for start in range(0, count, step):
            some = {v: x[start : start + step] for v, x in points.items()}
            n = min(step, count - start)
            x = stack([self.inputs[i].at(self.variables, some, n) for i in members[0]], n)
            for depth, layer in enumerate(hidden):
                rise, fall = layer.parts(x)
                if rise.size:
                    self.note(self.names[depth], int(rise.max()), int(fall.max()))
                x = np.maximum(rise - fall, 0)
                self._widen(depth + 1, members[depth + 1], x, first=start == 0)
            rise, fall = final.parts(x[place])
            for k, o in enumerate(outputs):
                base = own[o]
                if base is not None:
                    extra = base.at(self.variables, some, n)
                    rise, fall = _with(rise, k, np.maximum(extra, 0)), _with(fall, k, np.maximum(-extra, 0))
            parts.append(_Sum(rise - fall, rise, fall))
        whole = _Sum(*(np.concatenate([getattr(p, f) for p in parts], axis=1) for f in ("total", "rise", "fall")))
        return {o: self._piece(group, grid, points, whole, k, own[o] is not None) for k, o in enumerate(outputs)}

    def _piece(self, group: frozenset[int], grid: bool, points: Points, s: _Sum, k: int, own: bool) -> Piece:
        total = s.total[k]
        over = tuple(sorted(group))
        line = None
        if not grid and len(total) > 1:  # a straight line over one large variable is kept as one
            x = points[over[0]]
            x0, x1, y0 = int(x[0]), int(x[-1]), int(total[0])
            slope, rest = divmod(int(total[-1]) - y0, x1 - x0)
            if rest == 0 and all(int(y) - y0 == slope * (int(v) - x0) for v, y in zip(x, total, strict=True)):
                line = (slope, y0 - slope * x0)
        return Piece(
            int(total.min()), int(total.max()), int(s.rise[k].max()), int(s.fall[k].max()),
            own, over, total if grid and total.size <= GRID else None, line,
        )  # fmt: skip

    def _widen(self, depth: int, members: list[int], x: Ints, *, first: bool) -> None:
        for row, i in enumerate(members):
            low, high = int(x[row].min()), int(x[row].max())
            self.low[depth][i] = low if first else min(low, self.low[depth][i])
            self.high[depth][i] = high if first else max(high, self.high[depth][i])

    def _breakpoints(
        self, variable: int, inputs: list[int], hidden: list[Rows], own: dict[int, Value | None]
    ) -> Points:
        """Points of one variable between which every neuron of the group is linear on the integers."""
        low, high = self.variables.low[variable], self.variables.high[variable]
        x = _sorted([low, high])
        lines = [self.inputs[i] for i in inputs] + [v for v in own.values() if v is not None]
        z = stack([v.at(self.variables, {variable: x}, len(x)) for v in lines], len(x))
        x = _sorted([*x.tolist(), *crossings(x, z)])
        for depth in range(len(hidden)):
            found: list[int] = []
            widest = max(len(layer.bias) for layer in hidden) or 1
            step = max(2, _ENTRIES // widest)
            for start in range(0, max(len(x) - 1, 1), step - 1):
                some = x[start : start + step]
                y = stack([self.inputs[i].at(self.variables, {variable: some}, len(some)) for i in inputs], len(some))
                for k, layer in enumerate(hidden[: depth + 1]):
                    rise, fall = layer.parts(np.maximum(y, 0) if k else y)
                    y = rise - fall
                if y.size:
                    found += crossings(some, y)
            x = _sorted([*x.tolist(), *found])
        return {variable: x}

    def _restrict(self, layer: Affine, rows: list[int], columns: list[int], *, bias: bool = True) -> Rows:
        to_row = {r: k for k, r in enumerate(rows)}
        to_column = {c: k for k, c in enumerate(columns)}
        keep = [
            k
            for k, (r, c) in enumerate(zip(layer.row.tolist(), layer.column.tolist(), strict=True))
            if r in to_row and c in to_column
        ]
        kept: NDArray[np.int64] = np.array(keep, dtype=np.int64)
        return Rows(
            len(rows),
            np.array([to_row[int(r)] for r in layer.row[kept]], dtype=np.int64),
            np.array([to_column[int(c)] for c in layer.column[kept]], dtype=np.int64),
            layer.weight[kept],
            layer.bias[rows] if bias else np.zeros(len(rows), dtype=np.int64),
        )


def _sorted(values: list[int]) -> Ints:
    return integers(sorted(set(values)))


def _with(matrix: Ints, row: int, extra: Ints) -> Ints:
    """``matrix`` with ``extra`` added to one row, in Python integers when int64 could overflow."""
    reach = [float(np.abs(part.astype(np.float64)).max(initial=0.0)) for part in (matrix[row], extra)]
    if matrix.dtype != object and (extra.dtype == object or sum(reach) > 2.0**62):
        matrix = matrix.astype(object)
    matrix[row] = matrix[row] + extra
    return matrix
