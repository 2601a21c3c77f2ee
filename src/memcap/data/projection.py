"""Real vectors as integers: a fixed-point grid and one random integer projection, checked to keep tokens apart.

The paper's tokens are points of R^d, token-wise (r, delta)-separated: norms at most r, distinct tokens at least delta
apart.  On a grid of step 2^-s with ``sqrt(d) 2^-s < delta`` distinct tokens stay distinct, and a random integer vector
``u`` sends them to distinct integers ``u . X + offset``: d weights, once, in front of everything else.

Source: the separation condition is that of Kajitsuka & Sato (arXiv 2409.17677); the integer form is derived here,
docs/theory/tokens.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int64
from scipy.spatial import cKDTree

from memcap.data.origin import Origin
from memcap.errors import DataError, DomainError, FormatError, HashUnlucky
from memcap.random import stream

_TRIES = 40
WIDEST_GRID = 2**40
"""Grid coordinates stay below this in magnitude."""
_WIDEST_SCALE = 1000
"""A grid step is 2^-1000 to 2^1000, so that it and its inverse are ordinary float64 numbers."""


@dataclass(frozen=True)
class VectorProjection:
    """Fixed-point projection of vectors to integers in [0, ``size``).

    Attributes:
        scale_bits: s: coordinates are rounded to multiples of 2^-s.
        weights: u, one integer a coordinate.
        offset: added, so that the integers of the data start at 0.
        size: integers of the data lie in [0, size).
        separation: smallest distance between distinct tokens of the data (delta, measured).
        radius: largest norm of a token of the data (r, measured).
    """

    scale_bits: int
    weights: tuple[int, ...]
    offset: int
    size: int
    separation: float
    radius: float

    @property
    def dimension(self) -> int:
        """Coordinates of a vector, d."""
        return len(self.weights)

    def project(self, vectors: Float[np.ndarray, "tokens dimension"]) -> Int64[np.ndarray, " tokens"]:
        """The integer of every vector.

        Raises:
            DomainError: for a vector of another dimension, not finite, or projected outside [0, size).
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension:
            raise DomainError(
                f"expected vectors of {self.dimension} coordinates, got an array of shape {vectors.shape}"
            )
        if not np.isfinite(vectors).all():
            raise DomainError("a vector has a coordinate that is not finite")
        if vectors.size and float(np.abs(vectors).max()) * 2.0**self.scale_bits >= WIDEST_GRID:
            raise DomainError(f"a vector lies far outside the radius {self.radius:.4g} of the data")
        grid = np.rint(vectors.astype(np.float64) * 2.0**self.scale_bits).astype(np.int64)
        numbers = grid @ np.array(self.weights, dtype=np.int64) + self.offset
        bad = np.flatnonzero((numbers < 0) | (numbers >= self.size))
        if len(bad):
            raise DomainError(
                f"vector {int(bad[0]) + 1} is outside the region the data fill; it is no token of the data"
            )
        return numbers

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "scale_bits": self.scale_bits,
            "weights": list(self.weights),
            "offset": self.offset,
            "size": self.size,
            "separation": self.separation,
            "radius": self.radius,
        }

    @classmethod
    def from_json(cls, record: object) -> VectorProjection:
        """The projection that `to_json` wrote.

        Raises:
            FormatError: on missing or unknown keys or wrong types.
        """
        wanted = {"scale_bits", "weights", "offset", "size", "separation", "radius"}
        if not isinstance(record, dict) or set(record) != wanted:
            raise FormatError(f"encoding: a vector projection has the keys {', '.join(sorted(wanted))}")
        weights = record["weights"]
        whole = [
            record["scale_bits"],
            record["offset"],
            record["size"],
            *(weights if isinstance(weights, list) else [""]),
        ]
        if not all(isinstance(v, int) and not isinstance(v, bool) for v in whole):
            raise FormatError("encoding: a vector projection has a number that is not an integer")
        if abs(record["scale_bits"]) > _WIDEST_SCALE:
            raise FormatError(f"encoding: scale_bits must be within {_WIDEST_SCALE}, got {record['scale_bits']}")
        return cls(
            record["scale_bits"],
            tuple(weights),
            record["offset"],
            record["size"],
            float(record["separation"]),
            float(record["radius"]),
        )


def fit_projection(
    tokens: Float[np.ndarray, "tokens dimension"],
    places: list[str],
    *,
    separation: float | None = None,
    radius: float | None = None,
    seed: int = 0,
) -> VectorProjection:
    """The projection for the distinct tokens of a data set.

    Args:
        tokens: all distinct vectors.
        places: where each of them stands first, for messages.
        separation: delta the tokens are promised to keep; measured when None.
        radius: r the tokens are promised to stay within; measured when None.
        seed: of the projection weights.

    Raises:
        DataError: if tokens are closer than ``separation`` or longer than ``radius`` (it names the pair or the token),
            or so close that no grid of 2^40 points a coordinate separates them, or of a magnitude past 2^±1000.
        HashUnlucky: if no projection that was tried keeps all tokens apart.
    """
    for name, value in (("separation", separation), ("radius", radius)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise DataError(f"{name} must be a positive number, got {value}")
    count, dimension = tokens.shape
    widest = float(np.abs(tokens).max())
    exponent = max(math.frexp(widest)[1], -_WIDEST_SCALE)
    if exponent > _WIDEST_SCALE:
        raise DataError(f"coordinates reach {widest:.3g}; multiply all vectors by one constant so that they fit 1e300")
    scaled = np.ldexp(tokens, -exponent)  # at most 1 in magnitude: squares neither overflow nor all vanish
    norms = np.ldexp(np.sqrt((scaled**2).sum(axis=1)), exponent)
    longest = int(norms.argmax())
    if radius is not None and norms[longest] > radius:
        raise DataError(
            f"{places[longest]}: a token has norm {norms[longest]:.6g}, more than the radius r = {radius:.6g}"
        )
    near, pair = _closest_pair(scaled)
    closest = float(np.ldexp(near, exponent))
    where = f"{places[pair[0]]} and {places[pair[1]]}" if count > 1 else ""
    if separation is not None and closest < separation:
        raise DataError(
            f"{where}: two tokens are {closest:.6g} apart, less than the separation delta = {separation:.6g}; "
            "merge them, or give the smaller delta"
        )
    if count == 1:
        closest = max(float(norms[longest]), 1.0)
        near = math.ldexp(closest, -exponent)
    # Relative to the widest coordinate; a distance that vanishes when squared is past every grid.
    steps = math.ceil(math.log2(math.sqrt(dimension) / near)) + 1 if near > 0 else WIDEST_GRID
    if steps >= 64 or math.ldexp(widest, steps - exponent) >= WIDEST_GRID:
        apart = closest or float(np.abs(tokens[pair[0]] - tokens[pair[1]]).max())
        raise DataError(
            f"{where}: two tokens are only {apart:.3g} apart while coordinates reach {widest:.3g}; "
            "a grid that separates them has more than 2^40 points a coordinate"
        )
    scale_bits = steps - exponent
    if abs(scale_bits) > _WIDEST_SCALE:
        raise DataError(
            f"{where}: two tokens are only {closest:.3g} apart; multiply all vectors by one constant so that they are "
            "at least 1e-300 apart"
        )
    grid = np.rint(tokens * 2.0**scale_bits).astype(np.int64)
    target = max(20, 2 * math.ceil(math.log2(max(count, 2))) + 2)
    width = max(2.0, 2.0**target / max(float(np.sqrt((grid.astype(float) ** 2).sum(axis=1)).max()), 1.0))
    for attempt in range(_TRIES):
        generator = stream(seed, "vector-projection", attempt)
        high = int(min(width * 1.1**attempt, 2.0**20))
        weights = generator.integers(1, high + 1, size=dimension) * generator.choice([-1, 1], size=dimension)
        numbers = grid @ weights
        if len(np.unique(numbers)) == count:
            low = int(numbers.min())
            size = int(numbers.max()) - low + 1
            return VectorProjection(
                scale_bits, tuple(int(w) for w in weights), -low, size, closest, float(norms[longest])
            )
    raise HashUnlucky(
        f"no projection of the {count} tokens kept all apart in {_TRIES} tries (seed {seed}); try another"
    )


def _closest_pair(tokens: Float[np.ndarray, "tokens dimension"]) -> tuple[float, tuple[int, int]]:
    if len(tokens) < 2:
        return math.inf, (0, 0)
    distance, neighbour = cKDTree(tokens).query(tokens, k=2)
    first = int(distance[:, 1].argmin())
    other = next(int(n) for n in neighbour[first] if n != first)  # at distance 0 either may come first
    return float(distance[first, 1]), (first, other)


def distinct_vectors(
    vectors: Float[np.ndarray, "all dimension"], lengths: Int64[np.ndarray, " rows"]
) -> tuple[Float[np.ndarray, "tokens dimension"], list[str]]:
    """Distinct vectors (bit for bit, -0.0 as 0.0) and the row and position where each stands first."""
    plain = np.ascontiguousarray(vectors.astype(np.float64) + 0.0)
    _, first = np.unique(plain.view(np.dtype((np.void, 8 * plain.shape[1]))).ravel(), return_index=True)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    row = np.searchsorted(starts, first, side="right") - 1
    places = [f"{Origin().at(int(r) + 1)}, position {int(i - starts[r]) + 1}" for i, r in zip(first, row, strict=True)]
    return plain[first], places
