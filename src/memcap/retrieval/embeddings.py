"""The frozen numbers of a task: embeddings, trigger, permutation and MLP, drawn on the CPU so that all devices agree.

Rows are vectors: ``tokens[t]`` is column t of the paper's Z_in.  Each purpose has its own stream, so that triggers can
be redrawn while the embeddings stay.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float, Int

from memcap.random import stream
from memcap.retrieval.ordered import product, qr
from memcap.retrieval.streams import draw
from memcap.retrieval.task import RetrievalTask


@dataclass(frozen=True)
class Embeddings:
    """Frozen numbers, all float64.

    Attributes:
        tokens: (V, d) z_in of every token.
        labels: (V, d) z_out of every label.
        trigger: (d,) added to the key of the informative position.
        end: (d,) z_EOS, the query.
        permutation: (V,) the label π(t) of token t.
        mlp: (m, d) frozen first layer, or None.
        other_triggers, other_ends: (K - 1, d) of the other facts of a sequence; ``trigger`` and ``end`` are those of
            the fact that is asked for.
    """

    tokens: Float[np.ndarray, "vocabulary dimension"]
    labels: Float[np.ndarray, "vocabulary dimension"]
    trigger: Float[np.ndarray, " dimension"]
    end: Float[np.ndarray, " dimension"]
    permutation: Int[np.ndarray, " vocabulary"]
    mlp: Float[np.ndarray, "width dimension"] | None
    other_triggers: Float[np.ndarray, "others columns"] = field(default_factory=lambda: np.zeros((0, 0)))
    other_ends: Float[np.ndarray, "others columns"] = field(default_factory=lambda: np.zeros((0, 0)))

    def for_fact(self, fact: int) -> Embeddings:
        """The same numbers seen from another fact: its trigger and query take the place of those of fact 0."""
        if fact == 0:
            return self
        triggers, ends = self.other_triggers.copy(), self.other_ends.copy()
        triggers[fact - 1], ends[fact - 1] = self.trigger, self.end
        return replace(
            self,
            trigger=self.other_triggers[fact - 1],
            end=self.other_ends[fact - 1],
            other_triggers=triggers,
            other_ends=ends,
        )

    def with_trigger(self, trigger: Float[np.ndarray, " dimension"]) -> Embeddings:
        """The same embeddings with another trigger."""
        return replace(self, trigger=trigger)


def draw_embeddings(task: RetrievalTask, seed: int | None = None) -> Embeddings:
    """The frozen numbers of ``task``; ``seed`` is the task's own when None.

    ``gaussian``: entries N(0, 1/d). ``sphere``: uniform unit vectors. ``orthogonal``: orthonormal rows (a Haar frame),
    the trigger a unit vector orthogonal to the tokens.  MLP entries are N(0, 1).
    """
    seed = task.seed if seed is None else seed
    shape = (task.vocabulary, task.dimension)
    tokens = _rows(stream(seed, "retrieval:embeddings", 0), shape, task.embeddings)
    labels = _rows(stream(seed, "retrieval:embeddings", 1), shape, task.embeddings)
    mlp = stream(seed, "retrieval:mlp").standard_normal((task.width, task.dimension)) if task.width else None
    frame, triggers = tokens, [draw_trigger(task, tokens, seed)]
    for index in range(1, task.facts):
        frame = np.vstack([frame, triggers[-1]]) if task.embeddings == "orthogonal" else frame
        triggers.append(draw_trigger(task, frame, seed, index))
    ends = _rows(stream(seed, "retrieval:end"), (task.facts, task.dimension), task.embeddings)
    return Embeddings(
        tokens=tokens,
        labels=labels,
        trigger=triggers[0],
        end=ends[0],
        permutation=stream(seed, "retrieval:permutation").permutation(task.vocabulary).astype(np.int64),
        mlp=mlp,
        other_triggers=np.array(triggers[1:]).reshape(-1, task.dimension),
        other_ends=ends[1:],
    )


def draw_trigger(
    task: RetrievalTask, tokens: Float[np.ndarray, "vocabulary dimension"], seed: int, index: int = 0
) -> Float[np.ndarray, " dimension"]:
    """Trigger number ``index`` of a seed; orthogonal to ``tokens`` when the task's embeddings are orthogonal."""
    trigger = stream(seed, "retrieval:trigger", index).standard_normal(task.dimension) / math.sqrt(task.dimension)
    if task.embeddings == "orthogonal":
        for _ in range(2):  # twice is enough for orthogonality to rounding
            trigger = trigger - product(tokens.T, product(tokens, trigger))
    return trigger if task.embeddings == "gaussian" else trigger / np.linalg.norm(trigger)


def data_hash(task: RetrievalTask, embeddings: Embeddings, seed: int, rows: int = 64) -> str:
    """SHA-256 of what a run reads: every frozen number, and the first and last ``rows`` sequences of both streams.

    Sequences are pure functions of (seed, purpose, sample), so a few of them pin the stream.
    """
    digest = hashlib.sha256(task.identity.encode())
    for part in (embeddings.tokens, embeddings.labels, embeddings.trigger, embeddings.end, embeddings.permutation):
        digest.update(np.ascontiguousarray(part).tobytes())
    if embeddings.mlp is not None:
        digest.update(np.ascontiguousarray(embeddings.mlp).tobytes())
    for part in (embeddings.other_triggers, embeddings.other_ends):
        digest.update(np.ascontiguousarray(part).tobytes())
    last = max(0, task.samples - rows)
    for purpose, start, stop in (
        ("training", 0, min(rows, task.samples)),
        ("training", last, task.samples),
        ("test", 0, rows),
    ):
        sequences = draw(task, embeddings.permutation, purpose, start, stop, seed=seed)
        digest.update(sequences.tokens.tobytes() + sequences.position.tobytes() + sequences.labels.tobytes())
    return digest.hexdigest()


def _rows(generator: np.random.Generator, shape: tuple[int, int], kind: str) -> np.ndarray:
    if kind == "orthogonal":
        q, r = qr(generator.standard_normal((shape[1], shape[0])))
        return np.ascontiguousarray((q * np.sign(np.diag(r))).T)
    rows = generator.standard_normal(shape) / math.sqrt(shape[1])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) if kind == "sphere" else rows
