"""Pseudo-random binary digits of integer keys, read by folding: three to seven parameters per digit, no doubling.

A chain spreads the key over the whole number format, ``p_0 = 2 (a . key) + c_0`` with p odd and ``|p| <= reach``, and
folds ``p <- |p| - c`` at even c near half the reach; its digit is ``[p < 0]``.  Digits are a Gray code of the key in
base two, so all of them together tell any two keys apart; a random factor a makes the low ones look random, and
skipping the top ones (warm-up) spreads keys that crowd.  Two chains serve keys that come as two limbs.
Only numbers; `budgeted_network` writes the neurons.  Derived here: docs/theory/budgeted.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, UInt64

from memcap.construct.word_format import EXACT_BITS
from memcap.errors import PrecisionError
from memcap.random import stream


@dataclass(frozen=True)
class Chain:
    """One folded linear form of the inputs.

    Attributes:
        factors: weight of every network input in p_0 (even).
        offset: c_0, odd.
        reach: ``|p_0| <= reach`` for every input in range; odd.
    """

    factors: tuple[int, ...]
    offset: int
    reach: int

    @property
    def folds(self) -> tuple[int, ...]:
        """Even fold constants c, one per digit, while the reach leaves a digit to read."""
        constants = []
        reach = self.reach
        while reach >= 3:
            half = reach // 2
            c = half + (half & 1)
            constants.append(c)
            reach = max(c, reach - c)
            if reach <= 2:
                break
        return tuple(constants)

    def code(self, inputs: Int[np.ndarray, "items inputs"]) -> UInt64[np.ndarray, " items"]:
        """All digits of every item as one number, the first digit on top (``len(folds)`` bits)."""
        p = inputs @ np.array(self.factors, dtype=np.int64) + self.offset
        code = np.zeros(len(p), dtype=np.uint64)
        for c in self.folds:
            code = (code << np.uint64(1)) | (p < 0).astype(np.uint64)
            p = np.abs(p) - c
        return code


def widest_key(dtype: str) -> int:
    """Largest key of one chain: p_0 is twice that wide, with a reach one part in 512 wider, all of it exact."""
    return (1 << (EXACT_BITS[dtype] - 1)) * 511 // 512 - 8


def single_chain(low: int, high: int, dtype: str, seed: int, attempt: int) -> Chain:
    """A chain for one integer key in [low, high], spread as far as ``dtype`` allows.

    Raises:
        PrecisionError: if keys of that range do not fit; says what would.
    """
    room = widest_key(dtype)
    furthest = max(abs(low), abs(high), high - low, 1)
    most = room // furthest
    if most < 1:
        raise PrecisionError(
            f"keys from {low} to {high} do not fit {dtype} weights, whose hash holds keys below {room:,}; use "
            + ("weights='float64'" if dtype == "float32" and furthest <= widest_key("float64") else "weights='exact'")
        )
    # a uniform factor in (3/4, 1] of the largest: other low digits, the same top ones
    a = most - int(stream(seed, "digits", attempt).integers(0, max(1, most // 4)))
    return _centred((2 * a,), (low,), (high,))


def limb_chains(
    lows: tuple[int, int], highs: tuple[int, int], dtype: str, seed: int, attempt: int
) -> tuple[Chain, Chain]:
    """Two chains on two limbs whose linear forms are independent, so that both together tell all keys apart.

    Raises:
        PrecisionError: if the limbs do not fit ``dtype``.
    """
    room = widest_key(dtype)
    far = [max(abs(lo), abs(hi), 1) for lo, hi in zip(lows, highs, strict=True)]
    if max(far) > room:
        raise PrecisionError(f"key limbs up to {far[0]} and {far[1]} do not fit {dtype} weights (at most {room} each)")
    draw = stream(seed, "limb digits", attempt)
    if sum(far) > room:  # no room to mix: one chain for each limb
        forms = [(room // far[0], 0), (0, room // far[1])]
    else:
        forms = []
        while len(forms) < 2:
            share = float(draw.uniform(0.25, 0.75))
            first = max(1, int(share * room) // far[0])
            second = max(1, (room - first * far[0]) // far[1])
            if first * far[0] + second * far[1] > room:
                first, second = 1, (room - far[0]) // far[1]
            second = max(1, second - int(draw.integers(0, max(1, second // 4))))
            if not forms or forms[0][0] * second != forms[0][1] * first:
                forms.append((first, second))
            elif room < 3 * sum(far):
                forms.append((0, room // far[1]) if forms[0][0] else (room // far[0], 0))
    one, two = (_centred((2 * u, 2 * v), lows, highs) for u, v in forms)
    return one, two


def _centred(factors: tuple[int, ...], lows: tuple[int, ...], highs: tuple[int, ...]) -> Chain:
    least = sum(f * (lo if f > 0 else hi) for f, lo, hi in zip(factors, lows, highs, strict=True))
    most = sum(f * (hi if f > 0 else lo) for f, lo, hi in zip(factors, lows, highs, strict=True))
    offset = -(least + most) // 2
    offset -= 1 - (offset & 1)  # odd
    reach = max(abs(least + offset), abs(most + offset))
    reach += reach // 768  # the outermost keys must not sit at the end of every fold: all their digits would be 0
    return Chain(factors, offset, reach | 1)
