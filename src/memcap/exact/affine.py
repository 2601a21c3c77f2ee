"""An affine map with integer entries: the only thing that carries numbers in memcap's networks.

The matrix is sparse (coordinate form, row-major, no stored zeros).  Entries are int64, or Python integers in an object
array where int64 is too narrow.  Nothing here is floating point.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from memcap.errors import ConfigurationError

INT64_MAX = 2**63 - 1


def integers(values: Sequence[int] | NDArray[np.generic]) -> NDArray[np.generic]:
    """``values`` as an int64 array where they fit, else as an object array of Python ints; floats are refused."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu" and values.dtype != np.uint64:
        return values.astype(np.int64, copy=False)
    whole = [int(v) for v in values]
    if any(int(v) != v for v in values):
        raise ConfigurationError("integer entries expected, got a fraction")
    if all(-INT64_MAX <= v <= INT64_MAX for v in whole):
        return np.array(whole, dtype=np.int64)
    wide = np.empty(len(whole), dtype=object)
    wide[:] = whole
    return wide


@dataclass(frozen=True, eq=False)
class Affine:
    """``y = W x + b`` with integer ``W`` (outputs x inputs, sparse) and integer ``b`` (outputs).

    Attributes:
        outputs, inputs: shape of the matrix.
        row, column: int64 positions of the non-zero entries, sorted by (row, column), no position twice.
        weight: the non-zero entries, int64 or object (Python ints).
        bias: all ``outputs`` biases, zeros included, int64 or object.
    """

    outputs: int
    inputs: int
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    weight: NDArray[np.generic]
    bias: NDArray[np.generic]

    @classmethod
    def from_entries(
        cls,
        outputs: int,
        inputs: int,
        entries: Iterable[tuple[int, int, int]],
        bias: Iterable[tuple[int, int]] | Sequence[int] | NDArray[np.generic] = (),
    ) -> Affine:
        """Build from ``(row, column, weight)`` triples (zeros dropped, repeats refused) and a dense bias or pairs.

        >>> Affine.from_entries(1, 2, [(0, 1, 5)], [3]).nonzero
        2
        """
        triples = sorted((int(r), int(c), int(w)) for r, c, w in entries if int(w) != 0)
        rows = np.array([t[0] for t in triples], dtype=np.int64)
        columns = np.array([t[1] for t in triples], dtype=np.int64)
        return cls.from_arrays(outputs, inputs, rows, columns, integers([t[2] for t in triples]), bias)

    @classmethod
    def from_arrays(
        cls,
        outputs: int,
        inputs: int,
        row: NDArray[np.int64],
        column: NDArray[np.int64],
        weight: NDArray[np.generic],
        bias: Iterable[tuple[int, int]] | Sequence[int] | NDArray[np.generic] = (),
    ) -> Affine:
        """Build from arrays in any order; zeros are dropped and a repeated position is refused."""
        keep = np.array([w != 0 for w in weight], dtype=bool) if weight.dtype == object else weight != 0
        row, column, weight = row[keep], column[keep], weight[keep]
        order = np.lexsort((column, row))
        row, column, weight = row[order].astype(np.int64), column[order].astype(np.int64), weight[order]
        if len(row) and (row.min() < 0 or row.max() >= outputs or column.min() < 0 or column.max() >= inputs):
            raise ConfigurationError(f"an entry lies outside the {outputs} x {inputs} matrix")
        if len(row) > 1 and bool(np.any((np.diff(row) == 0) & (np.diff(column) == 0))):
            raise ConfigurationError("the same matrix position is given twice")
        dense_bias = [0] * outputs
        pairs = list(bias)
        if pairs and isinstance(pairs[0], tuple):
            for position, value in pairs:
                dense_bias[position] += int(value)
        elif pairs:
            if len(pairs) != outputs:
                raise ConfigurationError(f"expected {outputs} biases, got {len(pairs)}")
            dense_bias = [int(v) for v in pairs]
        return cls(outputs, inputs, row, column, integers(weight), integers(dense_bias))

    @property
    def nonzero(self) -> int:
        """Non-zero weights and biases."""
        return len(self.weight) + int(sum(1 for b in self.bias if b != 0))

    @property
    def dense(self) -> int:
        """Entries of the materialised matrix and bias."""
        return self.outputs * self.inputs + self.outputs

    @cached_property
    def bits(self) -> int:
        """Bits needed to write every non-zero entry, sign included."""
        return sum(int(abs(int(v))).bit_length() + 1 for v in [*self.weight, *self.bias] if v != 0)

    @property
    def largest(self) -> int:
        """Largest magnitude of any entry."""
        return max((abs(int(v)) for v in [*self.weight, *self.bias]), default=0)

    def to_dense(self) -> NDArray[np.generic]:
        """The matrix (outputs x inputs) with zeros materialised, int64 or object."""
        matrix = np.zeros((self.outputs, self.inputs), dtype=self.weight.dtype)
        matrix[self.row, self.column] = self.weight
        return matrix

    def same_as(self, other: Affine) -> bool:
        """Equality of every entry, zeros included."""
        return (
            (self.outputs, self.inputs) == (other.outputs, other.inputs)
            and np.array_equal(self.row, other.row)
            and np.array_equal(self.column, other.column)
            and np.array_equal(self.weight, other.weight)
            and np.array_equal(self.bias, other.bias)
        )
