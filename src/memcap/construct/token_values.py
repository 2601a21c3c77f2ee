"""Token values whose sums tell sequences apart: the token-wise half of a sequence memory.

A sequence is summed by one uniform attention, so its key is the sum of its tokens' values.  This file writes the
feed-forward blocks that compute a value per token (a `TokenFront`); nothing here looks at labels.

Three ways, all O(1) in the vocabulary except the last two:

* **fold hash** (default, float64 / int64 / exact): a tent map on the token number, five of its folds added with random
  12-bit weights.  About 30 parameters whatever the vocabulary.
* **bit hash** (float32): bits of a centred tent map, written as two short numbers, because float32 holds only 24 bits.
* **table**: a value for each of a few chosen tokens (see `distinguishing`), nine parameters a token.

Source: the token values of Kajitsuka & Sato (arXiv 2409.17677) are existence statements; these forms are derived here,
docs/theory/tokens.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memcap.construct.tent import choose_prime
from memcap.errors import PrecisionError
from memcap.exact.affine import Affine
from memcap.exact.network import Block
from memcap.random import stream


@dataclass(frozen=True, eq=False)
class TokenFront:
    """Token-wise blocks that write the value(s) of a token.

    Attributes:
        kind: ``fold-hash`` | ``bit-hash`` | ``table``.
        channels: residual channels it uses; the value channels come last.
        value_channels: names of the channels whose sums are the key (one, or two limbs).
        embed: ``(token, position)`` -> channels.
        blocks: token-wise blocks over ``channels``.
        values: symbol numbers (any shape) -> value(s) (..., limbs), int64: what the blocks compute.
        structure: JSON-able facts.
    """

    kind: str
    channels: tuple[str, ...]
    value_channels: tuple[str, ...]
    embed: Affine
    blocks: tuple[Block, ...]
    values: Callable[[NDArray[np.int64]], NDArray[np.int64]]
    structure: dict[str, object] = field(default_factory=dict)


def symbol_weights(length: int, ordered: bool) -> tuple[int, int]:
    """Weights of (token, position) in the symbol number: ``token * length + position``, or the token alone."""
    return (length, 1) if ordered and length > 1 else (1, 0)


def hash_bits(symbols: int, items: int, length: int) -> int:
    """Width of the hash state that makes sums of ``length`` values of ``items`` sequences distinct, as measured."""
    return math.ceil(
        max(math.log2(max(symbols, 2)) + 2, 2 * math.log2(max(items, 2)) + 6 - math.log2(length) / 2 - 15, 8)
    )


def fold_hash(
    symbols: int,
    items: int,
    length: int,
    ordered: bool,
    *,
    warm_up: int = 3,
    terms: int = 5,
    seed: int = 0,
    attempt: int = 0,
) -> TokenFront:
    """The fold hash: ``u <- |u - c_t|`` with c_t = 2^(T-t-1) M, and ``value = sum_k omega_k relu(c_k - u_k)``.

    Args:
        symbols: number of distinct symbols (padding included, times the length when ordered).
        items: sequences (or context-token pairs) to tell apart.
        length: positions of a sequence.
        warm_up, terms: rounds before and with output; 3 and 5 give 30 or 31 parameters.
        attempt: which try; another attempt draws other weights and another prime.

    Raises:
        PrecisionError: if a state would leave 2^52.
    """
    rounds = warm_up + terms
    generator = stream(seed, "token-hash", attempt)
    bits = hash_bits(symbols, items, length)
    modulus = choose_prime(2**bits + int(generator.integers(0, 2 ** max(bits - 3, 1))), rounds=rounds)
    spread = max(1, (modulus - 3) // (2 * max(symbols - 1, 1)))
    if 2 * spread * (symbols - 1) + 1 >= modulus:
        modulus = choose_prime(2 * spread * (symbols - 1) + 3, rounds=rounds)
    omega = [int(w) for w in generator.integers(2**11, 2**12, size=terms)]
    largest = modulus << rounds
    if largest >= 2**52 or sum(omega) * largest >= 2**62:
        raise PrecisionError(
            f"{symbols} token symbols of up to {(symbols - 1).bit_length()} bits need a hash state of "
            f"{largest.bit_length()} bits; at most 52 fit: map the tokens to 0..V-1 first"
        )

    # Each fold |u - c| = u - c + 2 relu(c - u) leaves its -c to the biases that read the channel later.
    token_weight, position_weight = symbol_weights(length, ordered)
    scale = 2**rounds
    entries = [(0, 0, scale * 2 * spread * token_weight), (0, 1, scale * 2 * spread * position_weight)]
    embed = Affine.from_entries(2, 2, entries, [scale, 0])

    blocks = []
    deferred = 0  # true state = channel - deferred
    for step in range(rounds):
        c = modulus << (rounds - step - 1)
        first = Affine.from_entries(1, 2, [(0, 0, -1)], [c + deferred])
        outputs = [(0, 0, 2)] if step < rounds - 1 else []
        if step >= warm_up:
            outputs.append((1, 0, omega[step - warm_up]))
        blocks.append(Block(f"token/{step}", (first, Affine.from_entries(2, 1, outputs))))
        deferred += c

    def values(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        state = (2 * spread * numbers + 1) * scale
        value = np.zeros(numbers.shape, dtype=np.int64)
        for step in range(rounds):
            c = modulus << (rounds - step - 1)
            if step >= warm_up:
                value += omega[step - warm_up] * np.maximum(c - state, 0)
            state = np.abs(state - c)
        return value[..., None]

    structure: dict[str, object] = {
        "modulus": modulus,
        "spread": spread,
        "warm_up": warm_up,
        "terms": terms,
        "attempt": attempt,
    }
    return TokenFront("fold-hash", ("token", "value"), ("value",), embed, tuple(blocks), values, structure)


def bit_hash(
    symbols: int,
    length: int,
    ordered: bool,
    *,
    limb_bits: tuple[int, int],
    seed: int = 0,
    attempt: int = 0,
    warm_up: int = 16,
) -> TokenFront:
    """The bit hash for narrow number formats: two limbs of pseudo-random bits of a centred tent map.

    ``p <- H - 2|p|`` on odd p; a limb takes the bit ``[p > 0] = relu(p) - relu(p - 1)`` and doubles: eleven parameters
    a bit.  (Adding the bit with its weight 2^k instead would save two, but partial sums of 2^k p leave float32.)

    Args:
        limb_bits: bits of the two limbs; their sums over ``length`` tokens must fit the key network's limbs.

    Raises:
        PrecisionError: if the symbols do not fit 22-bit states.
    """
    generator = stream(seed, "token-bits", attempt)
    plan = [1] * limb_bits[0] + [2] * limb_bits[1]  # the channel that takes each bit, top bit of a limb first
    rounds = warm_up + len(plan)
    height = choose_prime(2**21 + int(generator.integers(0, 2**19)), rounds=rounds)
    spread = (2 * height - 8) // (4 * max(symbols - 1, 1))
    if spread < 1:
        raise PrecisionError(f"{symbols} token symbols do not fit the 24 exact bits of float32; use weights='float64'")
    target = (height - 2) % 4  # p stays congruent to H - 2 mod 4
    centre = -2 * spread * (symbols - 1)
    centre += (target - centre) % 4
    token_weight, position_weight = symbol_weights(length, ordered)
    entries = [(0, 0, 4 * spread * token_weight), (0, 1, 4 * spread * position_weight)]
    embed = Affine.from_entries(3, 2, entries, [centre, 0, 0])

    blocks = []
    for step in range(rounds):
        neurons: list[tuple[int, int, int]] = [(0, 0, 1)]
        biases = [0]
        outputs: list[tuple[int, int, int]] = []
        advance = step < rounds - 1
        if advance:
            neurons.append((1, 0, -1))
            biases.append(0)
            outputs += [(0, 0, -3), (0, 1, -1)]
        if step >= warm_up:
            channel, place = plan[step - warm_up], len(biases)  # limb <- 2 limb + [p > 0]
            neurons += [(place, 0, 1), (place + 1, channel, 1)]
            biases += [-1, 0]
            outputs += [(channel, 0, 1), (channel, place, -1), (channel, place + 1, 1)]
        first = Affine.from_entries(len(biases), 3, neurons, biases)
        second = Affine.from_entries(3, len(biases), outputs, [height if advance else 0, 0, 0])
        blocks.append(Block(f"token/{step}", (first, second)))

    def values(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        state = 4 * spread * numbers + centre
        value = np.zeros((*numbers.shape, 2), dtype=np.int64)
        for step in range(rounds):
            if step >= warm_up:
                limb = plan[step - warm_up] - 1
                value[..., limb] = 2 * value[..., limb] + (state > 0)
            state = height - 2 * np.abs(state)
        return value

    structure: dict[str, object] = {
        "height": height,
        "spread": spread,
        "warm_up": warm_up,
        "limb_bits": list(limb_bits),
        "attempt": attempt,
    }
    channels = ("token", "value_sel", "value_q")
    return TokenFront("bit-hash", channels, channels[1:], embed, tuple(blocks), values, structure)


def value_table(length: int, ordered: bool, chosen: NDArray[np.int64], given: NDArray[np.int64]) -> TokenFront:
    """The values ``given`` for the symbols ``chosen`` (sorted), zero elsewhere: a hat of three neurons each."""
    token_weight, position_weight = symbol_weights(length, ordered)
    embed = Affine.from_entries(2, 2, [(0, 0, token_weight), (0, 1, position_weight)])
    count = len(chosen)
    neurons = [(3 * i + k, 0, 1) for i in range(count) for k in range(3)]
    biases = [1 - k - int(symbol) for symbol in chosen for k in range(3)]
    outputs = [(1, 3 * i + k, int(v) * (-2 if k == 1 else 1)) for i, v in enumerate(given) for k in range(3)]
    first = Affine.from_entries(3 * count, 2, neurons, biases)
    second = Affine.from_entries(2, 3 * count, outputs)

    def values(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        place = np.minimum(np.searchsorted(chosen, numbers), count - 1)
        return np.where(chosen[place] == numbers, given[place], 0)[..., None]

    block = Block("token/values", (first, second))
    return TokenFront("table", ("token", "value"), ("value",), embed, (block,), values, {"tokens": count})
