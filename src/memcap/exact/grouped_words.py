"""A network's blocks as neurons, and the word that a block of them gives to every item.

A *word block* writes one channel that was constant so far.  Its value is either a sum of steps of one channel that is
constant wherever an item lies, or it is evaluated once per distinct combination of the channels it reads.  Called by
`grouped` and `grouped_keyed`; what happens to the words later is theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from memcap.exact.affine import INT64_MAX, Affine
from memcap.exact.grouped_codes import SAFE, Code, NotGrouped
from memcap.exact.network import Block

MOST_WORK = 10**8
"""Most multiplications of big integers that finding the words may take."""


@dataclass(frozen=True)
class Row:
    """One neuron: weights by input position, bias."""

    weights: tuple[tuple[int, int], ...]
    bias: int


def rows_of(layer: Affine) -> list[Row]:
    terms: list[list[tuple[int, int]]] = [[] for _ in range(layer.outputs)]
    for r, c, w in zip(layer.row.tolist(), layer.column.tolist(), layer.weight.tolist(), strict=True):
        terms[r].append((c, int(w)))
    return [Row(tuple(t), int(b)) for t, b in zip(terms, layer.bias.tolist(), strict=True)]


def columns_of(layer: Affine) -> list[list[tuple[int, int]]]:
    """Per hidden neuron: (channel, weight) of what it writes."""
    if any(int(b) != 0 for b in layer.bias):
        raise NotGrouped("a block's last map has a bias")
    found: list[list[tuple[int, int]]] = [[] for _ in range(layer.inputs)]
    for r, c, w in zip(layer.row.tolist(), layer.column.tolist(), layer.weight.tolist(), strict=True):
        found[c].append((r, int(w)))
    return found


def words_of(
    rows: list[Row], columns: list[list[tuple[int, int]]], block: Block, state: list[Code]
) -> tuple[int, list[int], Int[np.ndarray, " items"]]:
    """The channel a word block writes, the words, and every item's group."""
    targets = {channel for writes in columns for channel, _ in writes}
    read = sorted({channel for row in rows for channel, _ in row.weights})
    if len(targets) != 1 or not read or targets & set(read):
        raise NotGrouped(f"block {block.name!r} with {len(rows)} neurons does not write words into one fresh channel")
    target = targets.pop()
    if len(read) == 1 and len(block.layers) == 2:
        steps = steps_of(rows, columns, state[read[0]])
        if steps is not None:
            return target, *steps
    first, group = _distinct([state[channel].small for channel in read])
    if len(first) * sum(layer.nonzero for layer in block.layers) > MOST_WORK:
        raise NotGrouped(f"block {block.name!r} distinguishes {len(first)} groups: too many to hold their words")
    hidden = np.zeros((len(state), len(first)), dtype=object)
    for channel in read:
        code = state[channel]
        hidden[channel] = code.small[first].astype(object) * code.scale + code.base
    for layer in block.layers[:-1]:
        hidden = np.maximum(layer.to_dense().astype(object) @ hidden + layer.bias.astype(object)[:, None], 0)
    return target, (block.layers[-1].to_dense().astype(object)[target] @ hidden).tolist(), group


def _distinct(columns: list[NDArray[np.int64]]) -> tuple[Int[np.ndarray, " groups"], Int[np.ndarray, " items"]]:
    """The first item of every distinct combination of values, and every item's combination."""
    joint = np.zeros(len(columns[0]), dtype=np.int64)
    size = 1
    for column in columns:
        low = int(column.min())
        span = int(column.max()) - low + 1
        size *= span
        if size >= SAFE:
            raise NotGrouped("the channels that words are read from take too many values")
        joint = joint * span + (column - low)
    _, first, group = np.unique(joint, return_index=True, return_inverse=True)
    return first, group.reshape(-1)


def steps_of(
    rows: list[Row], columns: list[list[tuple[int, int]]], code: Code
) -> tuple[list[int], Int[np.ndarray, " items"]] | None:
    """Words of a function of one channel that is constant wherever an item lies, or None if it is not."""
    ends = []  # (first small at which the neuron is on, slope, intercept), in units of the output
    for row, writes in zip(rows, columns, strict=True):
        if not row.weights or not writes:
            return None
        weight = row.weights[0][1] * code.scale
        bias = row.weights[0][1] * code.base + row.bias
        if weight <= 0:
            return None
        out = writes[0][1]
        ends.append((-(bias // weight), out * weight, out * bias))  # smallest integer e with weight e + bias >= 0
    ends.sort()
    edges = np.array([max(-INT64_MAX, min(INT64_MAX, e)) for e, _, _ in ends], dtype=np.int64)
    region = np.searchsorted(edges, code.small, side="right")
    occupied = np.bincount(region, minlength=len(ends) + 1) > 0
    alone = np.concatenate([edges[1:] - 1 == edges[:-1], [False]])  # regions of a single integer
    slope = value = 0
    words: list[int] = []
    number = np.zeros(len(ends) + 1, dtype=np.int64)
    if occupied[0]:
        words.append(0)
    for i, (end, more, constant_part) in enumerate(ends):
        slope += more
        value += constant_part
        if occupied[i + 1]:
            if slope != 0 and not alone[i]:
                return None
            word = slope * end + value
            if not words or word != words[-1]:
                words.append(word)
            number[i + 1] = len(words) - 1
    return words, number[region]
