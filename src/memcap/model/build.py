"""Data in, memory out: the main job of memcap, as a short list of named stages.

symbols -> keys (token front) -> construction on keys -> assembled network -> verified memory
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memcap.construct.choice import KeyOptions, construct_on_keys
from memcap.construct.construction import Construction
from memcap.construct.front_choice import choose_front, padded_length, symbols_of
from memcap.construct.sequence_network import assemble, depth_before_key, front_part, key_part
from memcap.construct.token_values import TokenFront
from memcap.data.sequences import SequenceData
from memcap.errors import ConfigurationError, PrecisionError, RunError, nearest
from memcap.exact.evaluate import evaluate
from memcap.exact.network import Network
from memcap.model.header import Header
from memcap.model.memory import Memory
from memcap.random import stream_key

WEIGHTS = ("float64", "float32", "int64", "exact")
TOO_NARROW = {"float16": 2**11, "bfloat16": 2**8}
METHODS = ("keyless", "keyed")

Progress = Callable[[int, int, str], None]


def build(
    data: SequenceData,
    *,
    weights: str = "float64",
    method: str = "keyless",
    selector: str = "auto",
    seed: int = 0,
    lanes: int | str = 1,
    bits: int | None = None,
    words: int | None = None,
    max_depth: int | None = None,
    reject_bits: int = 0,
    token_values: str = "hash",
    progress: Progress | None = None,
) -> Memory:
    """Write a transformer that recalls every item of ``data``; about the square root of N parameters for N items.

    Args:
        data: from `memcap.read_sequences` or `SequenceData.from_arrays`.
        weights: ``float64`` | ``float32`` | ``int64`` | ``exact`` (the weights are integers of any size; fewest
            parameters).  Keys and token ids are below 2^62 in any case, those that are hashed below 2^60.
        method: ``keyless`` (smallest; unknown items get an arbitrary label) or ``keyed`` (stores keys; unknown items
            get None; exact weights only).
        selector: ``auto`` takes the smallest; floats: ``packed``; exact: ``step``, ``ramp``, ``bucket``, ``packed``;
            both: ``interpolator``.
        seed: same seed, same weights.
        lanes: accepted for float64, float32 and int64; all words of a key fold side by side at no cost, so every value
            gives the same network.  Depth is traded by ``max_depth`` or ``bits``.
        bits: bits of the longest word, that is of the weights that hold the labels: about N/bits of them.  Other
            weights (hash constants, embeddings) keep their size.
        words: words per label bit.
        max_depth: most ReLU layers of the whole network, tokens and attention included: parameters are traded for
            depth, or the depth is refused.
        reject_bits: f fingerprint bits: an unknown item is accepted with chance about 2^-f (exact weights).
        token_values: ``hash`` or ``distinguishing`` (see `memcap.construct.front_choice`).
        progress: called as ``progress(done, total, what)``.

    Returns:
        A memory that was verified on every item.

    Raises:
        ConfigurationError: for an unknown option or a combination that does not exist.
        PrecisionError: if the data do not fit the number format.
        HashUnlucky: if no seed that was tried has a solution.

    Source: Kajitsuka & Sato (arXiv 2409.17677) and Vardi, Yehudai & Shamir (arXiv 2110.03187) for the rate; the
    constructions are derived here, docs/theory/.

    >>> import memcap
    >>> data = memcap.SequenceData.from_arrays([[1, 2], [2, 1], [2, 2]], ["a", "b", "b"])
    >>> memcap.build(data).predict([[2, 1]])
    ['b']
    """
    numbers = {"bits": bits, "words": words, "max_depth": max_depth, "reject_bits": reject_bits}
    _check_call(data, numbers)
    stream_key(seed, "build")  # refuses what is no seed, also where nothing is drawn
    if weights in TOO_NARROW:
        raise PrecisionError(
            f"{weights} holds every integer only up to {TOO_NARROW[weights]}; hash states and words need at least 24 "
            "bits: use weights='float32', 'float64', 'int64' or 'exact'"
        )
    for name, value, valid in (("weights", weights, WEIGHTS), ("method", method, METHODS)):
        if value not in valid:
            raise ConfigurationError(
                f"{name} must be one of {', '.join(valid)}, got {value!r}{nearest(str(value), valid)}"
            )
    options = KeyOptions(
        weights=weights,
        method=method,
        selector=selector,
        seed=seed,
        lanes=lanes,
        bits=bits,
        words=words,
        max_depth=max_depth,
        reject_bits=reject_bits,
    )
    items = key_items(data, weights=weights, token_values=token_values, seed=seed)
    construction = _on_keys(items, data, options, progress)
    network = joined(items, construction, data)
    header = Header(
        encoding=data.encoding,
        label_names=tuple(data.label_names),
        ordered=data.ordered,
        method=construction.method,
        selector=construction.selector,
        weights=weights,
        structure={
            **construction.structure,
            "token_values": items.front.kind if items.front else "none",
            **({"token_hash": items.front.structure} if items.front else {}),
        },
        seed=seed,
        items=len(items.labels),
        entropy=entropy_bits(items.labels),
        data_hash=data.content_hash,
        first_label=1 if construction.method == "keyed" else 0,
        reject_from=1 << max(1, (data.classes - 1).bit_length()) if reject_bits else None,
        options={**vars(options), "token_values": token_values},
    )
    memory = Memory(network, header, data=data)
    if not _proved_by_parts(memory, items, construction, data):
        recall = memory.recall(data, progress=progress)
        if recall.correct != recall.total:
            raise RunError(
                f"the network that was built recalls {recall.correct} of {recall.total} items; this is a defect of "
                f"memcap, please report it (data {data.content_hash[:16]}, seed {seed})"
            )
    return memory


def _check_call(data: object, numbers: dict[str, Any]) -> None:
    """Refuse what is no data, and options that are no whole number."""
    if not isinstance(data, SequenceData):
        raise ConfigurationError(
            "expected SequenceData (memcap.read_sequences or memcap.SequenceData.from_arrays), got "
            f"{type(data).__name__}"
        )
    for name, value in numbers.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer)):
            raise ConfigurationError(f"{name} must be a whole number, got {value!r}")


def _on_keys(items: KeyItems, data: SequenceData, options: KeyOptions, progress: Progress | None) -> Construction:
    """The construction on keys; where tokens come first, their layers count towards ``max_depth``."""
    asked = options.max_depth
    taken = 0
    if asked is not None and items.front is not None:
        taken = depth_before_key(items.front, per_position=data.per_position)
        if asked <= taken:
            raise ConfigurationError(
                f"max_depth={asked} is out of reach: tokens and attention alone take {taken} layers; allow at least "
                f"{taken + 2}, and more for fewer parameters"
            )
        options = replace(options, max_depth=asked - taken)
    try:
        return construct_on_keys(items.keys, items.labels, classes=data.classes, options=options, progress=progress)
    except ConfigurationError as refused:
        if not taken:
            raise
        raise ConfigurationError(f"{refused} (of max_depth={asked}, tokens and attention take {taken})") from None


def _proved_by_parts(memory: Memory, items: KeyItems, construction: Construction, data: SequenceData) -> bool:
    """Whether recall follows from the parts: the front sends every item to its key, and the construction, which was
    evaluated on every key when it was made, stands unchanged behind it."""
    if construction.weights == "exact" or data.per_position:
        return False
    if items.front is None:
        return memory.network is construction.network
    if items.keys.ndim != 1:
        return False
    behind = key_part(memory.network).maps()
    same = all(a.same_as(b) for (_, a), (_, b) in zip(behind, construction.network.maps(), strict=True))
    return same and np.array_equal(evaluate(front_part(memory.network), memory.tokens_of(data)), items.keys)


@dataclass(frozen=True)
class KeyItems:
    """Distinct items as integer keys.

    Attributes:
        keys: int64 (N,), or (N, 2) limbs for float32 sequences.
        labels: class index per key, int64 (N,).
        front: how tokens become keys, or None when the single token is the key.
        tokens: number of token ids, padding included.
    """

    keys: NDArray[np.int64]
    labels: NDArray[np.int64]
    front: TokenFront | None
    tokens: int


def key_items(data: SequenceData, *, weights: str, token_values: str, seed: int) -> KeyItems:
    """Turn sequences into distinct keys."""
    pad = data.vocabulary_size
    if data.length == 1:
        return KeyItems(data.tokens[:, 0], data.labels.reshape(len(data)), None, pad + 1)
    length = padded_length(data.length)
    symbols = symbols_of(data.tokens, length, pad, ordered=data.ordered)
    alphabet = (pad + 1) * (length if data.ordered else 1)
    if data.per_position:
        real = np.zeros(symbols.shape, dtype=bool)
        real[:, : data.length] = data.labels >= 0
        rows = np.broadcast_to(np.arange(len(symbols))[:, None], symbols.shape)
        wide = np.zeros(symbols.shape, dtype=np.int64)
        wide[:, : data.length] = data.labels
        pairs = np.stack([rows[real], symbols[real]], axis=1)
        _, first = np.unique(pairs, axis=0, return_index=True)
        every = np.unique(np.stack([rows.ravel(), symbols.ravel()], axis=1), axis=0)
        front, keys = choose_front(
            symbols,
            alphabet=alphabet,
            items=len(every),
            ordered=data.ordered,
            per_position=True,
            weights=weights,
            kind=token_values,
            seed=seed,
        )
        flat, labels = keys[real][first], wide[real][first]
    else:
        front, flat = choose_front(
            symbols,
            alphabet=alphabet,
            items=len(symbols),
            ordered=data.ordered,
            per_position=False,
            weights=weights,
            kind=token_values,
            seed=seed,
        )
        labels = data.labels
    return KeyItems(flat[:, 0] if flat.shape[1] == 1 else flat, labels, front, pad + 1)


def joined(items: KeyItems, construction: Construction, data: SequenceData) -> Network:
    """The complete network from tokens to labels."""
    if items.front is None:
        return construction.network
    return assemble(
        items.front,
        construction.network,
        length=padded_length(data.length),
        tokens=items.tokens,
        per_position=data.per_position,
    )


def entropy_bits(labels: NDArray[np.int64]) -> float:
    """Empirical entropy of the labels in bits."""
    share = np.bincount(labels) / len(labels)
    share = share[share > 0]
    return float(-(share * np.log2(share)).sum()) + 0.0


def relabelled(memory: Memory, data: SequenceData) -> Memory:
    """``memory`` rebuilt for the labels of ``data``, which must hold the same items."""
    options: dict[str, Any] = dict(memory.header.options)
    rebuilt = build(data, **options)
    same = [
        name
        for (name, before), (_, after) in zip(memory.network.maps(), rebuilt.network.maps(), strict=False)
        if before.same_as(after)
    ]
    total = sum(1 for _ in rebuilt.network.maps())
    structure = {**rebuilt.header.structure, "relabelled": f"{total - len(same)} of {total} layers changed"}
    return replace(rebuilt, header=replace(rebuilt.header, structure=structure))
