"""What a trained state recalls: fresh sequences and clean token queries, strictly (an exact tie is not recalled).

A logit margin below 2⁻⁴⁰ of the largest logit is a tie (``learned.TIE``), so that rounding cannot turn one into an
answer.  Where the informative position does not have the strictly largest score, hard attention reads the first other
position that does: a tie counts against the memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from memcap.random import stream
from memcap.retrieval.closed_form import Step, make_step
from memcap.retrieval.embeddings import Embeddings
from memcap.retrieval.learned import TIE, Learned, score_ranks
from memcap.retrieval.ordered import one_torch_thread
from memcap.retrieval.streams import Source
from memcap.retrieval.task import RetrievalTask
from memcap.retrieval.token_kernels import materialise

BLOCK = 1024
LARGEST_LOGITS = 2**23
"""Entries of a block's logits (64 MiB); large vocabularies get smaller blocks."""
ALL_TOKENS = 2**13
"""Up to this vocabulary every token is queried clean; above it, this many drawn at random."""


@dataclass(frozen=True)
class Answers:
    """Per test item; n sequences and q clean queries.

    Attributes:
        recalled, margin: (n,) of fresh sequences; the margin is the right logit minus the best other.
        informative: (n,) the token that was asked for.
        attended: (n,) whether the informative position has the strictly largest score.
        mass: (n,) attention on the informative position.
        clean_tokens, clean_recalled, clean_margin: (q,) of clean queries.
        clean_correct: (q,) right logits; ``clean_other_mean`` and ``clean_other_variance`` pool all other logits.
    """

    recalled: Bool[np.ndarray, " n"]
    margin: Float[np.ndarray, " n"]
    informative: Int[np.ndarray, " n"]
    attended: Bool[np.ndarray, " n"]
    mass: Float[np.ndarray, " n"]
    clean_tokens: Int[np.ndarray, " q"]
    clean_recalled: Bool[np.ndarray, " q"]
    clean_margin: Float[np.ndarray, " q"]
    clean_correct: Float[np.ndarray, " q"]
    clean_other_mean: float
    clean_other_variance: float


def joined(answers: Sequence[Answers]) -> Answers:
    """The answers to several facts of the same sequences; clean queries, which are the same for all, come once."""
    return replace(
        answers[0],
        recalled=np.concatenate([a.recalled for a in answers]),
        margin=np.concatenate([a.margin for a in answers]),
        informative=np.concatenate([a.informative for a in answers]),
        attended=np.concatenate([a.attended for a in answers]),
        mass=np.concatenate([a.mass for a in answers]),
    )


def strict_margin(
    logits: Float[Tensor, "n vocabulary"], answers: Int[Tensor, " n"]
) -> tuple[Float[Tensor, " n"], Bool[Tensor, " n"]]:
    """Right logit minus the best other one, and whether it is positive beyond a tie."""
    right = logits.gather(1, answers[:, None])[:, 0]
    largest = torch.maximum(logits.amax(dim=1), -logits.amin(dim=1))
    margin = right - logits.scatter(1, answers[:, None], -math.inf).amax(dim=1)
    return margin, margin > TIE * largest


def rows_at_once(vocabulary: int) -> int:
    """Rows of a block of logits."""
    return max(1, min(BLOCK, LARGEST_LOGITS // vocabulary))


def evaluate(
    task: RetrievalTask,
    embeddings: Embeddings,
    heads: Sequence[Learned],
    test: Source,
    *,
    seed: int,
    device: str = "cpu",
) -> Answers:
    """Query the states in ``heads``, whose logits add up, with every sequence of ``test`` and with clean tokens.

    With several heads, attention success and mass are those of the head with the largest mean mass.
    """
    step = make_step(task, embeddings, device)
    readouts = [torch.as_tensor(head.readout, dtype=torch.float64, device=device) for head in heads]
    readers = [_reader(head, step) for head in heads]
    permutation = torch.as_tensor(embeddings.permutation, device=device)

    def logits(states: Sequence[Tensor]) -> Tensor:
        total = sum(step.features(hidden) @ readout.T for hidden, readout in zip(states, readouts, strict=True))
        return torch.as_tensor(total) @ step.labels.T

    with one_torch_thread(), torch.no_grad():
        clean = _clean(task, step, permutation, lambda hidden: logits([hidden] * len(heads)), seed)
        parts = []
        block = rows_at_once(task.vocabulary)
        for start in range(0, test.count, block):
            tokens, _ = materialise(test, start, min(start + block, test.count))
            read = [reader(tokens) for reader in readers]
            informative = torch.as_tensor(tokens[:, 0], device=device)
            margin, recalled = strict_margin(logits([hidden for hidden, _, _ in read]), permutation[informative])
            attended, mass = np.stack([a for _, a, _ in read]), np.stack([m for _, _, m in read])
            parts.append((recalled.cpu().numpy(), margin.cpu().numpy(), tokens[:, 0], attended, mass))
    fresh: list[np.ndarray] = [np.concatenate(part, axis=-1) for part in zip(*parts, strict=True)]
    best = int(fresh[4].mean(axis=1).argmax())
    return Answers(fresh[0], fresh[1], fresh[2], fresh[3][best], fresh[4][best], *clean)


def _clean(
    task: RetrievalTask, step: Step, permutation: Tensor, logits: Callable[[Tensor], Tensor], seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, float]:
    tokens = np.arange(task.vocabulary)
    if task.vocabulary > ALL_TOKENS:
        tokens = np.sort(stream(seed, "retrieval:clean").choice(task.vocabulary, ALL_TOKENS, replace=False))
    recalled, margins, correct, total, squares = [], [], [], 0.0, 0.0
    block = rows_at_once(task.vocabulary)
    for start in range(0, len(tokens), block):
        rows = torch.as_tensor(tokens[start : start + block], device=step.tokens.device)
        values, answers = logits(step.tokens[rows]), permutation[rows]
        margin, good = strict_margin(values, answers)
        right = values.gather(1, answers[:, None])[:, 0]
        total += float(values.sum() - right.sum())
        squares += float((values**2).sum() - (right**2).sum())
        recalled.append(good.cpu().numpy())
        margins.append(margin.cpu().numpy())
        correct.append(right.cpu().numpy())
    others = len(tokens) * (task.vocabulary - 1)
    mean = total / others
    flat = [np.concatenate(part) for part in (recalled, margins, correct)]
    return tokens.astype(np.int64), flat[0], flat[1], flat[2], mean, max(0.0, squares / others - mean**2)


def _reader(learned: Learned, step: Step) -> Callable[[np.ndarray], tuple[Tensor, np.ndarray, np.ndarray]]:
    """Tokens (n, L) in canonical order -> hidden states, whether attention succeeds, mass on the informative one."""
    rank, rank_marked, *rank_others = score_ranks(learned.token_scores, *learned.trigger_scores.tolist())
    hard = learned.reading == "trained" and math.isinf(learned.scale)

    def read(tokens: np.ndarray) -> tuple[Tensor, np.ndarray, np.ndarray]:
        n, length = tokens.shape
        weights = np.zeros((n, length))
        attended = np.ones(n, bool)
        if learned.reading == "oracle" or length == 1:
            weights[:, 0] = 1
            mass = weights[:, 0]
        elif learned.reading == "uniform":
            weights[:] = 1 / length
            mass, attended = weights[:, 0], ~attended
        else:
            own, others = rank_marked[tokens[:, 0]], rank[tokens[:, 1:]]
            for k, ranks in enumerate(rank_others):
                others[:, k] = ranks[tokens[:, 1 + k]]
            attended = own > others.max(axis=1)
            if hard:
                winner = np.where(attended, 0, 1 + others.argmax(axis=1))
                weights[np.arange(n), winner] = 1
                tied = (others == own[:, None]).sum(axis=1)
                mass = np.where(others.max(axis=1) > own, 0.0, 1 / (1 + tied))
            else:
                scores = learned.scale * learned.token_scores[tokens]
                scores[:, : len(learned.trigger_scores)] += learned.scale * learned.trigger_scores
                weights = np.exp(scores - scores.max(axis=1, keepdims=True))
                weights /= weights.sum(axis=1, keepdims=True)
                mass = weights[:, 0]
        device = step.tokens.device
        hidden = step.weighted_state(torch.as_tensor(tokens, device=device), torch.as_tensor(weights, device=device))
        return hidden, attended, mass

    return read
