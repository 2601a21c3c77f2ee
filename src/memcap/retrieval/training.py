"""Continued training of the same task: gradient descent, SGD or Adam to a stopping rule, learned embeddings, heads.

Shows how far the end of training lies beyond the early phase.  Softmax attention throughout (hard attention has no
gradient); never an N × L × d tensor.  Not here: the three steps (``closed_form``, ``small_step``).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import Any, no_type_check

import numpy as np
import torch
from torch import Tensor

from memcap.errors import ConfigurationError, RunError
from memcap.random import stream
from memcap.retrieval.activation import activation
from memcap.retrieval.embeddings import Embeddings
from memcap.retrieval.learned import Learned
from memcap.retrieval.ordered import one_torch_thread, product
from memcap.retrieval.streams import Source
from memcap.retrieval.task import RetrievalTask, check_fields, integer, one_of, real
from memcap.retrieval.token_kernels import materialise, materialise_rows

OPTIMISERS = ("gd", "sgd", "adam")
DEFAULT_RATES = {"gd": 100.0, "sgd": 30.0, "adam": 0.03}
DEFAULT_LEARNED_RATES = {"gd": 3.0, "sgd": 1.0, "adam": 0.03}
"""With learned embeddings the logits are products of three trained factors, which large steps make diverge."""
CHUNK = 4096
REPORTS = 20


@no_type_check  # at run time: its own checks name the field and say what to do
@dataclass(frozen=True, kw_only=True)
class Training:
    """How to train on.

    Args:
        optimiser: ``gd`` (full batch), ``sgd`` (mini-batches) or ``adam`` (full batch unless ``batch`` is given).
        learning_rate: of every parameter; None for 100 (gd), 30 (sgd), 0.03 (adam); with learned
            embeddings 3, 1, 0.03.
        steps: most updates.
        batch: samples an update; None for all (512 for sgd).  Epochs are drawn without replacement.
        until_loss: stop when the loss of an update's batch is at or below this (nats); None never stops early.
        learned_embeddings: also train token and label embeddings and the trigger.
        heads: attention heads, each with its own key-query and value matrices; their outputs add up.
        head_spread: standard deviation, times 1/√d, of the initial key-query entries when there are several heads
            (equal heads would stay equal); one head starts from zero.

    Raises:
        ConfigurationError: for an unknown name, or a number out of range.

    >>> Training(optimiser="adam", steps=600).rate
    0.03
    """

    optimiser: str = "gd"
    learning_rate: float | None = None
    steps: int = 400
    batch: int | None = None
    until_loss: float | None = None
    learned_embeddings: bool = False
    heads: int = 1
    head_spread: float = 1.0

    def __new__(cls, *args: Any, **fields: Any) -> Training:
        """Refuse misspelt fields with one readable message."""
        if args:
            raise ConfigurationError("Training takes its fields by name only: Training(optimiser=..., ...)")
        check_fields(cls, fields)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        one_of("optimiser", self.optimiser, OPTIMISERS)
        integer("steps", self.steps, 1, 10**9)
        integer("heads", self.heads, 1, 1024)
        if self.batch is not None:
            integer("batch", self.batch, 1, 2**40)
            if self.optimiser == "gd":
                raise ConfigurationError("optimiser 'gd' takes the full batch; use 'sgd' with batch=...")
        if self.learning_rate is not None and real("learning_rate", self.learning_rate, 0.0, 1e9) == 0:
            raise ConfigurationError("learning_rate must be positive, got 0")
        if self.until_loss is not None:
            real("until_loss", self.until_loss, 0.0, 1e3)
        real("head_spread", self.head_spread, 0.0, 1e6)

    @property
    def rate(self) -> float:
        """The learning rate that is used."""
        defaults = DEFAULT_LEARNED_RATES if self.learned_embeddings else DEFAULT_RATES
        return defaults[self.optimiser] if self.learning_rate is None else float(self.learning_rate)

    def to_dict(self) -> dict[str, Any]:
        """Every field, ready for strict JSON; the learning rate as used."""
        return {**dataclasses.asdict(self), "learning_rate": self.rate}


@dataclass(frozen=True)
class Trained:
    """The end of training: embeddings (learned or as given), states by fact and head, (update, loss, accuracy) rows."""

    embeddings: Embeddings
    states: tuple[tuple[Learned, ...], ...]
    trace: tuple[tuple[int, float, float], ...]
    updates: int

    @property
    def heads(self) -> tuple[Learned, ...]:
        """One state per head, as the (first) query sees it."""
        return self.states[0]


class TrainableModel(torch.nn.Module):
    """The reference model with parameters, several heads, and tokens read through an embedding bag.

    A test ties its logits to ``reference.ReferenceModel``.
    """

    def __init__(self, task: RetrievalTask, embeddings: Embeddings, training: Training, device: str) -> None:
        super().__init__()

        def put(array: np.ndarray, learned: bool = False) -> torch.nn.Parameter:
            tensor = torch.tensor(array, dtype=torch.float64, device=device)
            return torch.nn.Parameter(tensor, requires_grad=learned)

        dimension, heads = task.dimension, training.heads
        self.attention, self.trigger_in_value = task.attention, task.trigger_in_value
        self.function = activation(task.activation)
        self.tokens = put(embeddings.tokens, training.learned_embeddings)
        self.labels = put(embeddings.labels, training.learned_embeddings)
        self.triggers = put(np.vstack([embeddings.trigger, *embeddings.other_triggers]), training.learned_embeddings)
        self.ends = put(np.vstack([embeddings.end, *embeddings.other_ends]))
        self.mlp = None if embeddings.mlp is None else put(embeddings.mlp)
        columns = dimension if self.mlp is None else len(self.mlp)
        start = np.zeros((heads, dimension, dimension))
        if heads > 1:
            spread = training.head_spread / math.sqrt(dimension)
            start = stream(task.seed, "retrieval:heads").standard_normal(start.shape) * spread
        self.value = put(np.zeros((heads, dimension, columns)), True)
        self.key_query = put(start, task.attention not in ("uniform", "oracle"))

    def logits(self, tokens: Tensor, fact: int = 0) -> Tensor:
        """Logits (B, V) of sequences in canonical order; the token of the ``fact`` asked for is at position 0."""
        total = torch.zeros(len(tokens), len(self.labels), dtype=torch.float64, device=tokens.device)
        order = list(range(len(self.triggers)))
        order[0], order[fact] = order[fact], order[0]
        triggers = [self.triggers[k] for k in order]
        marks = [
            torch.nn.functional.one_hot(torch.full_like(tokens[:, 0], place), tokens.shape[1])
            for place in range(len(order))
        ]
        for value, key_query in zip(self.value, self.key_query, strict=True):
            direction = key_query @ self.ends[fact]
            if self.attention == "oracle":
                weights = marks[0].to(torch.float64)
            elif self.attention == "uniform":
                weights = torch.full(tokens.shape, 1 / tokens.shape[1], dtype=torch.float64, device=tokens.device)
            else:
                scores = (self.tokens @ direction)[tokens]
                for mark, trigger in zip(marks, triggers, strict=True):
                    scores = scores + mark * (trigger @ direction)
                weights = scores.softmax(dim=1)
            hidden = torch.nn.functional.embedding_bag(
                tokens, self.tokens, per_sample_weights=weights.contiguous(), mode="sum"
            )
            for place, trigger in enumerate(triggers if self.trigger_in_value else ()):
                hidden = hidden + weights[:, place : place + 1] * trigger
            if self.mlp is not None:
                hidden = self.function.value(hidden @ self.mlp.T) / math.sqrt(len(self.mlp))
            total = total + hidden @ value.T @ self.labels.T
        return total


def train(
    task: RetrievalTask, embeddings: Embeddings, samples: Source, training: Training, *, device: str = "cpu"
) -> Trained:
    """Train from zero on every sample of ``samples`` until the loss or the number of updates says stop.

    Raises:
        RunError: when the loss is not finite (learning rate too large).
    """
    model = TrainableModel(task, embeddings, training, device)
    parameters = [p for p in model.parameters() if p.requires_grad]
    kind = torch.optim.Adam if training.optimiser == "adam" else torch.optim.SGD
    optimiser: torch.optim.Optimizer = kind(parameters, lr=training.rate)
    batch = training.batch or (512 if training.optimiser == "sgd" else samples.count)
    batch, trace, update = min(batch, samples.count), [], 0
    every = max(1, training.steps // REPORTS)
    with one_torch_thread():
        for update in range(1, training.steps + 1):
            rows = batch_rows(task.seed, samples.count, batch, update - 1)
            optimiser.zero_grad()
            loss, right = 0.0, 0
            for fact, start in itertools.product(range(task.facts), range(0, batch, CHUNK)):
                asked = dataclasses.replace(samples, fact=fact)
                tokens, labels = chunk(asked, rows, start, min(start + CHUNK, batch), device)
                logits = model.logits(tokens, fact)
                part = torch.nn.functional.cross_entropy(logits, labels, reduction="sum") / (batch * task.facts)
                torch.autograd.backward(part)
                loss += float(part.detach())
                right += int((logits.argmax(dim=1) == labels).sum())
            if not math.isfinite(loss):
                raise RunError(f"failed: the loss is {loss} at update {update}; is the learning rate too large?")
            done = training.until_loss is not None and loss <= training.until_loss
            if done or update == 1 or update % every == 0:
                trace.append((update - 1, loss, right / (batch * task.facts)))
            if done:
                update -= 1  # this update was not taken
                break
            optimiser.step()
    return finished(task, embeddings, model, samples, tuple(trace), update)


def trained_attention(task: RetrievalTask) -> str:
    """The attention that is trained: softmax for ``hard``, which has no gradient; else the task's own."""
    return task.attention if task.attention in ("uniform", "oracle") else "soft"


def batch_rows(seed: int, count: int, batch: int, update: int) -> np.ndarray | None:
    """Sample numbers of one update: epochs without replacement, each a permutation of its own; None for all."""
    if batch == count:
        return None
    per_epoch = count // batch
    epoch, place = divmod(update, per_epoch)
    order = stream(seed, "retrieval:batches", epoch).permutation(count)
    return np.asarray(order[place * batch : (place + 1) * batch])


def chunk(samples: Source, rows: np.ndarray | None, start: int, stop: int, device: str) -> tuple[Tensor, Tensor]:
    """Tokens and labels of part of a batch."""
    tokens, labels = materialise_rows(samples, np.arange(start, stop) if rows is None else rows[start:stop])
    return torch.as_tensor(tokens, device=device), torch.as_tensor(labels, device=device)


def finished(
    task: RetrievalTask,
    embeddings: Embeddings,
    model: TrainableModel,
    samples: Source,
    trace: tuple[tuple[int, float, float], ...],
    updates: int,
) -> Trained:
    """The state of a trained model in the terms that ``recall`` reads."""

    def get(tensor: Tensor) -> np.ndarray:
        return np.array(tensor.detach().cpu().numpy())

    triggers = get(model.triggers)
    learned = dataclasses.replace(
        embeddings,
        tokens=get(model.tokens),
        labels=get(model.labels),
        trigger=triggers[0],
        other_triggers=triggers[1:],
    )
    seen = np.zeros(task.vocabulary, bool)
    for start in range(0, samples.count, CHUNK):
        seen[materialise(samples, start, min(start + CHUNK, samples.count))[0][:, : task.facts]] = True
    reading = "trained" if trained_attention(task) == "soft" else task.attention

    def state(fact: int, value: Tensor, key_query: Tensor) -> Learned:
        direction, view = get(key_query @ model.ends[fact]), learned.for_fact(fact)
        return Learned(
            readout=get(value),
            direction=direction,
            token_scores=product(view.tokens, direction),
            trigger_score=float(view.trigger @ direction),
            scale=1.0,
            alpha=np.zeros(task.vocabulary),
            drive=0.0,
            seen=seen,
            reading=reading,
            other_trigger_scores=np.array([float(trigger @ direction) for trigger in view.other_triggers]),
        )

    pairs = list(zip(model.value, model.key_query, strict=True))
    states = tuple(tuple(state(fact, *pair) for pair in pairs) for fact in range(task.facts))
    heads = [head for of_fact in states for head in of_fact]
    if not all(np.isfinite(head.readout).all() and np.isfinite(head.token_scores).all() for head in heads):
        raise RunError("failed: a weight is not finite at the end of training; is the learning rate too large?")
    return Trained(learned, states, trace, updates)
