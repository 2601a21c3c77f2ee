"""Many words per neuron: the piecewise linear function of the bucket number whose residues are the words.

Bucket ``J = q I + L``.  Piece i is one neuron ``s relu(a J + b + sum_t c_t relu(L - t))``: silent for I < i, equal to
``s d_l`` at (I, L) = (i, l), growing linearly for I > i.  What earlier pieces add at (i, l) is known, so d_l is chosen
to make the running sum congruent to the wanted word modulo the period.  The folds that follow take residues, so only
the range of the running sum costs parameters: a beam search over the signs s keeps it small.

Derived here: docs/theory/exact.md, "Words in pieces".  Python integers throughout: words have hundreds of bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BEAM = 8


@dataclass(frozen=True)
class Piece:
    """One neuron: ``sign * relu(slope * J + bias + sum_t hinges[t - 1] * relu(L - t))``."""

    sign: int
    slope: int
    bias: int
    hinges: tuple[int, ...]


@dataclass(frozen=True)
class _State:
    """A partial solution: values of the running sum at the next piece's buckets, and its growth per piece."""

    ahead: tuple[int, ...]
    growth: int
    low: int
    high: int
    last: tuple[int, Piece | None, _State | None]

    def rank(self, period: int) -> tuple[int, int]:
        low, high = min(self.low, *self.ahead), max(self.high, *self.ahead)
        return (high - low) // period, abs(self.growth) + max(abs(v) for v in self.ahead)


def _piece(targets: Sequence[int], ahead: Sequence[int], sign: int, period: int) -> list[int]:
    """The smallest admissible values ``d_l`` of one piece with ``ahead + sign d = +-target`` modulo the period."""
    group = len(targets)
    options = []
    for target, value in zip(targets, ahead, strict=True):
        options.append(sorted((sign * (t - value)) % period for t in (target, -target)))
    rest = max((o[0] for o in options[2:]), default=0)
    best: tuple[int, int, int] | None = None
    for d0 in options[0]:
        for d1 in options[1]:
            # the piece must be silent before: group * (d1 - d0) >= every d_l, d1 included; lift d1 by whole periods
            short = max(max(d0, rest) - group * (d1 - d0), 0)
            lift = -(-short // (group * period))
            own = group * d0 - (group - 1) * d1
            if own > 0:
                lift = max(lift, -(-own // ((group - 1) * period)))
            raised = d1 + lift * period
            if best is None or raised - d0 < best[0]:
                best = (raised - d0, d0, raised)
    assert best is not None
    return [best[1], best[2], *(o[0] for o in options[2:])]


def pieces(words: Sequence[int], group: int, period: int, first: int) -> tuple[list[Piece], int, int]:
    """Pieces whose sum is ``+-words[j]`` modulo ``period`` at bucket ``first + j``, and the range of the sum.

    Args:
        words: one residue per bucket; ``len(words)`` is a multiple of ``group``.
        group: buckets per piece, at least 2.
        period: of the residues.
        first: smallest bucket number, a multiple of ``group``.

    Returns:
        the pieces (the first one has sign -1, so a constant can be added through its bias), smallest and largest value
        of their sum over all buckets.
    """
    count = len(words) // group
    beam = [_State((0,) * group, 0, 0, 0, (0, None, None))]
    for i in range(count):
        targets = words[i * group : (i + 1) * group]
        following = []
        for state in beam:
            for sign in (-1, 1) if i else (-1,):
                d = _piece(targets, state.ahead, sign, period)
                here = [value + sign * x for value, x in zip(state.ahead, d, strict=True)]
                slope = d[1] - d[0]
                growth = state.growth + sign * slope * group
                low = min(here) if i == 0 else min(state.low, *here)
                high = max(here) if i == 0 else max(state.high, *here)
                hinges = tuple(d[t + 1] - 2 * d[t] + d[t - 1] for t in range(1, group - 1))
                piece = Piece(sign, slope, d[0] - slope * (first + i * group), hinges)
                following.append(_State(tuple(v + growth for v in here), growth, low, high, (i, piece, state)))
        following.sort(key=lambda s: s.rank(period))
        beam = following[:BEAM]
    best = min(beam, key=lambda s: s.high - s.low)
    chosen: list[Piece] = []
    walk: _State | None = best
    while walk is not None and walk.last[1] is not None:
        chosen.append(walk.last[1])
        walk = walk.last[2]
    return chosen[::-1], best.low, best.high
