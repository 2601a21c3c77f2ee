"""Pseudo-random binary digits of integer keys, read by folding: three to seven parameters per digit, no doubling.

A chain spreads the key over the whole number format, ``p_0 = a . key + c_0`` with p odd and ``|p| <= reach``, and
folds ``p <- |p| - c`` at even c near half the reach; its digit is ``[p < 0]``.  Digits are a Gray code of the key in
base two, so all of them together tell any two keys apart; a random factor a makes the low ones look random.  Keys that
crowd are first spread by tent rounds (`tent`), which double their distances and lose nothing.  Two chains serve keys
that come as two limbs, and float32, where one chain has too few digits.
Only numbers; `budgeted_network` writes the neurons.  Derived here: docs/theory/budgeted.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int, UInt64

from memcap.construct.tent import LARGEST_KEY, centred_offset, centred_step, choose_prime
from memcap.construct.word_format import EXACT_BITS
from memcap.errors import PrecisionError
from memcap.random import stream


@dataclass(frozen=True)
class Chain:
    """One folded linear form of the inputs.

    Attributes:
        factors: weight of every network input in p_0 (even; multiples of 4 if there are doublings).
        offset: c_0, odd.
        reach: ``|p_0| <= reach`` for every input in range; odd.
        doublings: tent rounds ``p <- reach - 2 |p|`` before the first fold.
        mate: another chain, whose state q after its tent rounds joins this one before the first fold:
            ``p <- p + |q| - join``.
        unread: first folds whose digits are not read.
    """

    factors: tuple[int, ...]
    offset: int
    reach: int
    doublings: int = 0
    mate: Chain | None = None
    unread: int = 0

    @property
    def join(self) -> int:
        """The odd constant that centres ``|q|`` of the mate, so that p stays odd."""
        assert self.mate is not None, "only a joined chain has this constant"
        return (self.mate.reach // 2) | 1

    @property
    def folded_reach(self) -> int:
        """``|p|`` is at most this before the first fold."""
        if self.mate is None:
            return self.reach
        return self.reach + max(self.join, self.mate.reach - self.join)

    @property
    def folds(self) -> tuple[int, ...]:
        """Fold constants of the digits that are read."""
        return self.all_folds[self.unread :]

    @property
    def all_folds(self) -> tuple[int, ...]:
        """Even fold constants c, one per digit, while the reach leaves a digit to read."""
        constants = []
        reach = self.folded_reach
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
        return self.code_of(self.spread(inputs), len(self.folds))

    def spread(self, inputs: Int[np.ndarray, "items inputs"]) -> Int[np.ndarray, " items"]:
        """p of every item before the first fold that is read."""
        p: np.ndarray = inputs @ np.array(self.factors, dtype=np.int64) + self.offset
        for _ in range(self.doublings):
            p = centred_step(p, self.reach)
        if self.mate is not None:
            p = p + np.abs(self.mate.spread(inputs)) - self.join
        for c in self.all_folds[: self.unread]:
            p = np.abs(p) - c
        return p

    def code_of(self, p: Int[np.ndarray, " items"], digits: int) -> UInt64[np.ndarray, " items"]:
        """The first ``digits`` digits of p."""
        code = np.zeros(len(p), dtype=np.uint64)
        for c in self.folds[:digits]:
            code = (code << np.uint64(1)) | (p < 0).astype(np.uint64)
            p = np.abs(p) - c
        return code


def widest_key(dtype: str) -> int:
    """Largest key of one chain: p_0 is twice that wide, with a reach one part in 512 wider, all of it exact."""
    return (1 << (EXACT_BITS[dtype] - 1)) * 511 // 512 - 8


def format_for(key: int) -> str:
    """What to do about a key too wide for a number format: the narrowest one that takes it, if there is one.

    >>> format_for(2**50), format_for(2**55), format_for(2**61)
    ("use weights='float64'", "use weights='int64' or weights='exact'", "use weights='int64'")
    """
    if key <= widest_key("float64"):
        return "use weights='float64'"
    formats = ["int64"] if key <= widest_key("int64") else []
    formats += ["exact"] if key < LARGEST_KEY else []
    return f"use {' or '.join(f'weights={name!r}' for name in formats)}" if formats else "number them anew from 0"


def _most_doubled(dtype: str) -> int:
    """Largest reach whose tent rounds are exact: ``-3 p`` occurs in them."""
    return ((1 << EXACT_BITS[dtype]) - 1) // 3 - 4096


def single_chain(low: int, high: int, dtype: str, seed: int, attempt: int, doublings: int = 0) -> Chain | None:
    """A chain for one integer key in [low, high], spread as far as ``dtype`` allows.

    Returns None if there are doublings and the keys are too wide for them.

    Raises:
        PrecisionError: if keys of that range do not fit; says what would.
    """
    furthest = max(abs(low), abs(high), high - low, 1)
    if furthest > widest_key(dtype):
        raise PrecisionError(
            f"keys from {low} to {high} do not fit {dtype} weights, whose hash holds keys below {widest_key(dtype):,}; "
            + format_for(furthest)
        )
    draw = stream(seed, "digits", attempt, doublings)
    return _chain(((1,), (furthest,)), (low,), (high,), dtype, draw, doublings, min(attempt, 4) / 32)


def limb_chains(
    lows: tuple[int, int], highs: tuple[int, int], dtype: str, seed: int, attempt: int, doublings: int = 0
) -> tuple[Chain, Chain] | None:
    """Two chains on two limbs whose linear forms are independent, so that both together tell all keys apart.

    Raises:
        PrecisionError: if the limbs do not fit ``dtype``.
    """
    far = [max(abs(lo), abs(hi), 1) for lo, hi in zip(lows, highs, strict=True)]
    room = widest_key(dtype)
    if max(far) > room:
        raise PrecisionError(
            f"key limbs up to {far[0]:,} and {far[1]:,} do not fit {dtype} weights, at most {room:,} each"
        )
    draw = stream(seed, "limb digits", attempt, doublings)
    if doublings:
        room = min(room, _most_doubled(dtype) // 2)
    forms: list[tuple[int, int]] = []
    for share in draw.permutation([0.3, 0.7]).tolist():
        first = max(1, min(int(share * room), room - far[1]) // far[0]) if sum(far) <= room else 0
        second = (room - first * far[0]) // far[1] if first else 1
        second = max(1, second - int(draw.integers(0, max(1, second // 4))))
        forms.append((first, second))
    if forms[0][0] * forms[1][1] == forms[0][1] * forms[1][0]:  # proportional: no room to mix twice
        forms[1] = (1, 0)
    chains = []
    for form in forms:
        chain = _chain((form, tuple(far)), lows, highs, dtype, draw, doublings, min(attempt, 4) / 32)
        if chain is None:
            return None
        chains.append(chain)
    return chains[0], chains[1]


def joined_chains(
    lows: tuple[int, int],
    highs: tuple[int, int],
    dtype: str,
    seed: int,
    attempt: int,
    doublings: int,
    first: int,
    further: int,
) -> tuple[Chain, Chain] | None:
    """Limb ``first`` and the other one, doubled apart, the second then joined to the first; None if there is no room.

    For limbs that are too wide to be mixed before they are doubled: one of them may be the same for all keys.  The
    second goes on for ``further`` rounds after it was joined: where the first is constant, its first ``further`` digits
    at the join are known from the digits of the sum.
    """
    far = [max(abs(lo), abs(hi), 1) for lo, hi in zip(lows, highs, strict=True)]
    if not doublings or 2 * max(far) + 8 > _most_doubled(dtype):
        return None
    draw = stream(seed, "joined digits", attempt, doublings, first)
    forms = [(1, 0), (0, 1)] if first == 0 else [(0, 1), (1, 0)]
    chains = [_chain((form, tuple(far)), lows, highs, dtype, draw, doublings, 0.0) for form in forms]
    if chains[0] is None or chains[1] is None:
        return None
    joined = replace(chains[0], mate=chains[1])
    second = replace(chains[1], doublings=doublings + further)
    return (joined, second) if 2 * joined.folded_reach <= 1 << EXACT_BITS[dtype] else None


def _chain(
    form: tuple[tuple[int, ...], tuple[int, ...]],
    lows: tuple[int, ...],
    highs: tuple[int, ...],
    dtype: str,
    draw: np.random.Generator,
    doublings: int,
    margin: float,
) -> Chain | None:
    """The form (its coefficients, and how far each input goes) times a random factor close to the largest allowed.

    ``margin`` is how much further than needed the reach may be: where factors are few, it tells attempts apart.
    """
    coefficients, far = form
    size = sum(c * f for c, f in zip(coefficients, far, strict=True))
    room = widest_key(dtype)
    if doublings:
        room = min(room, (_most_doubled(dtype) - 8) // 2)
    most = room // size
    if most < 1:
        return None
    a = most - int(draw.integers(0, max(1, most // 4)))  # other low digits, the same top ones
    if doublings:
        span = sum(c * (hi - lo) for c, lo, hi in zip(coefficients, lows, highs, strict=True))
        # not the least prime: 2^w times a span close to a power of two would come back to almost 0
        wider = int(2 * a * span * (1 + float(draw.uniform(1 / 512, 1 / 8 if doublings > 8 else 1 / 256)))) + 5
        reach = choose_prime(min(max(wider, 2 * a * span + 5), _most_doubled(dtype)), rounds=min(doublings, 64))
        least = sum(c * lo for c, lo in zip(coefficients, lows, strict=True))
        offset = centred_offset(a * span, reach) - 4 * a * least
        return Chain(tuple(4 * a * c for c in coefficients), offset, reach, doublings)
    return _centred(tuple(2 * a * c for c in coefficients), lows, highs, dtype, float(draw.uniform(0.0, margin)))


def _centred(
    factors: tuple[int, ...], lows: tuple[int, ...], highs: tuple[int, ...], dtype: str, margin: float
) -> Chain:
    least = sum(f * lo for f, lo in zip(factors, lows, strict=True))
    most = sum(f * hi for f, hi in zip(factors, highs, strict=True))
    offset = -(least + most) // 2
    offset -= 1 - (offset & 1)  # odd
    reach = max(abs(least + offset), abs(most + offset))
    # the outermost keys must not sit at the end of every fold: all their digits would be 0
    wider = reach + reach // 768 + int(reach * margin)
    return Chain(factors, offset, max(reach, min(wider, (1 << (EXACT_BITS[dtype] - 1)) - 8)) | 1)
