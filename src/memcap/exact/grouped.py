"""Grouped evaluation: the labels of millions of keys from the stored weights, exactly, at array speed.

The word of a key is a big integer shared by its group (bucket, chunk); what differs inside a group is small.  So the
word channel is ``H + scale * rho`` with one Python integer H per group and an int64 rho per item, every other channel
is ``base + scale * small``, and a fold of the word is decided by H for a whole group at once.  Each assumption is
checked while evaluating (`NotGrouped` otherwise); only stored entries are read, nothing is taken from the construction.

`evaluate` is the reference it is tested against.  Derived here: docs/theory/exact.md, "Grouped evaluation".
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from memcap.exact.evaluate import NOT_A_LABEL, Progress
from memcap.exact.grouped_codes import SAFE, Code, NotGrouped, add, affine, constant, quotient, relu
from memcap.exact.grouped_keyed import evaluate_keyed, keeps_its_key
from memcap.exact.grouped_words import Row, columns_of, rows_of, words_of
from memcap.exact.inputs import Rows, as_rows
from memcap.exact.network import Attention, Block, Network

__all__ = ["NotGrouped", "evaluate_grouped"]

FEW = 16
"""A block with at most this many neurons is evaluated neuron by neuron; wider ones must be words."""
_SHARE = 2**16


def evaluate_grouped(
    network: Network,
    keys: Rows | Sequence[int],
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> NDArray[np.int64]:
    """The label of every key, equal to `evaluate`, for networks whose words are shared by groups of keys.

    Args:
        network: of single integer keys; step, bucket, packed and keyed networks have the structure.
        keys: (items,) integers in the network's range.
        workers: processes (spawned); results do not depend on it.
        progress: called after every share of items.

    Returns:
        int64 labels (items,); `NOT_A_LABEL` where the output is not ``unit * label``.

    Raises:
        DomainError: a key outside the network's range.
        NotGrouped: the network does not have the structure; `evaluate` takes it.
    """
    array = as_rows(network, keys)
    if network.inputs != ("key",):
        raise NotGrouped("grouped evaluation takes networks of one integer key")
    if len(array) == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype == object or max(-int(array.min()), int(array.max())) >= SAFE:
        raise NotGrouped("grouped evaluation takes keys below 2^62")
    if workers > 1:
        shares = np.array_split(array, workers)
        with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
            return np.concatenate(list(pool.map(_share, [(network, share) for share in shares])))
    if keeps_its_key(network):
        with contextlib.suppress(NotGrouped):
            return evaluate_keyed(network, array, progress)
    return _Grouped(network, progress).labels(array)


def _share(job: tuple[Network, NDArray[np.int64]]) -> NDArray[np.int64]:
    return evaluate_grouped(*job)


class _Grouped:
    """One evaluation: the stages before the words on all items, the others share by share of the grouped items."""

    def __init__(self, network: Network, progress: Progress | None) -> None:
        self.network, self.progress = network, progress
        self.blocks: list[tuple[list[Row], list[list[tuple[int, int]]], Block]] = []
        for stage in network.stages:
            if isinstance(stage, Attention):
                raise NotGrouped("grouped evaluation takes networks without attention")
            self.blocks.append((rows_of(stage.layers[0]), columns_of(stage.layers[-1]), stage))

    def labels(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        state = self._embed(keys)
        for number, (rows, columns, block) in enumerate(self.blocks):
            if len(block.layers) == 2 and len(rows) <= FEW and not self._is_words(number):
                self._small_block(rows, columns, state)
                continue
            target, words, group = words_of(rows, columns, block, state)
            return self._grouped(number + 1, state, target, words, group)
        return self._read(state)

    def _is_words(self, number: int) -> bool:
        """Whether block ``number`` is the first to write the channel that is read out, and writes no other."""
        out = {c for row in rows_of(self.network.read) for c, _ in row.weights}
        written = [{c for column in columns for c, _ in column} for _, columns, _ in self.blocks]
        return written[number] == out and not any(w & out for w in written[:number])

    def _embed(self, keys: NDArray[np.int64]) -> list[Code]:
        key = Code(0, 1, keys)
        state = []
        for row in rows_of(self.network.embed):
            code = constant(len(keys), row.bias)
            for _, weight in row.weights:
                code = add(code, key, weight)
            state.append(code)
        return state

    def _before_relu(self, row: Row, state: list[Code]) -> Code:
        if len(row.weights) == 1:
            channel, weight = row.weights[0]
            return affine(state[channel], weight, row.bias)
        code = constant(len(state[0].small), row.bias)
        for channel, weight in row.weights:
            code = add(code, state[channel], weight)
        return code

    def _small_block(self, rows: list[Row], columns: list[list[tuple[int, int]]], state: list[Code]) -> None:
        hidden = [relu(self._before_relu(row, state)) for row in rows]
        for code, writes in zip(hidden, columns, strict=True):
            for channel, weight in writes:
                state[channel] = add(state[channel], code, weight)

    def _read(self, state: list[Code]) -> NDArray[np.int64]:
        code = self._before_relu(rows_of(self.network.read)[0], state)
        return quotient(code, self.network.unit, NOT_A_LABEL)

    def _grouped(
        self, number: int, state: list[Code], target: int, words: list[int], group: Int[np.ndarray, " items"]
    ) -> NDArray[np.int64]:
        order = np.argsort(group, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(words)))])
        labels = np.empty(len(order), dtype=np.int64)
        first = done = 0
        while first < len(words):
            last = int(np.searchsorted(bounds, bounds[first] + _SHARE, side="right")) - 1
            last = min(max(last, first + 1), len(words))
            items = order[bounds[first] : bounds[last]]
            share = [code.take(items) for code in state]
            split = _Split(words[first:last], np.diff(bounds[first : last + 1]), target, share[target])
            labels[items] = self._rest(number, share, target, split)
            first, done = last, done + len(items)
            if self.progress is not None:
                self.progress(done, len(order), "evaluating in groups")
        return labels

    def _rest(self, number: int, state: list[Code], target: int, split: _Split) -> NDArray[np.int64]:
        joined = False
        for rows, columns, block in self.blocks[number:]:
            if len(block.layers) != 2 or len(rows) > FEW:
                raise NotGrouped(f"block {block.name!r} comes after the words and is not a fold")
            folds: dict[int, _Fold] = {}
            for i, row in enumerate(rows):
                if not joined and any(channel == target for channel, _ in row.weights):
                    fold = split.fold(row, state)
                    if fold is None:
                        state[target] = split.join(state)
                        joined = True
                        folds = {}
                    else:
                        folds[i] = fold
            if joined:
                self._small_block(rows, columns, state)
            else:
                self._decided_block(rows, columns, block, state, split, folds)
        if not joined:
            state[target] = split.join(state)
        return self._read(state)

    def _decided_block(
        self,
        rows: list[Row],
        columns: list[list[tuple[int, int]]],
        block: Block,
        state: list[Code],
        split: _Split,
        folds: dict[int, _Fold],
    ) -> None:
        """A block whose folds of the word are decided: all neurons read the state before it."""
        hidden = []
        for i, row in enumerate(rows):
            hidden.append(constant(0) if i in folds else self._before_relu(row, state))
        for i, (row, code, writes) in enumerate(zip(rows, hidden, columns, strict=True)):
            to = dict(writes)
            if i in folds:
                if to.keys() != {split.target}:
                    raise NotGrouped(f"block {block.name!r} copies a word into another channel")
                split.apply(folds[i], to[split.target])
                continue
            into = to.pop(split.target, 0)
            low = code.base + code.scale * code.extremes[0]
            if not to and len(row.weights) == 1 and low >= 0:  # always on: a multiple of a channel, kept as such
                channel, weight = row.weights[0]
                split.linear[channel] = split.linear.get(channel, 0) + into * weight
                split.shift(into * row.bias)
                continue
            code = relu(code)
            into -= sum(split.linear.get(channel, 0) * weight for channel, weight in to.items())
            if into:
                split.rho = add(split.rho, code, into)
            for channel, weight in to.items():
                state[channel] = add(state[channel], code, weight)


@dataclass(frozen=True)
class _Fold:
    """A decided neuron ``relu(weight * word + bias)``: the groups in which it is on."""

    on: list[bool]
    weight: int
    bias: int


class _Split:
    """The word channel: ``words[g] + rho + sum linear[c] * state[c]`` for the items of group g, which are contiguous.

    ``linear`` holds multiples of other channels that later neurons take away again; as numbers they would be too wide.
    """

    def __init__(self, words: Sequence[int], sizes: Int[np.ndarray, " groups"], target: int, before: Code) -> None:
        self.words = list(words)
        self.sizes = sizes
        self.target = target
        self.rho = before
        self.linear: dict[int, int] = {}
        self.starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def fold(self, row: Row, state: list[Code]) -> _Fold | None:
        """The neuron, if its sign is the same for all items of a group, in every group; else None."""
        weights = dict(row.weights)
        weight = weights.pop(self.target)
        if abs(weight) != 1:
            raise NotGrouped(f"a neuron reads the word with weight {weight}; a fold reads it with 1 or -1")
        for channel in weights.keys() | self.linear.keys():
            # keep the multiple of this channel that the neuron takes away: what is left is narrow
            take = -weights.get(channel, 0) * weight
            more = self.linear.get(channel, 0) - take
            if more:
                self.rho = add(self.rho, state[channel], more)
            self.linear[channel] = take
        at = -weight * row.bias - self.rho.base  # the neuron is on where weight * (word - at + scale * small) > 0
        low, high = self.rho.extremes
        above, below = at - self.rho.scale * low, at - self.rho.scale * high
        over = [word >= above for word in self.words]
        if all(word <= below for word, o in zip(self.words, over, strict=True) if not o):
            return _Fold(over if weight > 0 else [not o for o in over], weight, row.bias)
        lows = np.minimum.reduceat(self.rho.small, self.starts).tolist()
        highs = np.maximum.reduceat(self.rho.small, self.starts).tolist()
        for g, word in enumerate(self.words):
            if word >= at - self.rho.scale * lows[g]:
                over[g] = True
            elif word > at - self.rho.scale * highs[g]:
                return None
        return _Fold(over if weight > 0 else [not o for o in over], weight, row.bias)

    def apply(self, fold: _Fold, weight: int) -> None:
        """Add ``weight`` times the neuron to the channel: it is multiplied by ``1 + weight * fold.weight`` where on."""
        factor = 1 + weight * fold.weight
        low, high = self.rho.extremes
        if max(abs(low), abs(high)) * abs(factor) >= SAFE:
            raise NotGrouped("a value of one item is too wide for int64 beside the common part")
        base, change = self.rho.base, weight * fold.bias
        self.words = [
            factor * (word + base) + change if on else word + base for word, on in zip(self.words, fold.on, strict=True)
        ]
        per_group = np.where(np.array(fold.on), factor, 1)
        self.rho = Code(0, self.rho.scale, self.rho.small * np.repeat(per_group, self.sizes))

    def shift(self, amount: int) -> None:
        self.words = [word + amount for word in self.words]

    def join(self, state: list[Code]) -> Code:
        """The channel as one code, when the words have become close to each other."""
        base = self.words[0]
        scale = math.gcd(self.rho.scale, *(w - base for w in self.words))
        apart = [(w - base) // scale for w in self.words]
        if max(abs(a) for a in apart) >= SAFE // 2:
            raise NotGrouped("a fold is not decided by the words, which differ too much for int64")
        code = add(Code(base, scale, np.repeat(np.array(apart, dtype=np.int64), self.sizes)), self.rho, 1)
        for channel, weight in self.linear.items():
            code = add(code, state[channel], weight)
        return code
