"""The one-hidden-layer interpolator: the classical memory, smallest below a few dozen items.

Two forms, both exact integers; the smaller one that fits is taken.

* **steps**: at every label change of the sorted keys one step of unit width, ``relu(x - t + 1) - relu(x - t)``: six
  parameters a change, small numbers.
* **slopes**: the piecewise linear function through all (key, unit * label) points, one neuron where the slope changes:
  three parameters a key.  The unit is the least common multiple of the gaps it must divide, so numbers grow with N.

Source: folklore (any one-dimensional data set is interpolated by a one-hidden-layer ReLU net of N neurons); the integer
forms are derived here.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from memcap.construct.construction import Construction
from memcap.errors import DataError, PrecisionError
from memcap.exact.affine import Affine
from memcap.exact.counts import count
from memcap.exact.network import Block, Network

LIMITS = {"float64": 2**53, "float32": 2**24, "int64": 2**63 - 1, "exact": None}
LARGEST_UNIT_BITS = 4096


def memorise_interpolator(
    keys: NDArray[np.int64], labels: NDArray[np.int64], *, classes: int, dtype: str = "float64"
) -> Construction:
    """One hidden layer that maps every key to its label.

    Args:
        keys: distinct non-negative integers, (N,).
        labels: class index per key, (N,).
        classes: number of classes.
        dtype: ``float64`` | ``float32`` | ``int64`` | ``exact``.

    Raises:
        DataError: if a key stands twice.
        PrecisionError: if a partial sum would leave the exact integers of ``dtype``.
    """
    if keys.ndim != 1:
        raise PrecisionError("the interpolator reads one key; these keys have two limbs")
    order = np.argsort(keys, kind="stable")
    x, y = [int(v) for v in keys[order]], [int(v) for v in labels[order]]
    if any(a == b for a, b in itertools.pairwise(x)):
        raise DataError("a key stands twice")
    fitting = [n for n in (_steps(x, y), _slopes(x, y)) if n is not None and _fits(n, x[-1], LIMITS[dtype])]
    if not fitting:
        raise PrecisionError(f"keys up to {x[-1]} need sums beyond the exact integers of {dtype}")
    network = min(fitting, key=lambda n: count(n).nonzero)
    form = "slopes" if network.unit > 1 else "steps"
    structure = {"form": form, "neurons": network.widest, "classes": classes}
    return Construction(network, "interpolator", "none", dtype, structure)


def _network(neurons: dict[int, int], first: int, largest: int, unit: int) -> Network:
    """``first + sum of weight * relu(x - at)`` over the neurons {at: weight}."""
    ats = [at for at, weight in sorted(neurons.items()) if weight]
    inner = Affine.from_entries(len(ats), 2, [(i, 0, 1) for i in range(len(ats))], [-at for at in ats])
    outer = Affine.from_entries(2, len(ats), [(1, i, neurons[at]) for i, at in enumerate(ats)])
    stages = (Block("interpolator", (inner, outer)),) if ats else ()
    return Network(
        inputs=("key",),
        input_range=((0, largest),),
        length=1,
        channels=("key", "label"),
        embed=Affine.from_entries(2, 1, [(0, 0, 1)] if ats else [], [0, first]),
        stages=stages,
        read=Affine.from_entries(1, 2, [(0, 1, 1)]),
        unit=unit,
    )


def _steps(x: list[int], y: list[int]) -> Network:
    neurons: dict[int, int] = {}
    for key, before, after in zip(x[1:], y, y[1:], strict=False):
        neurons[key - 1] = neurons.get(key - 1, 0) + after - before
        neurons[key] = neurons.get(key, 0) - (after - before)
    return _network(neurons, y[0], x[-1], 1)


def _slopes(x: list[int], y: list[int]) -> Network | None:
    unit = 1
    for a, b, before, after in zip(x, x[1:], y, y[1:], strict=False):
        unit = math.lcm(unit, (b - a) // math.gcd(b - a, after - before))
        if unit.bit_length() > LARGEST_UNIT_BITS:
            return None
    neurons: dict[int, int] = {}
    slope = 0
    for a, b, before, after in zip(x, x[1:], y, y[1:], strict=False):
        steeper = unit * (after - before) // (b - a)
        neurons[a] = steeper - slope
        slope = steeper
    return _network(neurons, unit * y[0], x[-1], unit)


def _fits(network: Network, largest: int, limit: int | None) -> bool:
    """Whether the sum of magnitudes of all terms stays within ``limit`` for keys in [0, ``largest``]."""
    if limit is None:
        return True
    total = sum(abs(int(b)) for b in network.embed.bias)
    for stage in network.stages:
        assert isinstance(stage, Block)
        inner, outer = stage.layers
        reach = [max(largest + int(b), 0) for b in inner.bias]
        total += sum(abs(int(w)) * reach[c] for w, c in zip(outer.weight, outer.column, strict=True))
        if any(largest + abs(int(b)) > limit for b in inner.bias):
            return False
    return max(total, largest, network.unit) <= limit
