"""One channel of many items as ``base + scale * small``: big integers common to all items, int64 per item.

Exact: every operation either proves from the present extremes that no int64 overflows, or raises `NotGrouped`.
Called by `grouped` only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int

from memcap.errors import PrecisionError

SAFE = 2**62


class NotGrouped(PrecisionError):
    """A network does not have the structure that grouped evaluation needs; use the generic evaluator."""


@dataclass(frozen=True)
class Code:
    """The integers ``base + scale * small`` (items,), scale > 0."""

    base: int
    scale: int
    small: Int[np.ndarray, " items"]

    @cached_property
    def extremes(self) -> tuple[int, int]:
        return (int(self.small.min()), int(self.small.max())) if len(self.small) else (0, 0)

    def take(self, where: Int[np.ndarray, " _"] | slice) -> Code:
        return Code(self.base, self.scale, self.small[where])


def _known(base: int, scale: int, small: Int[np.ndarray, " items"], low: int, high: int) -> Code:
    """A code whose extremes are known."""
    code = Code(base, scale, small)
    code.__dict__["extremes"] = (low, high)
    return code


def constant(items: int, value: int = 0) -> Code:
    return Code(value, 1, np.zeros(items, dtype=np.int64))


def _checked(low: int, high: int, factor: int) -> None:
    if max(abs(low), abs(high)) * abs(factor) >= SAFE:
        raise NotGrouped("a value of one item is too wide for int64 beside the common part")


def add(a: Code, b: Code, weight: int) -> Code:
    """``a + weight * b``, its int64 parts centred."""
    base = a.base + weight * b.base
    low, high = b.extremes
    if weight == 0 or low == high:
        return Code(base + weight * b.scale * low, a.scale, a.small)
    first, last = a.extremes
    step = weight * b.scale
    if first == last:
        scale, small = abs(step), b.small if step > 0 else -b.small
        base += a.scale * first
    else:
        scale = math.gcd(a.scale, abs(step))
        p, q = a.scale // scale, step // scale
        _checked(first, last, 2 * p)
        _checked(low, high, 2 * q)
        small = a.small if p == 1 else a.small * p
        small = small + (b.small if q == 1 else b.small * q)
    low, high = int(small.min()), int(small.max())
    shift = (low + high) // 2
    if abs(shift) > 2**16:  # the common part of the items belongs to the base; centred, signs may flip for ever
        return _known(base + scale * shift, scale, small - shift, low - shift, high - shift)
    return _known(base, scale, small, low, high)


def affine(a: Code, weight: int, bias: int) -> Code:
    """``weight * a + bias``."""
    step = weight * a.scale
    low, high = a.extremes
    if step > 0:
        return _known(weight * a.base + bias, step, a.small, low, high)
    return _known(weight * a.base + bias, -step, -a.small, -high, -low)


def relu(a: Code) -> Code:
    """``max(a, 0)``, exactly."""
    low, high = a.extremes
    if a.base + a.scale * low >= 0:
        return a
    if a.base + a.scale * high <= 0:
        return constant(len(a.small))
    scale = math.gcd(a.base, a.scale)
    p, q = a.base // scale, a.scale // scale
    if abs(p) >= SAFE:
        raise NotGrouped("a bias and a weight have no common scale that leaves int64 values")
    _checked(low, high, 2 * q)
    small = a.small * q
    small += p
    np.maximum(small, 0, out=small)
    return _known(0, scale, small, max(low * q + p, 0), max(high * q + p, 0))


def quotient(a: Code, unit: int, otherwise: int) -> Int[np.ndarray, " items"]:
    """``a / unit`` where that is an integer in [0, 2^62), else ``otherwise``."""
    common = math.gcd(a.scale, unit)
    step, whole = a.scale // common, unit // common
    if a.base % common:
        return np.full(len(a.small), otherwise, dtype=np.int64)
    start = a.base // common
    low, high = a.extremes
    _checked(low, high, 2 * step)
    if abs(start) >= SAFE or whole >= SAFE:
        raise NotGrouped("the output is too wide for int64 beside its unit")
    total = a.small * step + start
    labels: np.ndarray = np.where((total % whole == 0) & (total >= 0), total // whole, otherwise)
    return labels
