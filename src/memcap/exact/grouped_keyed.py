"""Grouped evaluation of networks that compare the key with stored ones: exactly, at array speed, from stored weights.

A chunk's word and whatever is stripped from it are the same for all keys of the chunk: one Python integer per chunk.  A
key differs from its neighbours only in whether it equals the stored key of a record.  So a channel is one of

* `Common`: one integer per chunk, of any size;
* `Code`: one int64 per item beside a common part (the key itself, the output);
* `Differs`: 0 for some items, for the others an integer that is known to be at least ``least > 0`` and nothing more.

Comparisons are decided by integer division, once per chunk; that a gate is closed for every integer from ``least`` on
is proved from the weight with which it reads the difference.  Whatever is not one of these raises `NotGrouped`.  Called
by `grouped`; `evaluate` is the reference.  Derived here: docs/theory/exact.md, "Grouped evaluation".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int
from numpy.typing import NDArray

from memcap.exact.affine import INT64_MAX
from memcap.exact.evaluate import NOT_A_LABEL, Progress
from memcap.exact.grouped_codes import SAFE, Code, NotGrouped, add, affine, constant, quotient
from memcap.exact.grouped_words import Row, columns_of, rows_of, words_of
from memcap.exact.network import Attention, Network

Writes = list[tuple[int, int]]
"""What one neuron adds to: (channel, weight) pairs."""


def keeps_its_key(network: Network) -> bool:
    """Whether no block changes the channels that the key enters: the mark of a network that compares it.

    >>> from memcap.construct.keyed import memorise_keyed
    >>> keeps_its_key(memorise_keyed(np.array([3, 8]), np.array([0, 1]), classes=2).network)
    True
    """
    entered = set(network.embed.row.tolist())
    blocks = [stage for stage in network.stages if not isinstance(stage, Attention)]
    return all(entered.isdisjoint(block.layers[-1].row.tolist()) for block in blocks)


@dataclass(frozen=True)
class Common:
    """One integer per chunk."""

    values: Sequence[int]


@dataclass(frozen=True, eq=False)
class Differs:
    """0 where ``on`` is False, some integer of at least ``least`` where it is True."""

    on: Bool[np.ndarray, " items"]
    least: int


Channel = Common | Code | Differs


@dataclass(frozen=True)
class _Strip:
    """Two neurons that take the binary digit k, if it is the highest, off a channel and write it into others."""

    channel: int
    digit: int
    writes: Mapping[int, int]


@dataclass(frozen=True)
class _Step:
    """One block: its neurons, and the strip that the first two of them are."""

    name: str
    rows: list[Row]
    columns: list[Writes]
    strip: _Strip | None

    @property
    def others(self) -> list[tuple[Row, Writes]]:
        """The neurons beside the strip."""
        return list(zip(self.rows[2:], self.columns[2:], strict=True))


def evaluate_keyed(network: Network, keys: NDArray[np.int64], progress: Progress | None = None) -> NDArray[np.int64]:
    """The label of every key, equal to `evaluate`, for networks that compare the key with stored ones.

    Args:
        network: of single integer keys.
        keys: int64 (items,), at least one, in the network's range.
        progress: called now and then with the items done so far in proportion.

    Returns:
        int64 labels (items,); `NOT_A_LABEL` where the output is not ``unit * label``.

    Raises:
        NotGrouped: the network does not have the structure.
    """
    steps = []
    for stage in network.stages:
        if isinstance(stage, Attention) or len(stage.layers) != 2:
            raise NotGrouped(f"stage {stage.name!r} is not a block of one hidden layer")
        rows, columns = rows_of(stage.layers[0]), columns_of(stage.layers[-1])
        steps.append(_Step(stage.name, rows, columns, _strip_of(rows, columns)))
    run = _Keyed(network, keys)
    done = run.find_words(network, steps)
    while done < len(steps):
        done += run.strips(steps[done:]) or run.block(steps[done])
        if progress is not None:
            progress(len(keys) * done // len(steps), len(keys), "evaluating in groups")
    return run.read(network)


def _strip_of(rows: Sequence[Row], columns: Sequence[Writes]) -> _Strip | None:
    """The strip that the first two neurons are, if they are one: ``[v >= 2^k]``, minus 2^k to v itself."""
    if len(rows) < 2 or len(rows[0].weights) != 1 or rows[0].weights != rows[1].weights:
        return None
    (channel, weight), power = rows[0].weights[0], -rows[1].bias
    writes, back = dict(columns[0]), dict(columns[1])
    is_step = weight == 1 and power > 0 and rows[0].bias == 1 - power and power & (power - 1) == 0
    if not is_step or writes.get(channel) != -power or back != {c: -w for c, w in writes.items()}:
        return None
    return _Strip(channel, power.bit_length() - 1, {c: w for c, w in writes.items() if c != channel})


class _Keyed:
    """The state of all channels, in the order of the blocks."""

    def __init__(self, network: Network, keys: NDArray[np.int64]) -> None:
        key = Code(0, 1, keys)
        self.items = len(keys)
        self.group: Int[np.ndarray, " items"] = np.zeros(self.items, dtype=np.int64)
        self.chunks = 1
        self.state: list[Channel] = []
        for row in rows_of(network.embed):
            if row.weights:
                self.state.append(affine(key, sum(weight for _, weight in row.weights), row.bias))
            else:
                self.state.append(Common([row.bias]))

    def find_words(self, network: Network, steps: Sequence[_Step]) -> int:
        """Evaluate a first block that reads only the key and gives every chunk its word; returns how many blocks."""
        first = steps[0] if steps else None
        if first is None or any(not isinstance(self.state[c], Code) for row in first.rows for c, _ in row.weights):
            return 0
        codes = [s if isinstance(s, Code) else constant(self.items, s.values[0]) for s in self._known()]
        block = network.stages[0]
        assert not isinstance(block, Attention)
        target, words, self.group = words_of(first.rows, first.columns, block, codes)
        before = self.state[target]
        if not isinstance(before, Common):
            raise NotGrouped(f"block {first.name!r} writes words into a channel that holds the key")
        self.chunks = len(words)
        self.state = [Common(list(s.values) * self.chunks) if isinstance(s, Common) else s for s in self.state]
        self.state[target] = Common([word + before.values[0] for word in words])
        return 1

    def _known(self) -> Iterator[Common | Code]:
        for channel in self.state:
            assert not isinstance(channel, Differs)
            yield channel

    def strips(self, steps: Sequence[_Step]) -> int:
        """Evaluate a run of strips of consecutive digits at once; returns how many blocks, 0 if it is not one."""
        first = steps[0].strip
        if first is None:
            return 0
        channel = self.state[first.channel]
        written = {c for _, writes in steps[0].others for c, _ in writes}
        if not isinstance(channel, Common) or first.channel in written:
            return 0
        if min(channel.values) < 0 or max(channel.values) >> (first.digit + 1):
            return 0
        run: list[_Strip] = []
        for number, step in enumerate(steps):
            strip = step.strip
            follows = strip is not None and (number == 0 or (len(step.rows) == 2 and strip.channel == first.channel))
            if strip is None or not follows or strip.digit != first.digit - number:
                break
            if any(not isinstance(self.state[c], Common) for c in strip.writes):
                break
            run.append(strip)
        if not run:
            return 0
        hidden = [self._neuron(row, steps[0].name) for row, _ in steps[0].others]
        for strip in run:
            if strip.writes:
                digit = Common([value >> strip.digit & 1 for value in channel.values])
                for target, weight in strip.writes.items():
                    self._write(target, digit, weight, steps[0].name)
        rest = (1 << run[-1].digit) - 1
        self.state[first.channel] = Common([value & rest for value in channel.values])
        for value, (_, writes) in zip(hidden, steps[0].others, strict=True):
            for target, weight in writes:
                self._write(target, value, weight, steps[0].name)
        return len(run)

    def block(self, step: _Step) -> int:
        """Evaluate one block neuron by neuron; all of them read the state before it."""
        hidden = [self._neuron(row, step.name) for row in step.rows]
        for value, writes in zip(hidden, step.columns, strict=True):
            for target, weight in writes:
                self._write(target, value, weight, step.name)
        return 1

    def _neuron(self, row: Row, block: str) -> Channel:
        """``relu(weights * state + bias)``."""
        shared = [row.bias] * self.chunks
        own: list[tuple[Code | Differs, int]] = []
        for number, weight in row.weights:
            channel = self.state[number]
            if not isinstance(channel, Common):
                own.append((channel, weight))
            elif weight in (1, -1):
                pairs = zip(shared, channel.values, strict=True)
                shared = [s + v for s, v in pairs] if weight == 1 else [s - v for s, v in pairs]
            else:
                shared = [s + weight * v for s, v in zip(shared, channel.values, strict=True)]
        if not own:
            return Common([s if s > 0 else 0 for s in shared])
        if len(own) > 1:
            raise NotGrouped(f"block {block!r}: a neuron reads two channels that differ within a chunk")
        channel, weight = own[0]
        if isinstance(channel, Code):
            return Differs(self._exceeds(channel, weight, shared), least=1)
        if len(row.weights) == 1 and weight == 1 and row.bias == 0:
            return channel
        if weight > 0 or (max(shared) + weight * channel.least > 0 and bool(channel.on.any())):
            raise NotGrouped(f"block {block!r}: a gate is not closed by every key that differs")
        return self._spread(Common([s if s > 0 else 0 for s in shared]), ~channel.on)

    def _exceeds(self, code: Code, weight: int, shared: list[int]) -> Bool[np.ndarray, " items"]:
        """Where ``weight * code + shared > 0``: one division per chunk, one comparison per item."""
        step, base = weight * code.scale, weight * code.base
        over, shift = abs(step), abs(step).bit_length() - 1
        if step > 0:  # step e > -d  <=>  e > floor(-d / step)
            ends = [-(s + base) for s in shared]
        else:  # |step| e < d  <=>  e <= floor((d - 1) / |step|)
            ends = [s + base - 1 for s in shared]
        ends = [e >> shift for e in ends] if over == 1 << shift else [e // over for e in ends]
        limit = np.array([max(-INT64_MAX - 1, min(INT64_MAX, e)) for e in ends], dtype=np.int64)[self.group]
        on: Bool[np.ndarray, " items"] = code.small > limit if step > 0 else code.small <= limit
        return on

    def _spread(self, common: Common, where: Bool[np.ndarray, " items"] | None = None) -> Code:
        """The value of every item's chunk; 0 outside ``where``."""
        if max(abs(v) for v in common.values) >= SAFE:
            raise NotGrouped("a value of one item is too wide for int64")
        values = np.array(common.values, dtype=np.int64)
        if where is None:
            return Code(0, 1, values[self.group])
        small = np.zeros(self.items, dtype=np.int64)
        at = np.flatnonzero(where)
        small[at] = values[self.group[at]]
        return Code(0, 1, small)

    def _write(self, target: int, value: Channel, weight: int, block: str) -> None:
        """``state[target] += weight * value``."""
        before = self.state[target]
        if isinstance(value, Common) and not any(value.values):
            return
        if isinstance(value, Common) and isinstance(before, Common):
            pairs = zip(before.values, value.values, strict=True)
            self.state[target] = Common([b + weight * v for b, v in pairs])
        elif isinstance(value, Differs):
            self.state[target] = self._difference(before, value, weight, block)
        elif isinstance(before, Differs):
            raise NotGrouped(f"block {block!r} adds to the difference of the keys")
        else:
            code = before if isinstance(before, Code) else self._spread(before)
            self.state[target] = add(code, value if isinstance(value, Code) else self._spread(value), weight)

    def _difference(self, before: Channel, value: Differs, weight: int, block: str) -> Channel:
        if before is value and weight == -1:  # cleared
            return Common([0] * self.chunks)
        if weight > 0 and isinstance(before, Differs):
            return Differs(before.on | value.on, min(before.least, weight * value.least))
        if weight > 0 and isinstance(before, Common) and not any(before.values):
            return Differs(value.on, weight * value.least)
        raise NotGrouped(f"block {block!r} uses the difference of the keys in another way than as a gate")

    def read(self, network: Network) -> NDArray[np.int64]:
        row = rows_of(network.read)[0]
        total = constant(self.items, row.bias)
        for number, weight in row.weights:
            channel = self.state[number]
            if isinstance(channel, Differs):
                raise NotGrouped("the output reads the difference of the keys")
            total = add(total, channel if isinstance(channel, Code) else self._spread(channel), weight)
        return quotient(total, network.unit, NOT_A_LABEL)
