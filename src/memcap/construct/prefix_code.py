"""Prefix codes of limited length: frequent classes get short codes, so that a memory pays the entropy of its labels.

Classes must come in the order of falling frequency; then codes are canonical (shorter first, numerically rising) and a
decoder needs two numbers per length.  Called by `skewed_labels`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from memcap.errors import ConfigurationError


@dataclass(frozen=True)
class PrefixCode:
    """A complete canonical code.

    Attributes:
        lengths: code length per class, not falling, (classes,).
    """

    lengths: Int[np.ndarray, " classes"]

    @property
    def longest(self) -> int:
        return int(self.lengths[-1])

    @property
    def shortest(self) -> int:
        return int(self.lengths[0])

    def first(self, length: int) -> int:
        """The first code of ``length`` bits; any value of that many bits below ``end`` is a finished code."""
        return sum(1 << (length - int(n)) for n in self.lengths[self.lengths < length])

    def end(self, length: int) -> int:
        """One past the last code of ``length`` bits."""
        return self.first(length) + int(np.count_nonzero(self.lengths == length))

    def offset(self, length: int) -> int:
        """What turns a finished code of ``length`` bits into its class."""
        return int(np.count_nonzero(self.lengths < length)) - self.first(length)

    def aligned(self) -> Int[np.ndarray, " classes"]:
        """Every code, moved to the top of ``longest`` bits.

        >>> PrefixCode(np.array([1, 2, 2])).aligned().tolist()
        [0, 2, 3]
        """
        steps = np.left_shift(np.int64(1), self.longest - self.lengths)
        starts: np.ndarray = np.concatenate([[0], np.cumsum(steps)[:-1]]).astype(np.int64)
        return starts


def limited_code(counts: Int[np.ndarray, " classes"], longest: int) -> PrefixCode:
    """The cheapest prefix code with at most ``longest`` bits (package-merge).

    Args:
        counts: occurrences per class, not rising; at least two classes.
        longest: limit; ``2^longest`` must reach the number of classes.

    Raises:
        ConfigurationError: if the limit is too small, or counts rise.

    Source: Larmore & Hirschberg (1990).

    >>> limited_code(np.array([8, 4, 2, 1, 1]), 4).lengths.tolist()
    [1, 2, 3, 4, 4]
    >>> limited_code(np.array([8, 4, 2, 1, 1]), 3).lengths.tolist()
    [1, 3, 3, 3, 3]
    """
    classes = len(counts)
    if classes < 2 or 1 << longest < classes:
        raise ConfigurationError(f"{classes} classes have no prefix code of at most {longest} bits")
    if bool(np.any(np.diff(counts) > 0)):
        raise ConfigurationError("classes must come in the order of falling frequency")
    weights = counts[::-1].astype(np.int64)  # rising
    # a level's list: items and packages of the level below by weight; `taken` counts items of each level that are used
    lists: list[np.ndarray] = []
    packages = np.zeros(0, dtype=np.int64)
    for _ in range(longest):
        merged = np.concatenate([weights, packages])
        is_item = np.concatenate([np.ones(classes, dtype=bool), np.zeros(len(packages), dtype=bool)])
        order = np.argsort(merged, kind="stable")
        merged, is_item = merged[order], is_item[order]
        lists.append(is_item)
        pairs = len(merged) // 2
        packages = merged[: 2 * pairs].reshape(pairs, 2).sum(axis=1)
    lengths = np.zeros(classes, dtype=np.int64)
    wanted = 2 * classes - 2
    for is_item in reversed(lists):
        items = int(np.count_nonzero(is_item[:wanted]))
        lengths[:items] += 1
        wanted = 2 * (wanted - items)
    return PrefixCode(lengths[::-1].copy())
