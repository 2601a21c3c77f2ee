"""The three gradient steps in closed form, at any step size or in the small-step limit, streamed in fixed blocks.

Equal to ``reference`` to rounding, for attention only and for attention-MLP, without its N × L × d tensors: a block
holds B × L scalars, B × d hidden states and B × V logits.  Runs on any torch device; blocks are a fixed number of
samples, reduced in order, so that the result does not depend on the number of threads.

Source: derived here: docs/theory/retrieval-engines.md; the steps are those of arXiv 2603.15923.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from memcap.errors import ConfigurationError, RunError
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
    triggers: Tensor  # (K, d): that of the fact asked for, then the others
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
        for trigger in self.triggers if self.in_value else ():
            hidden = hidden + trigger / tokens.shape[1]
        return hidden

    def weighted_state(self, tokens: Tensor, weights: Tensor) -> Tensor:
        """Hidden states under attention ``weights`` (B, L); the informative tokens are at the first positions."""
        hidden = torch.nn.functional.embedding_bag(tokens, self.tokens, per_sample_weights=weights, mode="sum")
        for k, trigger in enumerate(self.triggers if self.in_value else ()):
            hidden = hidden + weights[:, k : k + 1] * trigger
        return hidden


def make_step(task: RetrievalTask, embeddings: Embeddings, device: str = "cpu", dtype: str = "float64") -> Step:
    """Move the frozen numbers to ``device``."""

    def put(array: np.ndarray) -> Tensor:
        return torch.as_tensor(array, dtype=getattr(torch, dtype), device=device)

    function, labels = activation(task.activation), put(embeddings.labels)
    return Step(
        tokens=put(embeddings.tokens),
        labels=labels,
        centred=labels - labels.mean(dim=0),
        triggers=put(np.vstack([embeddings.trigger, *embeddings.other_triggers])),
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
    """Take one, two or three gradient steps over ``samples``, of one fact a sequence.

    Args:
        samples: where the training sequences come from (``streams.source`` or ``streams.given``).
        sizes: step sizes; the limit η → 0 when ``sizes.limit``, with the residual e_y - 1/V in every step.
        steps: 1 reads W_V1 under uniform attention, 2 reads it under the learned attention, 3 reads W_V2.
        threads: blocks worked on at once; the result does not depend on it.
        block: samples a block, 1024 or fewer for large vocabularies when None; the result depends on it only through
            rounding.
        device, dtype: of the torch tensors; float32 costs about 3e-7 relative.

    Raises:
        ConfigurationError: for several facts a sequence, which have several queries: ``closed_forms``.
        RunError: if a weight is not finite (step sizes too large for the number format).
    """
    if task.facts > 1:
        raise ConfigurationError(f"closed_form is for one fact a sequence, got {task.facts}; use closed_forms")
    options: dict[str, Any] = {"steps": steps, "threads": threads, "block": block, "device": device, "dtype": dtype}
    return closed_forms(task, embeddings, samples, sizes, **options)[0]


def closed_forms(
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
) -> tuple[Learned, ...]:
    """One state for every fact of a sequence, as its own query sees it; arguments as in ``closed_form``.

    The read-out is the same in all.  W_KQ has rank K, one term a query: W_KQ = γ Σ_k u_k z_EOS,kᵀ, and query k is shown
    the direction Σ_j (z_EOS,j·z_EOS,k / |z_EOS,k|²) u_j.
    """
    facts = range(task.facts)
    views = [make_step(task, embeddings.for_fact(k), device, dtype) for k in facts]
    sources = [replace(samples, fact=k) for k in facts]
    step = views[0]
    count, length, eta = samples.count, samples.length, sizes.first or 1.0
    examples = count * task.facts
    vocabulary = len(step.tokens)
    size = max(1, min(LARGEST_BLOCK, LARGEST_LOGITS // vocabulary)) if block is None else block

    def batch(k: int, start: int, stop: int) -> tuple[Tensor, Tensor]:
        tokens, labels = materialise(sources[k], start, stop)
        return torch.as_tensor(tokens, device=device), torch.as_tensor(labels, device=device)

    def over_blocks(k: int, work: Callable[[Step, Tensor, Tensor], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        ranges = [(start, min(start + size, count)) for start in range(0, count, size)]
        with torch.no_grad():
            return ordered_sum(ranges, lambda r: work(views[k], *batch(k, *r)), threads)

    def first(view: Step, tokens: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        seen = torch.bincount(tokens[:, 0], minlength=vocabulary)
        return view.centred[labels].T @ view.features(view.mean_state(tokens)), seen

    total, seen = added([over_blocks(k, first) for k in facts])
    value_first = eta * (total / examples)

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

    def second(view: Step, tokens: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        hidden = view.mean_state(tokens)
        gap, top = residual(labels, view.features(hidden))
        largest.append(float(top))
        back = gap @ value_first
        if view.mlp is not None:
            back = (back * view.slope(hidden @ view.mlp.T)) @ view.mlp / math.sqrt(len(view.mlp))
        gains = torch.gather(back @ view.tokens.T, 1, tokens)
        for k, trigger in enumerate(view.triggers if view.in_value else ()):
            gains[:, k] += back @ trigger
        gains = gains - gains.mean(dim=1, keepdim=True)
        alpha = torch.bincount(tokens.flatten(), weights=gains.flatten(), minlength=vocabulary)
        return alpha.to(gains.dtype), torch.stack([gains[:, k].sum() for k in facts])

    none = (torch.zeros_like(step.tokens[:, 0]), torch.zeros_like(step.triggers[:, 0]))
    taken = steps > 1 and task.attention not in ("uniform", "oracle")
    gained = [[part / (examples * length) for part in over_blocks(k, second)] if taken else none for k in facts]
    directions = mixed(embeddings, [direction_of(v, *gain) for v, gain in zip(views, gained, strict=True)])
    states = [
        Attention(task, view, direction, score_scale(task, sizes, float(end @ end)))
        for view, direction, end in zip(views, directions, [embeddings.end, *embeddings.other_ends], strict=True)
    ]

    def third(k: int, view: Step, tokens: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        features = view.features(view.weighted_state(tokens, states[k].weights(tokens)))
        gap, _ = residual(labels, features)
        return (gap.T @ features,)

    readout = value_first
    if task.attention != "uniform" and steps == 3:
        (total,) = added([over_blocks(k, partial(third, k)) for k in facts])
        gradient = total / examples
        readout = gradient if sizes.second is None else value_first + sizes.second * gradient
    parts = [readout, *(part for k in facts for part in (directions[k], states[k].token_scores, *gained[k]))]
    if not all(bool(torch.isfinite(part).all()) for part in parts):
        raise RunError("failed: a weight is not finite after the gradient steps; are the step sizes too large?")
    return tuple(
        Learned(
            readout=readout.cpu().double().numpy(),
            direction=directions[k].cpu().double().numpy(),
            token_scores=states[k].token_scores.cpu().double().numpy(),
            trigger_score=states[k].trigger_scores[0],
            scale=states[k].scale,
            alpha=gained[k][0].cpu().double().numpy(),
            drive=float(gained[k][1][0]),
            seen=seen.cpu().numpy() > 0,
            reading=reading(task, steps),
            largest_first_logit=max(largest),
            other_trigger_scores=np.array(states[k].trigger_scores[1:]),
        )
        for k in facts
    )


class Attention:
    """What one query attends to; the fact that it asks for is at position 0, the other facts follow."""

    def __init__(self, task: RetrievalTask, view: Step, direction: Tensor, scale: float) -> None:
        self.oracle, self.scale = task.attention == "oracle", scale
        self.token_scores = view.tokens @ direction
        self.trigger_scores = [float(trigger @ direction) for trigger in view.triggers]
        ranks = score_ranks(self.token_scores.cpu().double().numpy(), *self.trigger_scores)
        self.ranks = [torch.as_tensor(r, device=direction.device) for r in ranks]

    def weights(self, tokens: Tensor) -> Tensor:
        """Attention (B, L) on sequences in canonical order."""
        if self.oracle or tokens.shape[1] == 1:
            weights = torch.zeros(tokens.shape, dtype=self.token_scores.dtype, device=tokens.device)
            weights[:, 0] = 1
            return weights
        if math.isinf(self.scale):
            order = self.ranks[0][tokens]
            for k, ranks in enumerate(self.ranks[1:]):
                order[:, k] = ranks[tokens[:, k]]
            one_hot = torch.nn.functional.one_hot(order.argmax(dim=1), tokens.shape[1])
            return one_hot.to(self.token_scores.dtype)
        scores = self.token_scores[tokens]
        for k, score in enumerate(self.trigger_scores):
            scores[:, k] += score
        return (self.scale * scores).softmax(dim=1)


def added(parts: list[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Sums over facts, in their order."""
    total = parts[0]
    for part in parts[1:]:
        total = tuple(a + b for a, b in zip(total, part, strict=True))
    return total


def direction_of(view: Step, alpha: Tensor, drives: Tensor) -> Tensor:
    """u = Σ_t α_t z_in[t] + Σ_k β_k z_trig,k of one query's term of W_KQ."""
    direction = view.tokens.T @ alpha
    for drive, trigger in zip(drives, view.triggers, strict=True):
        direction = direction + drive * trigger
    return direction


def mixed(embeddings: Embeddings, directions: list[Tensor]) -> list[Tensor]:
    """What each query is shown of all terms of W_KQ = Σ_j u_j z_EOS,jᵀ, over its own squared norm."""
    if len(directions) == 1:
        return directions
    ends = np.vstack([embeddings.end, *embeddings.other_ends])
    overlaps = ends @ ends.T
    shares = overlaps / np.diag(overlaps)
    return [
        torch.stack([share * direction for share, direction in zip(column, directions, strict=True)]).sum(dim=0)
        for column in shares.T.tolist()
    ]


def reading(task: RetrievalTask, steps: int) -> str:
    """How the read-out is queried after so many steps."""
    if task.attention == "oracle":
        return "oracle"
    return "uniform" if task.attention == "uniform" or steps == 1 else "trained"
