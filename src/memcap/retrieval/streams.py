"""Training and test sequences of a task, drawn from counter-based streams: any sample, in any order, nothing stored.

A stream is keyed by (seed, purpose); sample i of a stream reads the counters (i, block).  Four tokens a block by
multiply-shift ``(word · V) >> 32``, whose bias is below V/2³² of each probability.  Purposes: ``training``, ``test``,
``noise`` (label noise), ``position``; the frozen numbers have their own (``embeddings``).

Positions are exchangeable (the model has no positional code), so the engines keep the informative token at position 0,
"canonical order"; ``draw`` puts it at a random position unless told otherwise.  With several facts the token of fact k
stands at position k, and a ``Source`` looks at one fact: it swaps that fact's token to position 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int, Integer

from memcap.errors import ConfigurationError, DataError
from memcap.random import stream_key
from memcap.retrieval.philox import philox_plain
from memcap.retrieval.task import RetrievalTask, one_of

PURPOSES = ("training", "test")
_TWO32 = 2**32


@dataclass(frozen=True)
class Sequences:
    """Materialised sequences: ``tokens`` (n, L), the informative ``position`` (n,) and the ``labels`` (n,).

    With K > 1 facts a sequence, ``position`` and ``labels`` are (n, K).
    """

    tokens: Int[np.ndarray, "n length"]
    position: Int[np.ndarray, "n *facts"]
    labels: Int[np.ndarray, "n *facts"]

    @property
    def marked(self) -> Bool[np.ndarray, "n *facts length"]:
        """True where a position carries the trigger (of each fact)."""
        return np.asarray(np.arange(self.tokens.shape[1]) == self.position[..., None])

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Source:
    """Where an engine reads its samples from: a stream of the task, or given arrays in canonical order.

    Attributes:
        count: number of samples.
        key, noise_key: two 32-bit words each.
        noise: label noise in units of 2⁻³².
        thresholds: (V,) uint64 cumulative probabilities in units of 2⁻³² for unequal frequencies, else empty.
        permutation: (V,) the label of each token.
        tokens, labels: given arrays (n, L) and (n, K), or empty.
        fact: which fact of a sequence is asked for; its token is read at position 0, token 0 in its place.
    """

    count: int
    length: int
    key: tuple[int, int]
    noise_key: tuple[int, int]
    noise: int
    thresholds: Integer[np.ndarray, " thresholds"]
    permutation: Int[np.ndarray, " vocabulary"]
    tokens: Int[np.ndarray, "n width"]
    labels: Int[np.ndarray, "n facts"]
    fact: int = 0

    @property
    def vocabulary(self) -> int:
        return len(self.permutation)


def two_words(seed: int, purpose: str) -> tuple[int, int]:
    """The 64-bit Philox key of a stream, as two 32-bit words."""
    key = stream_key(seed, f"retrieval:{purpose}")
    return key % _TWO32, (key >> 32) % _TWO32


def source(task: RetrievalTask, permutation: np.ndarray, purpose: str, count: int, seed: int) -> Source:
    """The stream ``purpose`` of a task; only ``training`` has noisy labels."""
    one_of("purpose", purpose, PURPOSES)
    return Source(
        count=count,
        length=task.length,
        key=two_words(seed, purpose),
        noise_key=two_words(seed, "noise"),
        noise=int(task.label_noise * _TWO32) if purpose == "training" else 0,
        thresholds=_thresholds(task),
        permutation=np.ascontiguousarray(permutation, dtype=np.int64),
        tokens=np.zeros((0, 0), np.int32),
        labels=np.zeros((0, 1), np.int64),
    )


def given(sequences: Sequences, permutation: np.ndarray) -> Source:
    """A source that reads materialised sequences; the informative tokens are moved to the first positions."""
    rows = np.arange(len(sequences))
    position = sequences.position if sequences.position.ndim == 2 else sequences.position[:, None]
    place = np.full(sequences.tokens.shape, position.shape[1])
    place[rows[:, None], position] = np.arange(position.shape[1])
    order = place.argsort(axis=1, kind="stable")
    tokens = np.take_along_axis(sequences.tokens, order, axis=1).astype(np.int32)
    return Source(
        count=len(rows),
        length=tokens.shape[1],
        key=(0, 0),
        noise_key=(0, 0),
        noise=0,
        thresholds=np.zeros(0, np.uint64),
        permutation=np.ascontiguousarray(permutation, dtype=np.int64),
        tokens=np.ascontiguousarray(tokens),
        labels=np.ascontiguousarray(sequences.labels.reshape(position.shape), dtype=np.int64),
    )


def draw(
    task: RetrievalTask,
    permutation: np.ndarray,
    purpose: str = "training",
    start: int = 0,
    stop: int | None = None,
    *,
    seed: int | None = None,
    canonical: bool = False,
) -> Sequences:
    """Samples ``start`` … ``stop`` of a stream, in plain NumPy (the definition that compiled code is tested against).

    Args:
        permutation: (V,) the label of each token, from ``embeddings.draw_embeddings``.
        purpose: ``training`` or ``test``.
        stop: exclusive; ``task.samples`` when None.
        seed: the task's own when None.
        canonical: keep the informative token at position 0 (that of fact k at position k).

    Raises:
        ConfigurationError: if the range is empty backwards or a name is unknown.
    """
    stop = task.samples if stop is None else stop
    if not 0 <= start <= stop:
        raise ConfigurationError(f"a range of samples needs 0 <= start <= stop, got start={start}, stop={stop}")
    seed = task.seed if seed is None else seed
    origin = source(task, permutation, purpose, stop, seed)
    samples = np.arange(start, stop, dtype=np.uint64)
    blocks = -(-task.length // 4)
    words = _words(samples, blocks, origin.key).reshape(len(samples), 4 * blocks)[:, : task.length]
    if origin.thresholds.size:
        tokens = np.searchsorted(origin.thresholds, words, side="right").astype(np.int64)
    else:
        tokens = ((words * np.uint64(task.vocabulary)) >> np.uint64(32)).astype(np.int64)
    labels = origin.permutation[tokens[:, : task.facts]]
    if origin.noise:
        coin = _words(samples, task.facts, origin.noise_key)
        other = ((coin[:, :, 1] * np.uint64(task.vocabulary)) >> np.uint64(32)).astype(np.int64)
        labels = np.where(coin[:, :, 0] < np.uint64(origin.noise), other, labels)
    order = np.tile(np.arange(task.length), (len(samples), 1))
    if not canonical:  # the first steps of a Fisher-Yates shuffle give every fact a position of its own
        blocks = -(-task.facts // 4)
        words = _words(samples, blocks, two_words(seed, f"position:{purpose}")).reshape(len(samples), 4 * blocks)
        rows = np.arange(len(samples))
        for k in range(task.facts):
            place = k + ((words[:, k] * np.uint64(task.length - k)) >> np.uint64(32)).astype(np.int64)
            order[rows, k], order[rows, place] = order[rows, place], order[rows, k]
        moved = np.empty_like(tokens)
        np.put_along_axis(moved, order, tokens, axis=1)
        tokens = moved
    position = order[:, : task.facts]
    if task.facts == 1:
        position, labels = position[:, 0], labels[:, 0]
    return Sequences(tokens, position, labels)


def check_answers(sequences: Sequences, permutation: np.ndarray) -> Int[np.ndarray, "n *facts"]:
    """The one right answer of every row (and fact), found from the marks alone and independently of the generator.

    Raises:
        DataError: naming the first row (counted from 0) that has no mark, several marks with different answers, a mark
            shared by two facts, or a token outside the vocabulary; or if ``permutation`` is not one.
    """
    answer_of = [int(label) for label in permutation]
    if sorted(answer_of) != list(range(len(answer_of))):
        raise DataError("the labels of the tokens are not a permutation: two tokens share an answer")
    answers = []
    several = sequences.position.ndim == 2
    marks = sequences.marked if several else sequences.marked[:, None]
    for row, (tokens, facts) in enumerate(zip(sequences.tokens.tolist(), marks.tolist(), strict=True)):
        outside = [token for token in tokens if not 0 <= token < len(answer_of)]
        if outside:
            raise DataError(f"row {row}: token {outside[0]} lies outside the vocabulary 0 … {len(answer_of) - 1}")
        for fact, marked in enumerate(facts):
            found = {answer_of[token] for token, mark in zip(tokens, marked, strict=True) if mark}
            if len(found) != 1 or sum(marked) != 1:
                where = f"row {row}, fact {fact}" if several else f"row {row}"
                raise DataError(f"{where}: expected exactly one marked token, got {sum(marked)}")
            answers.append(found.pop())
        shared = [j for j, column in enumerate(zip(*facts, strict=True)) if sum(column) > 1]
        if shared:
            raise DataError(f"row {row}: position {shared[0]} carries the triggers of several facts")
    return np.array(answers, dtype=np.int64).reshape(sequences.position.shape)


def _words(samples: np.ndarray, blocks: int, key: tuple[int, int]) -> np.ndarray:
    """(n, blocks, 4) words as uint64, for counters (sample low, sample high, block, 0)."""
    counter = np.zeros((len(samples), blocks, 4), np.uint32)
    counter[:, :, 0] = (samples & np.uint64(_TWO32 - 1)).astype(np.uint32)[:, None]
    counter[:, :, 1] = (samples >> np.uint64(32)).astype(np.uint32)[:, None]
    counter[:, :, 2] = np.arange(blocks, dtype=np.uint32)
    words = np.empty(counter.shape, np.uint64)
    words.reshape(-1, 4)[:] = philox_plain(counter.reshape(-1, 4), key)
    return words


def _thresholds(task: RetrievalTask) -> np.ndarray:
    """Token t is drawn when thresholds[t-1] <= word < thresholds[t]; empty for uniform frequencies."""
    if task.zipf_exponent == 0:
        return np.zeros(0, np.uint64)
    ends: np.ndarray = np.floor(np.cumsum(task.token_probabilities()) * _TWO32).astype(np.uint64)
    ends[-1] = _TWO32
    return ends
