"""What is known about a channel before any item is seen: a function of a few integer variables with known ranges.

Parts of the static range proof (`memcap.exact.static_range`): variables, channel values over them, and finite sets of
points that are enough to bound a piecewise linear function on all integers of a range.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memcap.exact.affine import INT64_MAX, integers

Ints = NDArray[Any]
Points = dict[int, Ints]
"""Variable -> its value at every point; all arrays of one length."""

SMALL = 4096
"""Variables with at most this many values are enumerated."""
GRID = 2**17
"""At most this many points are enumerated over several small variables."""


@dataclass
class Variables:
    """Integer variables and their inclusive ranges."""

    low: list[int] = field(default_factory=list)
    high: list[int] = field(default_factory=list)

    def fresh(self, low: int, high: int) -> int:
        self.low.append(low)
        self.high.append(high)
        return len(self.low) - 1

    def size(self, variable: int) -> int:
        return self.high[variable] - self.low[variable] + 1

    def enumerable(self, variables: Iterable[int]) -> bool:
        """Whether all combinations of values can be listed."""
        sizes = [self.size(v) for v in variables]
        return all(s <= SMALL for s in sizes) and math.prod(sizes) <= GRID

    def grid(self, variables: Iterable[int]) -> Points:
        """Every combination of values of small variables, the first variable slowest."""
        ordered = sorted(variables)
        axes = [np.arange(self.low[v], self.high[v] + 1, dtype=np.int64) for v in ordered]
        mesh = np.meshgrid(*axes, indexing="ij") if axes else []
        return {v: m.reshape(-1) for v, m in zip(ordered, mesh, strict=True)}


@dataclass(frozen=True)
class Value:
    """A channel as a function of variables: ``slope * variable + offset``, or a table over a grid of small variables.

    Attributes:
        variables: sorted; none for a constant.
        slope, offset: when ``table`` is None (a constant has slope 0).
        table: value at every point of ``Variables.grid(variables)``.
        low, high: its range.
    """

    variables: tuple[int, ...]
    slope: int
    offset: int
    table: Ints | None
    low: int
    high: int

    @classmethod
    def constant(cls, value: int) -> Value:
        return cls((), 0, value, None, value, value)

    @classmethod
    def linear(cls, variables: Variables, variable: int, slope: int = 1, offset: int = 0) -> Value:
        ends = [slope * variables.low[variable] + offset, slope * variables.high[variable] + offset]
        if slope == 0 or ends[0] == ends[1]:
            return cls.constant(ends[0])
        return cls((variable,), slope, offset, None, min(ends), max(ends))

    @classmethod
    def unknown(cls, variables: Variables, low: int, high: int) -> Value:
        """Anything in [low, high], as a variable of its own."""
        return cls.constant(low) if low == high else cls.linear(variables, variables.fresh(0, high - low), 1, low)

    @classmethod
    def tabulated(cls, over: tuple[int, ...], table: Ints) -> Value:
        low, high = int(table.min()), int(table.max())
        return cls.constant(low) if low == high else cls(over, 0, 0, table, low, high)

    def shifted(self, by: int) -> Value:
        table = None if self.table is None else add(self.table, integers([by]))
        return replace(self, offset=self.offset + by, table=table, low=self.low + by, high=self.high + by)

    def at(self, variables: Variables, points: Points, count: int) -> Ints:
        """The value at every one of ``count`` points."""
        if not self.variables:
            return np.repeat(integers([self.offset]), count)
        if self.table is None:
            x = points[self.variables[0]]
            reach = abs(self.slope) * max(abs(int(x.max())), abs(int(x.min())), 1) + abs(self.offset)
            x = x if reach <= INT64_MAX else x.astype(object)
            result: Ints = x * self.slope + self.offset
            return result
        index = np.zeros(count, dtype=np.int64)
        for v in self.variables:
            index = index * variables.size(v) + (points[v].astype(np.int64) - variables.low[v])
        return self.table[index]


def stack(rows: list[Ints], count: int) -> Ints:
    """Rows of integers as one matrix, int64 where all of them are."""
    wide = any(r.dtype == object for r in rows)
    matrix = np.zeros((len(rows), count), dtype=object if wide else np.int64)
    for i, r in enumerate(rows):
        matrix[i] = r
    return matrix


@dataclass(frozen=True)
class Rows:
    """Some rows and columns of an affine map."""

    outputs: int
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    weight: Ints
    bias: Ints

    def parts(self, x: Ints) -> tuple[Ints, Ints]:
        """Sums of the positive and of the negated negative summands of every output, bias included; both >= 0."""
        up, down = np.maximum(x, 0), np.maximum(-x, 0)
        signed = bool((down != 0).any())
        rise = self._sum(self.weight > 0, self.weight, up)
        fall = self._sum(self.weight < 0, -self.weight, up)
        if signed:
            rise = add(rise, self._sum(self.weight < 0, -self.weight, down))
            fall = add(fall, self._sum(self.weight > 0, self.weight, down))
        bias = self.bias[:, None]
        return add(rise, np.maximum(bias, 0)), add(fall, np.maximum(-bias, 0))

    def _sum(self, keep: Ints, weight: Ints, x: Ints) -> Ints:
        kept = np.flatnonzero(np.asarray(keep, dtype=bool))
        row, column, weight = self.row[kept], self.column[kept], weight[kept]
        wide = x.dtype == object or weight.dtype == object
        if not wide and len(kept):
            peak = x.max(axis=1, initial=0).astype(np.float64)
            reach = np.bincount(row, np.abs(weight.astype(np.float64)) * peak[column], minlength=self.outputs)
            wide = float(reach.max(initial=0.0)) >= 2.0**62
        if not wide:
            from scipy.sparse import csr_array

            matrix = csr_array((weight, (row, column)), shape=(self.outputs, x.shape[0]))
            product: Ints = matrix @ x
            return product
        total = np.zeros((self.outputs, x.shape[1]), dtype=object)
        x = x.astype(object)
        for r, c, w in zip(row, column, weight, strict=True):
            total[r] += x[c] * int(w)
        return total


def add(a: Ints, b: Ints) -> Ints:
    """``a + b`` in int64 where no sum can overflow, else in Python integers."""
    if a.dtype != object and b.dtype != object:
        top = float(np.abs(a.astype(np.float64)).max(initial=0)) + float(np.abs(b.astype(np.float64)).max(initial=0))
        if top < 2.0**62:
            result: Ints = a + b
            return result
    wide: Ints = a.astype(object) + b.astype(object)
    return wide


def crossings(x: Ints, z: Ints) -> list[int]:
    """Integers beside every zero of the rows of ``z``, each linear between neighbouring points of the sorted ``x``."""
    left, right = z[:, :-1], z[:, 1:]
    change = np.asarray(((left < 0) & (right > 0)) | ((left > 0) & (right < 0)), dtype=bool)
    found: set[int] = set()
    for r, c in zip(*np.nonzero(change), strict=True):
        x0, x1, z0, z1 = int(x[c]), int(x[c + 1]), int(z[r, c]), int(z[r, c + 1])
        if x1 - x0 > 1:
            below = x0 + (-z0 * (x1 - x0)) // (z1 - z0)
            found.update((below, below + 1))
    return [v for v in found if int(x[0]) <= v <= int(x[-1])]
