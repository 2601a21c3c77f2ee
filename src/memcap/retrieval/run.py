"""The record of one simulated run: what was recalled, why, and everything needed to get the same numbers again."""

from __future__ import annotations

import dataclasses
import math
import platform
from dataclasses import dataclass, field
from typing import Any

from memcap.errors import RunError
from memcap.retrieval.task import RetrievalTask
from memcap.version import __version__

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one run recalls.

    Recall is strict: an exact tie is not recalled.  ``recall`` asks with fresh sequences that carry the trigger;
    ``clean_recall`` with one token and no trigger, averaged over tokens.  The two are different questions.

    Attributes:
        task: with the seed that was used; ``identity`` is its content hash.
        engine: ``small-step``, ``closed-form``, ``multinomial``, ``population`` or ``training``.
        steps: gradient steps taken (of ``training``: updates).
        settings: of the steps or of the training, as given.
        recall, recall_interval: fraction of ``test_samples`` fresh sequences (with several facts a sequence: of their
            queries), and its 95 % Wilson interval (over test
            sequences of this one run, not over seeds).
        clean_recall: fraction of clean token queries.
        recall_seen, recall_unseen: of fresh sequences whose informative token was (never) informative in training; None
            where there are no such test sequences.
        seen_tokens: tokens that were informative in training.
        attention_success: fraction of fresh sequences whose informative position has the strictly largest score.
        attention_mass: mean attention on the informative position.
        margins, clean_margins: quantiles of right logit minus best other one.
        attention: of the first fact's query: ``drive`` β, ``nominal_drive`` b0, ``trigger_score`` τ,
            ``trigger_norm2`` |z_trig|²,
            ``alpha_variance`` (of z_tᵀ Z α over tokens: the noise the trigger must beat), ``token_score_variance``
            (with β), ``snr`` = β² / alpha_variance.  In units of η in the small-step limit.  Empty without an
            attention step.
        value: of clean queries: ``correct`` mean right logit, ``other_mean`` and ``other_variance`` of the rest,
            ``snr`` = (correct - other_mean)² / other_variance.
        largest_first_logit: of W_V1 over the training sequences; 0 in the limit.
        trace: of training: (update, loss, recall) rows.
        data_hash: SHA-256 of the frozen numbers and of samples of the streams.
        versions, threads, seconds: how it was run; the numbers above depend on none of the last two.
    """

    task: RetrievalTask
    engine: str
    steps: int
    settings: dict[str, Any]
    recall: float
    recall_interval: tuple[float, float]
    clean_recall: float
    recall_seen: float | None
    recall_unseen: float | None
    seen_tokens: int
    test_samples: int
    attention_success: float
    attention_mass: float
    margins: dict[str, float]
    clean_margins: dict[str, float]
    attention: dict[str, float]
    value: dict[str, float]
    largest_first_logit: float
    data_hash: str
    threads: int
    seconds: float
    trace: tuple[tuple[int, float, float], ...] = ()
    versions: dict[str, str] = field(default_factory=lambda: versions())

    def __post_init__(self) -> None:
        bad = not_finite("", {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "task"})
        if bad:
            raise RunError(f"failed: {bad} is not a finite number; a run with a NaN has no recall")

    @property
    def identity(self) -> str:
        """Content hash of the task."""
        return self.task.identity

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for strict JSON."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        fields["task"] = self.task.to_dict()
        fields["recall_interval"] = list(self.recall_interval)
        fields["trace"] = [list(row) for row in self.trace]
        return {"identity": self.identity, **fields}

    def record(self) -> dict[str, Any]:
        """``to_dict`` without what may differ between two runs of the same thing: seconds and threads."""
        return {name: value for name, value in self.to_dict().items() if name not in ("seconds", "threads")}


def not_finite(path: str, value: Any) -> str:
    """The path of the first float in ``value`` that is NaN or infinite, or an empty string.

    >>> not_finite("run", {"recall": 0.5, "margins": [1.0, float("nan")]})
    'run.margins[1]'
    """
    if isinstance(value, float):
        return "" if math.isfinite(value) else path
    items: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        items = [(f"{path}.{key}".lstrip("."), part) for key, part in value.items()]
    elif isinstance(value, tuple | list):
        items = [(f"{path}[{i}]", part) for i, part in enumerate(value)]
    return next((bad for name, part in items if (bad := not_finite(name, part))), "")


def versions() -> dict[str, str]:
    """Versions of what computes a run."""
    import numba
    import numpy
    import torch

    return {
        "memcap": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "torch": torch.__version__,
        "numba": numba.__version__,
    }
