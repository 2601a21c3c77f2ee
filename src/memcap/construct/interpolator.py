"""The baseline: one or two neurons per key, no hashing.  Smaller than every other construction for a few dozen keys.

*Steps*: the label is a sum of steps at the places where it changes along the sorted keys, 5 parameters a change.
*Ramp*: a piecewise linear function with one neuron a key, 3 parameters each, passes within half a unit of
``unit * label`` at every key, and a read-out of at most 6 parameters a label bit rounds it.  Both are integer networks.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from memcap.construct.construction import Construction
from memcap.construct.named_block import NamedBlock, Unit
from memcap.construct.word_format import EXACT_BITS
from memcap.errors import ConfigurationError, DataError, PrecisionError, RunError, nearest
from memcap.exact.affine import Affine
from memcap.exact.counts import count
from memcap.exact.evaluate import evaluate
from memcap.exact.network import Network

_FEW = 64


def memorise_interpolator(
    keys: NDArray[np.int64], labels: NDArray[np.int64], *, classes: int, dtype: str = "float64"
) -> Construction:
    """The smaller of both interpolators that is exact in ``dtype``.

    Args:
        keys: distinct integers, (N,).
        labels: class index of every key, (N,), in [0, classes).
        classes: number of classes.
        dtype: ``float64`` | ``float32`` | ``int64`` | ``exact``.

    Raises:
        PrecisionError: if the keys themselves do not fit ``dtype``, or come as two limbs.
        DataError: for no keys, repeated keys, or labels that are not classes.
        ConfigurationError: for an unknown ``dtype``.

    Source: Baum (1988) for the size; the integer forms are derived here, docs/theory/budgeted.md.

    >>> memorise_interpolator(np.array([3, 5, 9]), np.array([0, 1, 1]), classes=2).structure["form"]
    'steps'
    """
    if dtype != "exact" and dtype not in EXACT_BITS:
        valid = (*EXACT_BITS, "exact")
        raise ConfigurationError(f"dtype must be one of {', '.join(valid)}, got {dtype!r}{nearest(dtype, valid)}")
    keys, labels = np.asarray(keys), np.asarray(labels)
    if keys.ndim != 1:
        raise PrecisionError(f"the interpolator reads one integer key; keys of shape {keys.shape} come as limbs")
    if len(keys) == 0:
        raise DataError("no keys were given; at least one is needed")
    if labels.shape != keys.shape or int(labels.min()) < 0 or int(labels.max()) >= classes:
        raise DataError(f"labels must be {len(keys)} integers in [0, {classes})")
    order = np.argsort(keys, kind="stable")
    xs, ys = [int(k) for k in keys[order]], [int(y) for y in labels[order]]
    again = next((a for a, b in itertools.pairwise(xs) if a == b), None)
    if again is not None:
        raise DataError(f"keys must be distinct; {again} occurs more than once")
    limit = None if dtype == "exact" else (1 << EXACT_BITS[dtype]) - 1
    low, high = min(0, xs[0]), xs[-1]
    if limit is not None and high - low + max(abs(low), abs(high)) > limit:
        raise PrecisionError(f"keys from {low:,} to {high:,} do not fit {dtype} weights; use weights='exact'")
    forms = {"steps": _steps(xs, ys, low)}
    changes = sum(a != b for a, b in itertools.pairwise(ys))
    # a change between longer runs bends the ramp twice, 6 parameters against 5: it wins where most neighbours differ
    ramp = _ramp(xs, ys, low, classes, limit) if 2 * changes > len(xs) or len(xs) <= _FEW else None
    if ramp is not None:
        forms["ramp"] = ramp
    form = min(forms, key=lambda name: count(forms[name]).nonzero)
    network = forms[form]
    if not np.array_equal(evaluate(network, keys), labels):
        raise RunError("the interpolator does not give the labels; this is a defect of memcap")
    return Construction(network, "interpolator", "none", dtype, {"form": form, "keys": len(xs)})


def _network(blocks: list[NamedBlock], channels: list[str], start: int, low: int, high: int) -> Network:
    embed = Affine.from_entries(len(channels), 1, [(0, 0, 1)], [(1, start)])
    read = Affine.from_entries(1, len(channels), [(0, channels.index("label"), 1)])
    return Network(
        inputs=("key",),
        input_range=((low, high),),
        length=1,
        channels=tuple(channels),
        embed=embed,
        stages=tuple(b.written(channels) for b in blocks),
        read=read,
    )


def _steps(xs: list[int], ys: list[int], low: int) -> Network:
    """``[x >= t] = relu(1 - relu(t - x))``: no sum ever grows with the keys, so it is exact wherever the keys are."""
    first, second, outputs = [], [], []
    for i in range(1, len(xs)):
        if ys[i] != ys[i - 1]:
            first.append(Unit(f"before {i}", {"key": -1}, xs[i]))
            second.append(Unit(f"from {i}", {f"before {i}": -1}, 1))
            outputs.append(("label", f"from {i}", ys[i] - ys[i - 1]))
    blocks = [NamedBlock("steps/all", [first, second], outputs)] if first else []
    return _network(blocks, ["key", "label"], ys[0], low, xs[-1])


def _ramp(xs: list[int], ys: list[int], low: int, classes: int, limit: int | None) -> Network | None:
    """Integer slopes, each correcting the error the last one left: at a key the value is off by at most half the gap.

    None if a partial sum would leave the exact integers.
    """
    if len(xs) < 2:
        return None
    bits = max(1, (classes - 1).bit_length())
    widest = max(b - a for a, b in itertools.pairwise(xs))
    shift = widest.bit_length()  # unit = 2^shift > widest gap >= twice the error
    unit = 1 << shift
    value, slope = ys[0] * unit, 0
    units, outputs = [], []
    for i in range(len(xs) - 1):
        gap = xs[i + 1] - xs[i]
        wanted = (2 * (ys[i + 1] * unit - value) + gap) // (2 * gap)
        value += wanted * gap
        if wanted != slope:
            units.append(Unit(f"after {i}", {"key": 1}, -xs[i]))
            outputs.append(("y", f"after {i}", wanted - slope))
            slope = wanted
    rise = sum(max(w, 0) * (xs[-1] - xs[int(u.split()[1])]) for _, u, w in outputs)
    fall = sum(max(-w, 0) * (xs[-1] - xs[int(u.split()[1])]) for _, u, w in outputs)
    start = ys[0] * unit + unit // 2
    if limit is not None and max(rise, fall) + start + (unit << bits) > limit:
        return None
    blocks = [NamedBlock("ramp/all", [units], outputs)] if units else []
    for digit in range(bits - 1, -1, -1):
        size = unit << digit
        # [y >= size] as relu(1 - relu(size - y)): a difference of two large hinges, times size, would leave the format
        step = [[Unit("missing", {"y": -1}, size)], [Unit("reached", {"missing": -1}, 1)]]
        outputs = [("label", "reached", 1 << digit), *([("y", "reached", -size)] if digit else [])]
        blocks.append(NamedBlock(f"readout/bit/{digit}", step, outputs))
    return _network(blocks, ["key", "y", "label"], start, low, xs[-1])
