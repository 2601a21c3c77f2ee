"""Labels of integer keys in a network whose every partial sum is an exact integer of float64, float32 or int64.

Called by `choice`.  The stages: digits of the keys -> cheapest plan -> words by linear algebra over GF(2) -> network ->
every key evaluated in integer arithmetic.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from memcap.construct.budgeted_network import write_network
from memcap.construct.budgeted_plan import BudgetedPlan
from memcap.construct.budgeted_search import Demand, candidates, most_digits, with_enough_digits
from memcap.construct.construction import Construction
from memcap.construct.fused import Fused
from memcap.construct.hash_tables import PlaneSystem, eliminate, solve_labels
from memcap.construct.key_codes import KeyCodes, KeyHash
from memcap.construct.key_digits import format_for, widest_key
from memcap.construct.skewed_labels import prefix_code, skewed_plan
from memcap.construct.tent import LARGEST_KEY
from memcap.construct.word_format import EXACT_BITS, most_bits
from memcap.errors import ConfigurationError, DataError, HashUnlucky, PrecisionError, RunError, nearest
from memcap.exact.network import Network

_ATTEMPTS = 16
_STRICT_ATTEMPTS = 5
_DEPTH_ATTEMPTS = 3
_POOR = 4
_ALONE = 3
"""Attempts with the key itself before it is tried as two limbs, which costs more."""
_ROOMY = 2**18
"""A float32 key below this leaves room for a random factor or for tent rounds; a wider one may need two limbs."""


def memorise_budgeted(
    keys: NDArray[np.int64],
    labels: NDArray[np.int64],
    *,
    classes: int,
    dtype: str = "float64",
    selector: str = "auto",
    seed: int = 0,
    lanes: int | str = 1,
    bits: int | None = None,
    words: int | None = None,
    max_depth: int | None = None,
) -> Construction:
    """Write a network that gives every key its label, exact in the arithmetic of ``dtype``.

    About ``N b / B + O(sqrt(N b))`` parameters for N keys of b label bits and words of B bits (47 in float64); for the
    sizes where N < 336 B^2 the second term rules.

    Args:
        keys: distinct integers (N,), or two non-negative limbs per key (N, 2).
        labels: class index of every key, (N,), in [0, classes).
        classes: number of classes, at least 1.
        dtype: ``float64`` | ``float32`` | ``int64``.
        selector: ``packed`` (or ``auto``): words in hash tables of pieces.
        seed: same seed, same weights.
        lanes: accepted for callers that choose a number of hash lanes; here all words of a key fold side by side, at
            no cost, so that every value gives the same network.  Depth is traded by ``max_depth`` or ``bits``.
        bits: longest word allowed, in bits; by default the longest that is exact.  Fewer bits, more parameters.
        words: words a key reads per label bit: 1, 2, or None for the cheaper.
        max_depth: most ReLU layers.

    Classes in the order of falling frequency get a prefix code when that is smaller (`structure["label_code"]`).

    Returns:
        A construction whose network has been evaluated on every key in integer arithmetic.

    Raises:
        PrecisionError: if keys do not fit ``dtype``, or ``dtype`` has too few exact integers.
        ConfigurationError: for an unknown option, or a depth that no plan reaches.
        DataError: for repeated keys, or labels that are not classes.
        HashUnlucky: if no attempt has a solution.

    Source: derived here, docs/theory/budgeted.md; retrieval without stored keys is known from static-function data
    structures (Bloomier filters), the rate from Vardi, Yehudai & Shamir (arXiv 2110.03187).

    >>> keys = np.arange(0, 70, 7)
    >>> built = memorise_budgeted(keys, keys % 2, classes=2)
    >>> built.method, built.network.read.outputs
    ('keyless', 1)
    """
    inputs, labels = _checked(keys, labels, classes)
    demand = _demand(dtype, classes, selector, lanes, bits, words, max_depth)
    entrances = _entrances(inputs, dtype)
    code = prefix_code(labels, classes, demand.most_bits)
    shallowest: int | None = None
    poor: Counter[tuple[int, int]] = Counter()  # entrance, tent rounds after which hash bits were not independent
    deep_enough = False
    for attempt in range(_ATTEMPTS):
        if attempt == max(_DEPTH_ATTEMPTS, len(entrances)) and not deep_enough:
            break  # how deep plans are hardly depends on the attempt
        strict = attempt < max(_STRICT_ATTEMPTS, 2 * len(entrances))  # later ones take plans that look unpromising
        entrance = entrances[attempt % len(entrances)]
        number = entrances.index(entrance)
        avoid = frozenset(r for (e, r), times in poor.items() if strict and e == number and times >= _POOR)
        hashing = KeyHash(entrance.ranges, entrance.inputs, dtype, seed, attempt, avoid, entrance.joined)
        plans, least = candidates(hashing, demand)
        deep_enough |= bool(plans)
        shallowest = least if shallowest is None else min(shallowest, least or shallowest)
        for tried, rough in enumerate(plans):
            codes = hashing.codes(rough.chains[0].doublings)
            plan = None if codes is None else with_enough_digits(codes, rough)
            if plan is None and codes is not None and not strict:
                plan = replace(rough, digits=most_digits(codes, rough))
            poor[number, rough.chains[0].doublings] += plan is None
            if codes is None or plan is None or (max_depth is not None and plan.depth > max_depth):
                continue
            plane = _independent(codes, plan)
            while plane is None and entrance.joined is not None and plan.digits < most_digits(codes, plan):
                plan = replace(plan, digits=min(plan.digits + 4, most_digits(codes, plan)))
                plane = _independent(codes, plan)
            if plane is None:
                continue
            planes, bits_wanted = [plane] * plan.planes, labels
            skewed = None if code is None else skewed_plan(codes, plan, labels, code)
            if skewed is not None and code is not None and skewed[0].parameters < plan.parameters:
                plan, planes = skewed
                bits_wanted = code.aligned()[labels]
            solved, _ = solve_labels(planes, plan.slot, bits_wanted)
            network = write_network(
                plan, solved, inputs=entrance.names, input_range=entrance.ranges, key_limbs=entrance.limbs
            )
            if not np.array_equal(Fused(network).labels_of_inputs(entrance.inputs), labels):
                raise RunError("the network that was written does not give the labels; this is a defect of memcap")
            return _construction(network, plan, dtype, attempt, tried, len(labels))
    if max_depth is not None and not deep_enough:
        found = f"; the shallowest found has {shallowest}" if shallowest else "; allow more"
        raise ConfigurationError(f"no plan for {len(labels)} keys is at most {max_depth} layers deep{found}")
    raise HashUnlucky(
        f"no solution for {len(labels)} keys and {classes} classes in {_ATTEMPTS} attempts from seed {seed} "
        f"({dtype}); try another seed, more bits, or "
        + ("weights='exact'" if int(np.abs(inputs).max()) < LARGEST_KEY else "number the keys anew from 0")
    )


def _independent(codes: KeyCodes, plan: BudgetedPlan) -> PlaneSystem | None:
    """The rows of all keys if they are independent."""
    places = codes.places(plan)
    system = eliminate(places, plan.layout, plan.slot.bits)
    return None if system is None else PlaneSystem(places, plan.layout, system)


@dataclass(frozen=True, eq=False)
class _Entrance:
    """One way in which keys can enter a network.

    Attributes:
        names: of the network's inputs.
        inputs: their values, one column each.
        ranges: what the network promises to take.
        limbs: see `Network.key_limbs`.
        joined: see `KeyHash`.
    """

    names: tuple[str, ...]
    inputs: Int[np.ndarray, "items inputs"]
    ranges: tuple[tuple[int, int], ...]
    limbs: tuple[int, int] | None = None
    joined: int | None = None


def _entrances(inputs: Int[np.ndarray, "items inputs"], dtype: str) -> list[_Entrance]:
    """The ways to try in turn: the key itself where it fits; where float32 has little room beside it also two limbs.

    Limbs of keys too wide to be mixed are also tried each on its own and joined later, either one first: all keys may
    share one of them.
    """
    lows = [min(0, int(column.min())) for column in inputs.T]
    highs = [max(1, int(column.max())) for column in inputs.T]  # one key of 0 still needs a digit
    whole = _Entrance(("key",) if len(lows) == 1 else ("sel", "q"), inputs, tuple(zip(lows, highs, strict=True)))
    if len(lows) == 2 or dtype != "float32" or (lows[0] < 0 and highs[0] - lows[0] <= widest_key(dtype)):
        return [whole]
    alone = [whole] * _ALONE if highs[0] <= widest_key(dtype) else []
    if alone and highs[0] < _ROOMY:
        return [whole]
    split, limbs = _split(inputs[:, 0])
    ranges = ((0, int(split[:, 0].max())), (0, (1 << limbs[1]) - 1))
    return [*alone, *(_Entrance(("sel", "q"), split, ranges, limbs, joined) for joined in (None, 0, 1))]


def _checked(
    keys: NDArray[np.int64], labels: NDArray[np.int64], classes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    inputs = np.asarray(keys)
    labels = np.asarray(labels)
    if inputs.ndim == 1:
        inputs = inputs[:, None]
    if inputs.ndim != 2 or inputs.shape[1] not in (1, 2) or inputs.dtype.kind not in "iu":
        raise DataError(f"keys must be integers of shape (N,) or (N, 2), got {inputs.dtype} of shape {keys.shape}")
    if len(inputs) == 0:
        raise DataError("no keys were given; at least one is needed")
    if labels.shape != (len(inputs),) or labels.dtype.kind not in "iu":
        raise DataError(f"labels must be {len(inputs)} integers, got {labels.dtype} of shape {labels.shape}")
    if classes < 1:
        raise ConfigurationError(f"classes must be at least 1, got {classes}")
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(outside):
        row = int(outside[0])
        raise DataError(f"label {int(labels[row])} of key number {row + 1} is outside [0, {classes})")
    if inputs.dtype == np.uint64 and int(inputs.max()) >= 2**63:
        raise PrecisionError("keys of 2^63 and more do not fit; number them anew from 0")
    inputs = inputs.astype(np.int64)
    unique, counts = np.unique(inputs, axis=0, return_counts=True)
    if len(unique) < len(inputs):
        again = unique[int(np.argmax(counts))].tolist()
        raise DataError(f"keys must be distinct; {again[0] if len(again) == 1 else tuple(again)} occurs more than once")
    return inputs, labels.astype(np.int64)


def _demand(
    dtype: str,
    classes: int,
    selector: str,
    lanes: int | str,
    bits: int | None,
    words: int | None,
    max_depth: int | None,
) -> Demand:
    if dtype in ("float16", "bfloat16"):
        raise PrecisionError(f"{dtype} holds too few exact integers for a memory; use float32, float64 or int64")
    if dtype not in EXACT_BITS:
        raise ConfigurationError(
            f"dtype must be one of {', '.join(EXACT_BITS)}, got {dtype!r}{nearest(dtype, EXACT_BITS)}"
        )
    if selector not in ("auto", "packed"):
        raise ConfigurationError(f"selector must be auto or packed for {dtype} weights, got {selector!r}")
    if lanes != "max" and (isinstance(lanes, str) or lanes < 1):
        raise ConfigurationError(f"lanes must be a positive integer or 'max', got {lanes!r}")
    if words not in (None, 1, 2):
        raise ConfigurationError(f"words must be 1, 2 or None (the cheaper), got {words!r}")
    most = most_bits(dtype)
    if bits is not None and not 1 <= bits <= most:
        raise PrecisionError(f"a word of {bits} bits is not exact in {dtype}: bits must be in [1, {most}]")
    if max_depth is not None and max_depth < 1:
        raise ConfigurationError(f"max_depth must be a positive integer, got {max_depth}")
    planes = max(1, (classes - 1).bit_length())
    if planes > 40:
        raise PrecisionError(f"{classes} classes need {planes} label bits; at most 40 fit the accumulator")
    return Demand(planes, most if bits is None else bits, max_depth, words)


def _split(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], tuple[int, int]]:
    """Keys too wide for float32 as two limbs of half the bits each."""
    if int(keys.min()) < 0:
        raise PrecisionError("negative keys of that size do not fit float32 weights; use weights='float64'")
    half = (int(keys.max()).bit_length() + 1) // 2
    if 1 << half > widest_key("float32"):
        raise PrecisionError(
            f"keys up to {int(keys.max()):,} do not fit float32 weights, which hold keys below 2^44; "
            f"{format_for(int(keys.max()))}"
        )
    return np.stack([keys >> half, keys & ((1 << half) - 1)], axis=1), (half, half)


def _construction(
    network: Network, plan: BudgetedPlan, dtype: str, attempt: int, tried: int, items: int
) -> Construction:
    layout = plan.layout
    places = sum(layout.groups * plan.plane_tables(k).real(t) for k in range(plan.planes) for t in range(plan.tables))
    structure: dict[str, Any] = {
        "bits": plan.words.bits,
        "label_bits": plan.planes,
        "tables": plan.tables,
        "lanes": len(plan.lanes),
        "groups": layout.groups,
        "pieces": list(layout.pieces),
        "label_code": "fixed" if plan.code is None else "prefix",
        "words": places * plan.parts,
        "fill": items * plan.planes / (places * plan.slot.bits) if plan.code is None else None,
        "index_digits": layout.digits,
        "base_digits": plan.digits,
        "warmup": plan.doublings,
        "reach": [chain.reach for chain in plan.chains],
        "attempt": attempt,
        "plan": tried,
        "parameters_by_formula": plan.parameters,
    }
    # with a prefix code other label frequencies move the tables of the planes, not only the words
    return Construction(network, "keyless", "packed", dtype, structure, relabelable=plan.code is None)
