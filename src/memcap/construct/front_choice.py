"""Choosing token values for a data set: the smallest front whose sums tell every item apart."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from memcap.construct.distinguishing import distinct_values, distinguishing_tokens
from memcap.construct.sequence_network import OWN_FACTOR, keys_of
from memcap.construct.token_values import TokenFront, bit_hash, fold_hash, value_table
from memcap.errors import ConfigurationError, HashUnlucky, PrecisionError, nearest

KINDS = ("hash", "distinguishing")

# (warm-up rounds, terms) -> tries; smallest first.  Random tokens pass with (3, 5); overlapping windows of text, which
# differ by shifts, need about (4, 7).
_SIZES = {(3, 5): 3, (5, 5): 2, (4, 7): 6, (5, 7): 4, (6, 8): 4, (8, 10): 4, (10, 14): 8}
LARGEST_SUM = {"float64": 2**53, "float32": 2**24, "int64": 2**62, "exact": 2**62}
_FLOAT32_TRIES = 16


def padded_length(length: int) -> int:
    """The next power of two: softmax over that many equal scores averages integers exactly."""
    return 1 << max(length - 1, 0).bit_length()


def symbols_of(tokens: NDArray[np.int64], length: int, pad: int, *, ordered: bool) -> NDArray[np.int64]:
    """Symbol numbers, padded to ``length``: the token, or ``token * length + position`` when order matters."""
    rows, given = tokens.shape
    padded = np.full((rows, length), pad, dtype=np.int64)
    padded[:, :given] = tokens
    if not ordered or length == 1:
        return padded
    return padded * length + np.arange(length, dtype=np.int64)


def _distinct(keys: NDArray[np.int64], items: int) -> bool:
    """Whether the (limb) keys take exactly ``items`` values."""
    flat = keys.reshape(-1, keys.shape[-1])
    joined = flat[:, 0] if flat.shape[1] == 1 else (flat[:, 0] << 24) | flat[:, 1]
    return len(np.unique(joined)) == items


def choose_front(
    symbols: NDArray[np.int64],
    *,
    alphabet: int,
    items: int,
    ordered: bool,
    per_position: bool,
    weights: str,
    kind: str = "hash",
    seed: int = 0,
) -> tuple[TokenFront, NDArray[np.int64]]:
    """A front whose summed values are distinct on all items, and the keys it gives.

    Args:
        symbols: (rows, length) symbol numbers, padding included.
        alphabet: number of symbols.
        items: distinct items: rows, or distinct (row, symbol) pairs per position.
        weights: ``float32`` takes the two-limb bit hash, everything else the fold hash.
        kind: ``hash`` or ``distinguishing`` (a table over distinguishing tokens).

    Returns:
        The front and keys as `keys_of` gives them.

    Raises:
        HashUnlucky: if no try gives distinct sums.
        PrecisionError: if the symbols are too many for the number format.
    """
    if kind not in KINDS:
        raise ConfigurationError(f"token_values must be one of {', '.join(KINDS)}, got {kind!r}{nearest(kind, KINDS)}")
    length = symbols.shape[1]
    used, places = np.unique(symbols, return_inverse=True)
    places = places.reshape(symbols.shape)
    if kind == "distinguishing":
        if weights == "float32" or per_position:
            raise ConfigurationError(
                "token_values='distinguishing' writes one wide key per sequence; use float64, int64 or exact weights "
                "and one label per sequence, or token_values='hash'"
            )
        chosen = used[distinguishing_tokens(places, len(used))]
        given = distinct_values(places, np.searchsorted(used, chosen), seed)
        front = value_table(length, ordered, chosen, given)
        return front, keys_of(front.values(used), places, per_position=False)
    for attempt, front in enumerate(_candidates(alphabet, items, length, ordered, per_position, weights, seed)):
        values = front.values(used)
        reach = int(values.max()) * length * (OWN_FACTOR if per_position else 1)
        if reach + int(values.max()) > LARGEST_SUM[weights]:
            raise PrecisionError(
                f"sums of {length} token values reach {reach.bit_length()} bits, which do not fit the exact integers "
                f"of {weights}; map the tokens to 0..V-1 first, or use weights='exact'"
            )
        keys = keys_of(values, places, per_position=per_position)
        if _distinct(keys, items):
            front.structure["tries"] = attempt + 1
            return front, keys
    raise HashUnlucky(
        f"no token hash gave {items} distinct sums (seed {seed}); try another seed, or token_values='distinguishing'"
    )


def _candidates(
    alphabet: int, items: int, length: int, ordered: bool, per_position: bool, weights: str, seed: int
) -> Iterator[TokenFront]:
    """Candidate fronts, made one at a time, smallest first."""
    if weights == "float32":
        spare = (length * (4 if per_position else 1) - 1).bit_length()
        wanted = math.ceil(math.log2(max(items, 2))) + 3  # bits of each limb; room above them is room for hash rounds
        limbs = (min(max(wanted, 8), 20 - spare), min(max(wanted, 8), 20 - spare))
        if sum(limbs) + 2 < 2 * math.log2(max(items, 2)):
            raise PrecisionError(
                f"{items} sequences of length {length} need wider keys than two float32 limbs hold; "
                "use weights='float64'"
            )
        for attempt in range(_FLOAT32_TRIES):
            yield bit_hash(alphabet, length, ordered, limb_bits=limbs, seed=seed, attempt=attempt)
        return
    for (warm_up, terms), tries in _SIZES.items():
        for attempt in range(tries):
            try:
                front = fold_hash(
                    alphabet, items, length, ordered, warm_up=warm_up, terms=terms, seed=seed, attempt=attempt
                )
            except PrecisionError:
                if (warm_up, terms) == (3, 5):
                    raise
                return
            yield front
