"""The three gradient steps in closed form, at any step size or in the small-step limit, streamed in fixed blocks.

Equal to ``reference`` to rounding, for attention only and for attention-MLP, without its N × L × d tensors: a block
holds B × L scalars, B × d hidden states and B × V logits.  Runs on any torch device; blocks are a fixed number of
samples, reduced in order, so that the result does not depend on the number of threads.

Source: derived here: docs/theory/retrieval-engines.md; the steps are those of arXiv 2603.15923.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from memcap.errors import RunError
from memcap.retrieval.activation import activation
from memcap.retrieval.embeddings import Embeddings
from memcap.retrieval.learned import Learned, score_ranks
from memcap.retrieval.ordered import ordered_sum
from memcap.retrieval.step_sizes import StepSizes, score_scale
from memcap.retrieval.streams import Source
from memcap.retrieval.task import RetrievalTask
from memcap.retrieval.token_kernels import materialise

LARGEST_BLOCK, LARGEST_LOGITS = 1024, 2**22
"""Samples a block, and entries of its logits; part of the definition of a run, since rounding depends on them."""


@dataclass(frozen=True)
class Step:
    """The frozen numbers on a device, and what the passes share."""

    tokens: Tensor  # (V, d)
    labels: Tensor  # (V, d)
    centred: Tensor  # (V, d): labels minus their mean, so that Σ_i Z_out (e_y - 1/V) ψᵀ = Σ_i centred[y_i] ψ_iᵀ
    trigger: Tensor
    mlp: Tensor | None
    phi: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    in_value: bool

    def features(self, hidden: Tensor) -> Tensor:
        """ψ of hidden states (B, d)."""
        return hidden if self.mlp is None else self.phi(hidden @ self.mlp.T) / math.sqrt(len(self.mlp))

    def mean_state(self, tokens: Tensor) -> Tensor:
        """Hidden states under uniform attention."""
        hidden = torch.nn.functional.embedding_bag(tokens, self.tokens, mode="mean")
        return hidden + self.trigger / tokens.shape[1] if self.in_value else hidden

    def weighted_state(self, tokens: Tensor, weights: Tensor) -> Tensor:
        """Hidden states under attention ``weights`` (B, L); the informative token is at position 0."""
        hidden = torch.nn.functional.embedding_bag(tokens, self.tokens, per_sample_weights=weights, mode="sum")
        return hidden + weights[:, :1] * self.trigger if self.in_value else hidden


def make_step(task: RetrievalTask, embeddings: Embeddings, device: str = "cpu", dtype: str = "float64") -> Step:
    """Move the frozen numbers to ``device``."""

    def put(array: np.ndarray) -> Tensor:
        return torch.as_tensor(array, dtype=getattr(torch, dtype), device=device)

    function, labels = activation(task.activation), put(embeddings.labels)
    return Step(
        tokens=put(embeddings.tokens),
        labels=labels,
        centred=labels - labels.mean(dim=0),
        trigger=put(embeddings.trigger),
        mlp=None if embeddings.mlp is None else put(embeddings.mlp),
        phi=function.value,
        slope=function.slope,
        in_value=task.trigger_in_value,
    )


def closed_form(
    task: RetrievalTask,
    embeddings: Embeddings,
    samples: Source,
    sizes: StepSizes,
    *,
    steps: int = 3,
    threads: int = 1,
    block: int | None = None,
    device: str = "cpu",
    dtype: str = "float64",
) -> Learned:
    """Take one, two or three gradient steps over ``samples``.

    Args:
        samples: where the training sequences come from (``streams.source`` or ``streams.given``).
        sizes: step sizes; the limit η → 0 when ``sizes.limit``, with the residual e_y - 1/V in every step.
        steps: 1 reads W_V1 under uniform attention, 2 reads it under the learned attention, 3 reads W_V2.
        threads: blocks worked on at once; the result does not depend on it.
        block: samples a block, 1024 or fewer for large vocabularies when None; the result depends on it only through
            rounding.
        device, dtype: of the torch tensors; float32 costs about 3e-7 relative.

    Raises:
        RunError: if a weight is not finite (step sizes too large for the number format).
    """
    step = make_step(task, embeddings, device, dtype)
    count, length, eta = samples.count, samples.length, sizes.first or 1.0
    vocabulary = len(step.tokens)
    size = max(1, min(LARGEST_BLOCK, LARGEST_LOGITS // vocabulary)) if block is None else block

    def batch(start: int, stop: int) -> tuple[Tensor, Tensor]:
        tokens, labels = materialise(samples, start, stop)
        return torch.as_tensor(tokens, device=device), torch.as_tensor(labels, device=device)

    def over_blocks(work: Callable[[Tensor, Tensor], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        ranges = [(start, min(start + size, count)) for start in range(0, count, size)]
        with torch.no_grad():
            return ordered_sum(ranges, lambda r: work(*batch(*r)), threads)

    def first(tokens: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        seen = torch.bincount(tokens[:, 0], minlength=vocabulary)
        return step.centred[labels].T @ step.features(step.mean_state(tokens)), seen

    total, seen = over_blocks(first)
    first_gradient = total / count
    value_first = eta * first_gradient

    width = value_first.shape[1]
    joined = width * vocabulary <= width * task.dimension + task.dimension * vocabulary
    to_logits = value_first.T @ step.labels.T if joined else None  # one product instead of two where it is cheaper

    def residual(labels: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Z_out (e_y - p), and the largest |logit|, under W_V1; p = 1/V in the limit."""
        if sizes.limit:
            return step.centred[labels], torch.zeros(1)
        logits = features @ value_first.T @ step.labels.T if to_logits is None else features @ to_logits
        largest = torch.maximum(logits.amax(), -logits.amin())
        return step.labels[labels] - logits.softmax(dim=1) @ step.labels, largest

    largest = [0.0]

    def second(tokens: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        hidden = step.mean_state(tokens)
        gap, top = residual(labels, step.features(hidden))
        largest.append(float(top))
        back = gap @ value_first
        if step.mlp is not None:
            back = (back * step.slope(hidden @ step.mlp.T)) @ step.mlp / math.sqrt(len(step.mlp))
        gains = torch.gather(back @ step.tokens.T, 1, tokens)
        if step.in_value:
            gains[:, 0] += back @ step.trigger
        gains = gains - gains.mean(dim=1, keepdim=True)
        alpha = torch.bincount(tokens.flatten(), weights=gains.flatten(), minlength=vocabulary)
        return alpha.to(gains.dtype), gains[:, 0].sum()

    alpha, beta = torch.zeros_like(step.tokens[:, 0]), torch.zeros_like(step.trigger[0])
    if steps > 1 and task.attention not in ("uniform", "oracle"):
        alpha, beta = (part / (count * length) for part in over_blocks(second))
    direction = step.tokens.T @ alpha + beta * step.trigger
    token_scores, trigger_score = step.tokens @ direction, float(step.trigger @ direction)
    scale = score_scale(task, sizes, float(embeddings.end @ embeddings.end))
    ranks = [torch.as_tensor(r, device=device) for r in score_ranks(token_scores.cpu().double().numpy(), trigger_score)]

    def attention(tokens: Tensor) -> Tensor:
        if task.attention == "oracle" or tokens.shape[1] == 1:
            weights = torch.zeros(tokens.shape, dtype=step.tokens.dtype, device=device)
            weights[:, 0] = 1
            return weights
        if math.isinf(scale):
            order = ranks[0][tokens]
            order[:, 0] = ranks[1][tokens[:, 0]]
            one_hot = torch.nn.functional.one_hot(order.argmax(dim=1), tokens.shape[1])
            return one_hot.to(step.tokens.dtype)
        scores = token_scores[tokens]
        scores[:, 0] += trigger_score
        return (scale * scores).softmax(dim=1)

    def third(tokens: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        features = step.features(step.weighted_state(tokens, attention(tokens)))
        gap, _ = residual(labels, features)
        return (gap.T @ features,)

    if task.attention == "uniform" or steps < 3:
        readout = value_first
    else:
        (total,) = over_blocks(third)
        gradient = total / count
        readout = gradient if sizes.second is None else value_first + sizes.second * gradient
    parts = [readout, direction, token_scores, alpha, beta]
    if not all(bool(torch.isfinite(part).all()) for part in parts):
        raise RunError("failed: a weight is not finite after the gradient steps; are the step sizes too large?")
    return Learned(
        readout=readout.cpu().double().numpy(),
        direction=direction.cpu().double().numpy(),
        token_scores=token_scores.cpu().double().numpy(),
        trigger_score=trigger_score,
        scale=scale,
        alpha=alpha.cpu().double().numpy(),
        drive=float(beta),
        seen=seen.cpu().numpy() > 0,
        reading=reading(task, steps),
        largest_first_logit=max(largest),
    )


def reading(task: RetrievalTask, steps: int) -> str:
    """How the read-out is queried after so many steps."""
    if task.attention == "oracle":
        return "oracle"
    return "uniform" if task.attention == "uniform" or steps == 1 else "trained"
