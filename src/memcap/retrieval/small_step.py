"""The small-step engine: three gradient steps for η → 0, attention only, from count statistics and Gram products.

Never an N × L × d tensor: three passes over regenerated tokens, with a label × token table (``table``) or with sums of
embeddings by label (``vectors``), chosen by cost.  Equal to ``closed_form`` in its limit.  Blocks of samples are fixed
by N alone and added in order, so the result is the same bits for any number of threads.

Source: derived here: docs/theory/retrieval-engines.md; the steps are those of arXiv 2603.15923.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from memcap.errors import ConfigurationError, RunError
from memcap.retrieval import token_kernels
from memcap.retrieval.closed_form import reading
from memcap.retrieval.embeddings import Embeddings
from memcap.retrieval.learned import Learned, score_ranks, token_weights
from memcap.retrieval.ordered import ordered_sum, product
from memcap.retrieval.step_sizes import StepSizes, score_scale
from memcap.retrieval.streams import Source
from memcap.retrieval.task import RetrievalTask, one_of

FORMS = ("auto", "table", "vectors")
SMALLEST_BLOCK, MOST_BLOCKS = 4096, 32
LARGEST_TABLE = 2**26
"""Entries of a table beyond which it is never chosen (512 MiB)."""


def chosen_form(task: RetrievalTask) -> str:
    """``table`` or ``vectors``, by estimated nanoseconds on one core; depends on the task alone."""
    pairs, square = float(task.samples) * task.length, float(task.vocabulary) ** 2
    blocks = len(block_ranges(task.samples))
    table = 3 * pairs * 2.5 + square * (0.3 * task.dimension + 3.0 * blocks)
    vectors = pairs * (3 * 2.0 + 0.7 * task.dimension) + task.vocabulary * task.dimension * 3.0 * blocks
    return "table" if square <= LARGEST_TABLE and table <= vectors else "vectors"


def block_ranges(count: int) -> list[tuple[int, int]]:
    """Fixed blocks of samples: at most 32, of at least 4096, the same for any number of threads."""
    size = max(SMALLEST_BLOCK, -(-count // MOST_BLOCKS))
    return [(start, min(start + size, count)) for start in range(0, count, size)]


def small_step(
    task: RetrievalTask,
    embeddings: Embeddings,
    samples: Source,
    sizes: StepSizes,
    *,
    steps: int = 3,
    threads: int = 1,
    form: str = "auto",
) -> Learned:
    """Take one, two or three infinitesimal gradient steps over ``samples``; arguments as in ``closed_form``.

    Args:
        form: ``table`` (V × V), ``vectors`` (V × d memory) or ``auto``.

    Raises:
        ConfigurationError: for a task with an MLP, several facts a sequence or finite steps (use ``closed_forms``).
        RunError: if a number is not finite.
    """
    one_of("form", form, FORMS)
    if task.width or not sizes.limit:
        raise ConfigurationError("the small-step engine has no MLP and no step sizes; use the closed form")
    if task.facts > 1:
        raise ConfigurationError(f"the small-step engine is for one fact a sequence, got {task.facts}; use closed-form")
    form = chosen_form(task) if form == "auto" else form
    passes = Passes(task, embeddings, samples, threads, form)
    first, seen = passes.first()
    direction, alpha, beta = np.zeros(task.dimension), np.zeros(task.vocabulary), 0.0
    if steps > 1 and task.attention not in ("uniform", "oracle"):
        alpha, beta = passes.gains(first)
        direction = product(embeddings.tokens.T, alpha) + beta * embeddings.trigger
    token_scores, trigger_score = product(embeddings.tokens, direction), float(embeddings.trigger @ direction)
    scale = score_scale(task, sizes, float(embeddings.end @ embeddings.end))
    readout = first
    if task.attention != "uniform" and steps == 3:
        readout = passes.attended(token_scores, trigger_score, scale)
    if not all(np.isfinite(part).all() for part in (readout, token_scores, alpha)) or not math.isfinite(beta):
        raise RunError("failed: a number is not finite after the gradient steps")
    return Learned(
        readout=readout,
        direction=direction,
        token_scores=token_scores,
        trigger_score=trigger_score,
        scale=scale,
        alpha=alpha,
        drive=beta,
        seen=seen > 0,
        reading=reading(task, steps),
    )


class Passes:
    """The three passes over one source, with tables or vectors by label."""

    def __init__(self, task: RetrievalTask, embeddings: Embeddings, samples: Source, threads: int, form: str) -> None:
        self.task, self.embeddings, self.samples, self.threads, self.form = task, embeddings, samples, threads, form
        self.packed = token_kernels.pack(samples)
        self.columns = task.vocabulary if form == "table" else task.dimension
        self.centred = embeddings.labels - embeddings.labels.mean(axis=0)

    def over_blocks(self, work: Callable[[int, int], tuple[Any, ...]]) -> tuple[Any, ...]:
        return ordered_sum(block_ranges(self.samples.count), lambda r: work(*r), self.threads)

    def readout(self, sums: np.ndarray, marked: np.ndarray) -> np.ndarray:
        """Σ_y centred[y] ⊗ (Σ of values under y) / N, (d, d); ``marked`` (V,) is the attention on the trigger.

        Centring the labels' embeddings is centring the rows of the sums over labels.
        """
        values = product(sums.astype(np.float64), self.embeddings.tokens) if self.form == "table" else sums
        if self.task.trigger_in_value:
            values = values + np.outer(marked, self.embeddings.trigger)
        return product(self.centred.T, values) / self.samples.count

    def first(self) -> tuple[np.ndarray, np.ndarray]:
        """G1 and how often each token was informative."""
        vocabulary = self.task.vocabulary

        def work(start: int, stop: int) -> tuple[Any, ...]:
            seen, counts = np.zeros(vocabulary, np.int64), np.zeros(vocabulary, np.int64)
            sums = np.zeros((vocabulary, self.columns), np.int64 if self.form == "table" else np.float64)
            if self.form == "table":
                token_kernels.count_pairs(self.packed, start, stop, sums, seen, counts)
            else:
                token_kernels.sum_embeddings(self.packed, start, stop, self.embeddings.tokens, sums, seen, counts)
            return sums, seen, counts

        sums, seen, counts = self.over_blocks(work)
        return self.readout(sums, counts.astype(np.float64)) / self.task.length, seen

    def gains(self, first: np.ndarray) -> tuple[np.ndarray, float]:
        """α and β of the attention step, from w_y = G1ᵀ (z_out[y] - mean)."""
        vectors = product(self.centred, first)
        marked_gain = vectors @ self.embeddings.trigger if self.task.trigger_in_value else np.zeros(len(vectors))
        table = product(vectors, self.embeddings.tokens.T) if self.form == "table" else None

        def work(start: int, stop: int) -> tuple[Any, ...]:
            alpha = np.zeros(self.task.vocabulary)
            if table is not None:
                beta = token_kernels.gains_from_table(self.packed, start, stop, table, marked_gain, alpha)
            else:
                beta = token_kernels.gains_from_vectors(
                    self.packed, start, stop, self.embeddings.tokens, vectors, marked_gain, alpha
                )
            return alpha, beta

        alpha, beta = self.over_blocks(work)
        pairs = float(self.samples.count) * self.task.length
        return alpha / pairs, float(beta / pairs)

    def attended(self, token_scores: np.ndarray, trigger_score: float, scale: float) -> np.ndarray:
        """G2 under the learned attention (or the oracle)."""
        vocabulary, tokens = self.task.vocabulary, self.embeddings.tokens
        hard = math.isinf(scale) or self.task.attention == "oracle" or self.task.length == 1
        if hard:
            rank, rank_marked = score_ranks(token_scores, trigger_score)
            if self.task.attention == "oracle" or self.task.length == 1:
                rank_marked = np.full_like(rank_marked, rank.max() + 1)
        else:
            weight, weight_marked = token_weights(token_scores, trigger_score, scale)
            score, score_marked = scale * token_scores, scale * (token_scores + trigger_score)

        def work(start: int, stop: int) -> tuple[Any, ...]:
            won = np.zeros(vocabulary)
            if self.form == "table":
                sums = np.zeros((vocabulary, vocabulary), np.int64 if hard else np.float64)
                if hard:
                    token_kernels.count_winners(self.packed, start, stop, rank, rank_marked, sums, won)
                else:
                    token_kernels.weigh_pairs(
                        self.packed, start, stop, weight, weight_marked, score, score_marked, sums, won
                    )
                return sums, won
            sums = np.zeros((vocabulary, self.columns))
            if hard:
                token_kernels.sum_winners(self.packed, start, stop, tokens, rank, rank_marked, sums, won)
            else:
                token_kernels.sum_weighted(
                    self.packed, start, stop, tokens, weight, weight_marked, score, score_marked, sums, won
                )
            return sums, won

        return self.readout(*self.over_blocks(work))
