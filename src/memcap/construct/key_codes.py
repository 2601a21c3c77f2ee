"""Digits of all keys under a choice of hash chains, and the choices there are: what a plan search asks of the keys.

Not the search (`budgeted_search`) and not the chains themselves (`key_digits`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Int, UInt64

from memcap.construct.budgeted_plan import BudgetedPlan
from memcap.construct.hash_tables import Places
from memcap.construct.key_digits import Chain, joined_chains, limb_chains, single_chain

_ONE_CHAIN_KEYS = 3000
_MOST_UNREAD = 3


class KeyCodes:
    """All digits of all keys, for one choice of chains."""

    def __init__(self, chains: tuple[Chain, ...], inputs: Int[np.ndarray, "items inputs"]) -> None:
        self.chains = chains
        self.codes = [chain.code(inputs) for chain in chains]
        self.lengths = [len(chain.folds) for chain in chains]
        self.items = len(inputs)

    def index(self, digits: int) -> UInt64[np.ndarray, " items"]:
        """The first ``digits`` digits of the first chain."""
        return self.codes[0] >> np.uint64(self.lengths[0] - digits)

    def base(self, index_digits: int) -> tuple[UInt64[np.ndarray, " items"], int]:
        """Everything after the index digits, in the order base digits are read, and how many digits that is."""
        left = self.lengths[0] - index_digits
        rest = self.codes[0] & _mask(left)
        if len(self.codes) == 1:
            return rest, left
        return (self.codes[1] << np.uint64(left)) | rest, left + self.lengths[1]

    def digits_to_separate(self, index_digits: int) -> int | None:
        """Base digits that tell all keys of equal index apart, or None if all of them do not."""
        base, length = self.base(index_digits)
        if index_digits + length > 64:
            length_kept = 64 - index_digits
            base, length = base >> np.uint64(length - length_kept), length_kept
        whole = np.sort((self.index(index_digits) << np.uint64(length)) | base)
        differ = whole[1:] ^ whole[:-1]
        if len(differ) == 0:
            return 1
        least = int(differ.min())
        if least == 0:
            return None
        return max(1, length - least.bit_length() + 1)

    def places(self, plan: BudgetedPlan) -> Places:
        """Where every key looks under ``plan``."""
        layout = plan.layout
        index = self.index(layout.digits)
        base, length = self.base(layout.digits)
        piece = np.stack([layout.piece(index, t) for t in range(plan.tables)])
        return Places(layout.group(index), piece, plan.beta(base >> np.uint64(length - plan.digits)))


def _mask(digits: int) -> np.uint64:
    return np.uint64((1 << digits) - 1)


class KeyHash:
    """The codes of all keys for every number of tent rounds, made on demand.

    Args:
        ranges: inclusive range of every network input.
        inputs: its values, one column each.
        dtype, seed, attempt: number format, and what names the random factors.
        avoid: numbers of tent rounds that have failed.
        joined: the limb whose chain the other limb's joins after the tent rounds, or None: limbs are mixed before.
    """

    def __init__(
        self,
        ranges: tuple[tuple[int, int], ...],
        inputs: Int[np.ndarray, "items inputs"],
        dtype: str,
        seed: int,
        attempt: int,
        avoid: frozenset[int] = frozenset(),
        joined: int | None = None,
    ) -> None:
        self.avoid, self.joined = avoid, joined
        self.ranges, self.inputs, self.dtype, self.seed, self.attempt = ranges, inputs, dtype, seed, attempt
        self._codes: dict[int, KeyCodes | None] = {}

    def chains(self, doublings: int) -> tuple[Chain, ...] | None:
        """The chains with ``doublings`` tent rounds, or None where the number format has no room for them."""
        if doublings in self.avoid:
            return None
        lows, highs = tuple(r[0] for r in self.ranges), tuple(r[1] for r in self.ranges)
        if len(self.ranges) == 1:
            limits = (lows[0], highs[0], self.dtype, self.seed, self.attempt)
            chain = single_chain(*limits, doublings)
            few = self.dtype == "float32" and (len(self.inputs) > _ONE_CHAIN_KEYS or self.attempt >= 4)
            if not few or chain is None:
                return None if chain is None else (chain,)
            more = single_chain(*limits, doublings + 1)  # one chain of float32 has some 22 digits only
            return None if more is None else (chain, more)
        both = ((lows[0], lows[1]), (highs[0], highs[1]), self.dtype, self.seed, self.attempt, doublings)
        if self.joined is None:
            return limb_chains(*both)
        pair = joined_chains(*both, self.joined, len(self.inputs).bit_length() - 1 + self.attempt % 4)
        return None if pair is None else (self._evened(pair[0]), pair[1])

    def _evened(self, chain: Chain) -> Chain:
        """``chain`` with as many unread folds as spread the keys best.

        Where one part of a sum is the same for all keys, the first digits of the sum are too.
        """
        digits = (len(self.inputs) // 8).bit_length()

        def crowding(unread: int) -> int:
            tried = replace(chain, unread=unread)
            index = tried.code_of(tried.spread(self.inputs), min(digits, len(tried.folds)))
            return int(np.square(np.bincount(index.astype(np.int64))).sum())

        best = min(range(_MOST_UNREAD + 1), key=crowding)
        return replace(chain, unread=best)

    def codes(self, doublings: int) -> KeyCodes | None:
        """Digits after ``doublings`` tent rounds."""
        if doublings not in self._codes:
            chains = self.chains(doublings)
            self._codes[doublings] = None if chains is None else KeyCodes(chains, self.inputs)
        return self._codes[doublings]

    def forget(self, doublings: int) -> None:
        """Free the codes of a choice that is not used."""
        self._codes.pop(doublings, None)
