"""Keys and labels in, an exact keyless network of unbounded precision out; checks, limits, relabelling.

The selectors differ in how the word of a key is found: `packed` (smallest), `bucketed`, and `chunked` (step, ramp).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from memcap.construct.bucketed import memorise_bucketed
from memcap.construct.chunked import memorise_chunked
from memcap.construct.construction import Construction
from memcap.construct.key_digits import widest_key
from memcap.construct.packed import memorise_packed
from memcap.construct.tent import LARGEST_KEY
from memcap.errors import ConfigurationError, DataError, HashUnlucky, PrecisionError, nearest
from memcap.exact.counts import count
from memcap.exact.network import Network

SELECTORS = ("auto", "packed", "bucket", "ramp", "step")
SMALL = 2_000
"""Up to this many items ``auto`` builds every selector; above, packed was smallest at every size measured."""
MOST_LABEL_BITS = 24


def label_width(classes: int) -> int:
    """Bits of a class index, at least one.

    >>> [label_width(c) for c in (1, 2, 3, 256)]
    [1, 1, 2, 8]
    """
    return max(1, (classes - 1).bit_length())


def check_items(
    keys: Int[np.ndarray, " items"], labels: Int[np.ndarray, " labels"], classes: int, *, hashed: bool = True
) -> tuple[Int[np.ndarray, " items"], Int[np.ndarray, " items"]]:
    """Keys and labels as int64, or the reason why they cannot be memorised.

    Args:
        hashed: the keys are to be hashed, which bounds them; else any int64 will do.

    Raises:
        DataError: no items, lengths that differ, a repeated key, a label outside [0, classes).
        PrecisionError: a key of 2^60 or more that is to be hashed.
    """
    if len(keys) == 0:
        raise DataError("there is nothing to memorise: no items were given")
    if len(keys) != len(labels):
        raise DataError(f"expected one label per key, got {len(keys)} keys and {len(labels)} labels")
    if int(keys.min()) < 0:
        raise DataError(f"keys are non-negative integers, got {int(keys.min())}")
    largest = int(keys.max())
    if hashed and largest >= LARGEST_KEY:
        also = "weights='int64' or " if largest <= widest_key("int64") else ""
        raise PrecisionError(
            f"keys that an exact memory hashes are below 2^60, got {largest}; use {also}method='keyed' or "
            "selector='interpolator', which hash nothing, or renumber them"
        )
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise DataError(f"labels must be in [0, {classes}), got {low if low < 0 else high}")
    keys = keys.astype(np.int64)
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if len(same):
        first, second = sorted((int(order[same[0]]), int(order[same[0] + 1])))
        raise DataError(
            f"key {int(keys[first])} is given twice, in rows {first + 1} and {second + 1}; keep one of them"
        )
    return keys, labels.astype(np.int64)


def memorise_exact(
    keys: Int[np.ndarray, " items"],
    labels: Int[np.ndarray, " labels"],
    *,
    classes: int,
    selector: str = "auto",
    seed: int = 0,
    reject_bits: int = 0,
    max_depth: int | None = None,
    bits: int | None = None,
) -> Construction:
    """A keyless network with integer weights of any size that returns ``labels`` at ``keys``.

    Args:
        keys: (N,) distinct integers in [0, 2^60).
        labels: (N,) class indices in [0, classes).
        classes: number of classes C; a label takes b = ceil(log2 C) bits.
        selector: ``packed`` (smallest), ``bucket``, ``ramp``, ``step``, or ``auto``.
        seed: of every random choice; equal arguments give equal weights.
        reject_bits: f fingerprint bits: labels are stored with f zero bits above them, and an output of ``2^b`` or more
            means unknown.  An unknown key is accepted with probability about 2^-f.
        max_depth: most ReLU layers.
        bits: largest bit length of any stored weight.

    Returns:
        the construction; unknown keys give some value in [0, 2^(b + f)).

    Raises:
        DataError, PrecisionError: see `check_items`.
        ConfigurationError: an unknown selector, or limits that this selector cannot keep.
        HashUnlucky: no seed led to a solution.

    Source: derived here, docs/theory/exact.md, after Vardi, Yehudai & Shamir (arXiv 2110.03187).

    >>> made = memorise_exact(np.arange(0, 300, 3), np.arange(100) % 2, classes=2)
    >>> made.method, made.structure["label_bits"]
    ('keyless', 1)
    """
    if selector not in SELECTORS:
        raise ConfigurationError(
            f"selector must be one of {', '.join(SELECTORS)}, got {selector!r}{nearest(selector, SELECTORS)}"
        )
    if classes < 1:
        raise ConfigurationError(f"classes must be at least 1, got {classes}")
    for name, value in (("max_depth", max_depth), ("bits", bits)):
        if value is not None and value < 1:
            raise ConfigurationError(f"{name} must be a positive integer, got {value}")
    width = label_width(classes)
    if reject_bits < 0 or width + reject_bits > MOST_LABEL_BITS:
        raise ConfigurationError(
            f"reject_bits must be in [0, {MOST_LABEL_BITS - width}] for {classes} classes, got {reject_bits}"
        )
    keys, labels = check_items(keys, labels, classes)
    limits = _Limits(max_depth, bits)
    names = [selector] if selector != "auto" else ["packed", "bucket", "step", "ramp"]
    made: list[Construction] = []
    misses: list[Network] = []
    unlucky: list[HashUnlucky] = []
    for name in names:
        if made and len(keys) > SMALL:
            break
        try:
            found = _within(limits, name, keys, labels, width + reject_bits, seed)
        except HashUnlucky as reason:
            unlucky.append(reason)
            continue
        if isinstance(found, Construction):
            made.append(found)
        else:
            misses.append(found)
    if not made:
        raise limits.refusal(selector, min(misses, key=limits.excess)) if misses else unlucky[0]
    best = min(made, key=lambda m: count(m.network).nonzero)
    facts = best.structure | {"classes": classes, "reject_bits": reject_bits, "seed": seed}
    return replace(best, structure=facts | {"max_depth": max_depth, "bits": bits})


@dataclass(frozen=True)
class _Limits:
    """Bounds the caller set, and what a network exceeds them by."""

    max_depth: int | None
    bits: int | None

    def excess(self, network: Network) -> int:
        deeper = 0 if self.max_depth is None else network.depth - self.max_depth
        wider = 0 if self.bits is None else _widest_weight(network) - self.bits
        return max(deeper, wider, 0)

    def refusal(self, selector: str, nearest: Network) -> ConfigurationError:
        """What to say when no network keeps the limits: ``nearest`` exceeds them least."""
        facts = [("max_depth", self.max_depth, nearest.depth), ("bits", self.bits, _widest_weight(nearest))]
        wanted = " and ".join(f"{name}={asked}" for name, asked, _ in facts if asked is not None)
        reached = " and ".join(f"{name}={smallest}" for name, asked, smallest in facts if asked is not None)
        return ConfigurationError(
            f"{wanted} is out of reach of selector={selector!r}: the smallest found is {reached}; allow that much"
        )


def _widest_weight(network: Network) -> int:
    return max(layer.largest.bit_length() for _, layer in network.maps())


def _within(
    limits: _Limits,
    selector: str,
    keys: Int[np.ndarray, " items"],
    labels: Int[np.ndarray, " items"],
    label_bits: int,
    seed: int,
) -> Construction | Network:
    """Build; if the network is too deep or its weights too wide, search for the most values per word that fit.

    Fewer values per word mean more words, less depth and narrower weights, down to a number of values with no plan.

    Returns:
        the construction, or if there is none the network that exceeds the limits least.
    """
    made = _build(selector, keys, labels, label_bits, seed, None)
    excess = limits.excess(made.network)
    if excess == 0:
        return made
    nearest_miss, least_excess = made.network, excess
    impossible, too_many = 0, made.structure["word_bits"] // label_bits
    guess = too_many - -(-excess // label_bits)
    kept: Construction | None = None
    while too_many - impossible > (1 if kept is None else 1 + impossible // 8):
        most = guess if impossible < guess < too_many else (impossible + too_many) // 2
        guess = 0
        try:
            made = _build(selector, keys, labels, label_bits, seed, most)
        except (HashUnlucky, ConfigurationError):
            impossible = most
            continue
        excess = limits.excess(made.network)
        if excess == 0:
            kept, impossible = made, most
            continue
        too_many = min(most, made.structure["word_bits"] // label_bits)
        guess = too_many - -(-excess // label_bits)
        if excess < least_excess:
            nearest_miss, least_excess = made.network, excess
    return nearest_miss if kept is None else kept


def _build(
    selector: str,
    keys: Int[np.ndarray, " items"],
    labels: Int[np.ndarray, " items"],
    label_bits: int,
    seed: int,
    most: int | None,
) -> Construction:
    if selector == "packed":
        return memorise_packed(keys, labels, label_bits=label_bits, seed=seed, most_values=most)
    if selector == "bucket":
        return memorise_bucketed(keys, labels, label_bits=label_bits, seed=seed, most_values=most)
    return memorise_chunked(keys, labels, label_bits=label_bits, selector=selector, seed=seed, most_values=most)


@dataclass(frozen=True, eq=False)
class Relabelled:
    """A relabelled network.

    Attributes:
        construction: recalls the new labels.
        rebuilt: True if its structure was searched anew (packed); False if only word weights changed.
        changed: numbers that differ from the old network when it was not rebuilt, else 0.
    """

    construction: Construction
    rebuilt: bool
    changed: int


def relabel(made: Construction, keys: Int[np.ndarray, " items"], labels: Int[np.ndarray, " items"]) -> Relabelled:
    """The network for the same keys with new labels of the same classes.

    Step, ramp and bucket networks have independent hash rows, so new labels change word weights only (checked here, map
    by map); a packed network's structure depends on its labels, so it is built again.

    Raises:
        ConfigurationError: if ``made`` was not made by `memorise_exact`, or not for these keys.
    """
    facts = made.structure
    if made.method != "keyless" or made.weights != "exact" or "seed" not in facts:
        raise ConfigurationError("relabel takes what memorise_exact returned")
    again = memorise_exact(
        keys,
        labels,
        classes=facts["classes"],
        selector=made.selector,
        seed=facts["seed"],
        reject_bits=facts["reject_bits"],
        max_depth=facts["max_depth"],
        bits=facts["bits"],
    )
    if not made.relabelable:
        return Relabelled(again, rebuilt=True, changed=0)
    return Relabelled(again, rebuilt=False, changed=_changed(made.network, again.network))


def _changed(old: Network, new: Network) -> int:
    """Numbers that differ; all of them must be words: the embedding's constant, or what selector neurons write."""
    before, after = list(old.maps()), list(new.maps())
    if [name for name, _ in before] != [name for name, _ in after]:
        raise ConfigurationError("the network was not made for these keys: its stages differ")
    changed = 0
    for (name, a), (_, b) in zip(before, after, strict=True):
        if a.same_as(b):
            continue
        if (a.outputs, a.inputs) != (b.outputs, b.inputs):
            raise ConfigurationError(f"the network was not made for these keys: {name} has another shape")
        bias = int(np.sum(a.bias != b.bias))
        old_entries = dict(zip(zip(a.row.tolist(), a.column.tolist(), strict=True), a.weight.tolist(), strict=True))
        new_entries = dict(zip(zip(b.row.tolist(), b.column.tolist(), strict=True), b.weight.tolist(), strict=True))
        both = old_entries.keys() | new_entries.keys()
        weights = sum(old_entries.get(at, 0) != new_entries.get(at, 0) for at in both)
        is_words = name.endswith((".selector.1", ".words.1")) and bias == 0
        if not is_words and not (name == "embed" and weights == 0):
            raise ConfigurationError(f"the network was not made for these keys: {name} differs")
        changed += bias + weights
    return changed
