"""``memcap.predict``: expected recall of a retrieval task and why, from formulas without fitted constants.

The formulas live in ``budget``, ``attention_theory``, ``value_theory``, ``first_step_theory``, ``mlp_budget`` and
``orthogonal_law``; this file chooses between them and says where they are known to err.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from memcap.errors import ConfigurationError
from memcap.retrieval import first_step_theory, orthogonal_law, quadrature
from memcap.retrieval.attention_theory import Gaps, gaps, success
from memcap.retrieval.budget import AttentionBudget, attention_budget
from memcap.retrieval.end_to_end_theory import Outcome, outcome
from memcap.retrieval.fresh_uniform_theory import fresh_recall_uniform
from memcap.retrieval.mlp_budget import with_mlp
from memcap.retrieval.mlp_query import mlp_query
from memcap.retrieval.orthogonal_end_to_end import orthogonal_outcome
from memcap.retrieval.prediction_warnings import warnings_for
from memcap.retrieval.stray_samples import stray_samples
from memcap.retrieval.task import RetrievalTask
from memcap.retrieval.value_theory import attention_only_query, clean_recall

GROUPS = {
    "finite-sample noise": ("pairs", "counts", "signal x noise", "signal x counts", "echo", "norm echo"),
    "interference": ("interference",),
    "mean bias": ("mean bias",),
    "MLP noise": ("MLP pairs", "MLP mean"),
}
"""Coarse groups of the sources of variance."""


@dataclass(frozen=True)
class Prediction:
    """What the theory expects of a task.

    Attributes:
        recall: expected recall of fresh sequences (trigger present, strict argmax), in [0, 1].
        clean_recall: expected recall of clean token queries.
        attention_success: chance that the informative position has the strictly largest score (hard or soft attention
            after the second step); 1 for oracle attention, nan for uniform attention, which takes no second step.
        snr: source -> drive² / variance of that source in a token's score, and ``total``; larger is better; infinite
            for a source that vanishes; empty where no attention step is taken.
        drive: the trigger's expected score, in units of the first step size.
        variances: source -> variance of a token's score, same units squared.
        regime: the largest source of variance of the attention step; ``first step`` or ``value step`` without one.
        bottleneck: what limits recall: ``attention``, ``coverage`` (facts never seen), ``capacity`` (interference in
            the value matrix), ``trigger in the value path`` or ``none`` (recall above 0.99).
        perfect_attention_recall: clean recall if attention never failed.
        coverage: expected share of facts seen at least once.
        recall_spread: the part of ``recall_deviation`` that all tokens of a run share (mean bias, trigger norm, trigger
            score).
        attention_spread: the same of attention success.
        recall_deviation: standard deviation of recall between seeds: √(recall_spread² + recall(1-recall)/V), V tokens
            being recalled or not each by its own luck; sampling of test sequences comes on top.  nan under uniform
            attention, where fresh recall is an average over sequences.
        warnings: where the theory is known to err on this task.
    """

    recall: float
    clean_recall: float
    attention_success: float
    snr: dict[str, float]
    drive: float
    variances: dict[str, float]
    regime: str
    bottleneck: str
    perfect_attention_recall: float
    coverage: float
    recall_spread: float = 0.0
    attention_spread: float = 0.0
    recall_deviation: float = math.nan
    warnings: tuple[str, ...] = field(default_factory=tuple)

    def snr_by_group(self) -> dict[str, float]:
        """``snr`` with sources joined into finite-sample noise, interference, mean bias and MLP noise."""
        joined = {name: sum(self.variances.get(k, 0.0) for k in sources) for name, sources in GROUPS.items()}
        return {name: _ratio(self.drive, variance) for name, variance in joined.items()} if self.variances else {}

    def to_dict(self) -> dict[str, Any]:
        """Every field, ready for JSON."""
        return asdict(self)


def predict(task: RetrievalTask) -> Prediction:
    """Expected recall, attention success and the signal-to-noise budget of ``task``, without simulation.

    Small-step limit: no fitted constant, nothing random, 1-150 ms.

    Args:
        task: the problem.  ``seed`` is not used: the prediction is the average over seeds.

    Returns:
        The prediction; ``warnings`` says where it is known to err.

    Raises:
        ConfigurationError: for tasks the theory does not cover (Zipf frequencies; an MLP with the trigger in the
            value path or with uniform attention).

    Source: arXiv 2603.15923 for the setting; derived here: docs/theory/retrieval.md.

    >>> from memcap.retrieval.task import RetrievalTask
    >>> p = predict(RetrievalTask(vocabulary=1024, length=16, samples=40_000, dimension=252))
    >>> round(p.recall, 2), p.regime
    (0.99, 'signal x counts')
    """
    _refuse_uncovered(task)
    coverage = 1.0 if task.data == "population" else -math.expm1(task.samples * math.log1p(-1.0 / task.vocabulary))
    budget = None if task.attention in ("uniform", "oracle") or task.length == 1 else _budget(task)
    perfect = _perfect_recall(task)
    perfect_fresh = _perfect_recall(task, "both") if task.trigger_in_value else perfect
    if task.attention == "uniform" and task.length > 1:
        clean = _first_step(task)
        fresh = fresh_recall_uniform(task)
        result = Outcome(recall=fresh, clean_recall=clean, attention_success=math.nan)
        regime = "first step"
    elif budget is None:
        result, regime = Outcome(recall=perfect_fresh, clean_recall=perfect, attention_success=1.0), "value step"
    else:
        result = _three_steps(task, budget)
        regime = max(budget.variances, key=lambda k: budget.variances[k])
    variances = {} if budget is None else dict(budget.variances)
    drive = 0.0 if budget is None else budget.drive
    snr = {k: _ratio(drive, v) for k, v in variances.items()}
    if budget is not None:
        snr["total"] = _ratio(drive, budget.total_variance)
    return Prediction(
        recall=min(result.recall, 1.0),  # weights of a rule sum to 1 up to rounding
        clean_recall=min(result.clean_recall, 1.0),
        attention_success=min(result.attention_success, 1.0) if budget is not None else result.attention_success,
        snr=snr,
        drive=drive,
        variances=variances,
        regime=regime,
        bottleneck=_bottleneck(result.recall, perfect_fresh, perfect, coverage),
        perfect_attention_recall=min(perfect, 1.0),
        coverage=coverage,
        recall_spread=result.recall_spread,
        attention_spread=result.attention_spread,
        recall_deviation=math.nan if regime == "first step" else _deviation(result, task.vocabulary),
        warnings=warnings_for(task, result, regime),
    )


def attention_success(task: RetrievalTask) -> float:
    """Only the attention success of ``predict``, about ten times faster.

    Raises:
        ConfigurationError: as ``predict``; also for uniform attention, which takes no attention step.
    """
    _refuse_uncovered(task)
    if task.attention == "uniform":
        raise ConfigurationError("attention='uniform' takes no attention step, so it has no success to predict")
    if task.attention == "oracle" or task.length == 1:
        return 1.0
    law = _gaps(task, _budget(task))
    return float(law.weights @ success(law, task.vocabulary, task.length))


def _refuse_uncovered(task: RetrievalTask) -> None:
    if not isinstance(task, RetrievalTask):
        raise ConfigurationError(f"predict expects a RetrievalTask, got {type(task).__name__}")
    reason = ""
    if task.frequencies != "uniform":
        reason = "token frequencies other than uniform"
    elif task.facts > 1:
        reason = "several facts a sequence"
    elif task.width and task.trigger_in_value:
        reason = "an MLP together with the trigger in the value path"
    elif task.width and task.attention == "uniform":
        reason = "an MLP with uniform attention"
    if reason:
        raise ConfigurationError(f"the theory does not cover {reason}; memcap.simulate(task) runs it")


def _ratio(drive: float, variance: float) -> float:
    return math.inf if variance == 0 else drive * drive / variance


def _budget(task: RetrievalTask) -> AttentionBudget:
    samples = math.inf if task.data == "population" else float(task.samples)
    orthogonal = task.embeddings == "orthogonal"
    budget = attention_budget(
        vocabulary=task.vocabulary,
        length=task.length,
        samples=samples,
        dimension=None if orthogonal else float(task.dimension),
        trigger_in_value=task.trigger_in_value,
        label_noise=task.label_noise,
        fixed_norm=task.embeddings == "sphere",
    )
    if not task.width:
        return budget
    return with_mlp(
        budget,
        activation=task.activation,
        width=task.width,
        vocabulary=task.vocabulary,
        length=task.length,
        samples=samples,
        dimension=task.dimension,
        gaussian_ratio=0.0 if orthogonal else task.vocabulary / task.dimension,
    )


def _gaps(task: RetrievalTask, budget: AttentionBudget) -> Gaps:
    dimension = None if task.embeddings == "orthogonal" else task.dimension
    return gaps(budget, dimension, fixed_norm=task.embeddings == "sphere", vocabulary=task.vocabulary)


def _counts(task: RetrievalTask) -> tuple[quadrature.Rule, float]:
    """The law of a fact's count and the N it is relative to; the population is one sample of every fact."""
    if task.data == "population":
        return (np.ones(1), np.ones(1)), float(task.vocabulary)
    return quadrature.label_count(task.samples, task.vocabulary), float(task.samples)


def _kept_counts(task: RetrievalTask) -> quadrature.Rule:
    """The law of how many samples of a fact carry its label."""
    if task.data == "population":
        return np.array([1 - task.label_noise]), np.ones(1)
    return quadrature.label_count(task.samples, task.vocabulary, keep=1 - task.label_noise)


def _three_steps(task: RetrievalTask, budget: AttentionBudget) -> Outcome:
    counts, samples = _counts(task)
    law = _gaps(task, budget)
    keep = 1.0 - task.label_noise
    if task.embeddings == "orthogonal" and not task.width:
        return orthogonal_outcome(
            law, counts, task.vocabulary, task.length, keep=keep, carries_trigger=task.trigger_in_value
        )
    clean = None
    if task.width:
        query = mlp_query(task.activation, task.width, task.dimension, task.embeddings)
    elif task.trigger_in_value:
        query = attention_only_query(task.dimension, task.embeddings, "both")
        clean = attention_only_query(task.dimension, task.embeddings, "stored")
    else:
        query = attention_only_query(task.dimension, task.embeddings)
    return outcome(
        law,
        query,
        _kept_counts(task),
        samples,
        task.vocabulary,
        task.length,
        task.dimension,
        keep=keep,
        coverage_noise=0.0 if task.data == "population" else 1.0,
        norms=task.embeddings,
        clean_query=clean,
    )


def _perfect_recall(task: RetrievalTask, trigger: str = "stored") -> float:
    """Clean recall (or, with ``trigger`` = both, that of fresh sequences) when attention never fails."""
    counts, samples = _counts(task)
    keep = 1.0 - task.label_noise
    noise = 0.0 if task.data == "population" else 1.0 / (samples * task.vocabulary)
    if task.embeddings == "orthogonal" and not task.width:
        return float(
            orthogonal_law.value_step_recall(
                counts,
                task.vocabulary,
                amplitude=np.array([keep]),
                competitor_rate=np.array([(1 - keep) / task.vocabulary]),
                carries_trigger=task.trigger_in_value and trigger == "both",
            )[0]
        )
    if task.width:
        query = mlp_query(task.activation, task.width, task.dimension, task.embeddings)
    else:
        query = attention_only_query(task.dimension, task.embeddings, trigger if task.trigger_in_value else "none")
    return float(
        clean_recall(
            query,
            _kept_counts(task),
            samples,
            task.vocabulary,
            task.dimension,
            amplitude=np.ones(1),
            strength_square=np.array([keep**2 / task.vocabulary**2 + keep * noise]),
            wrong_own=np.zeros(1),
            wrong_cross=np.zeros(1),
            norms=task.embeddings,
            strays=stray_samples(task.samples, task.vocabulary, keep, np.ones(1), 1.0) if noise else None,
        )[0]
    )


def _first_step(task: RetrievalTask) -> float:
    population = task.data == "population"
    if task.embeddings == "orthogonal":
        if population:
            return 1.0
        if task.label_noise:
            raise ConfigurationError(
                "the theory does not cover label noise with orthonormal embeddings and uniform attention; "
                "memcap.simulate(task) runs it"
            )
        return orthogonal_law.first_step_recall(task.samples, task.vocabulary, task.length)
    return first_step_theory.first_step_recall(
        task.samples,
        task.vocabulary,
        task.length,
        task.dimension,
        norms=task.embeddings,
        population=population,
        trigger_in_value=task.trigger_in_value,
        keep=1.0 - task.label_noise,
    )


def _deviation(result: Outcome, vocabulary: int) -> float:
    recall = min(max(result.recall, 0.0), 1.0)
    return math.sqrt(result.recall_spread**2 + recall * (1 - recall) / vocabulary)


def _bottleneck(recall: float, perfect_fresh: float, perfect: float, coverage: float) -> str:
    if recall > 0.99:
        return "none"
    losses = {
        "attention": perfect_fresh - recall,
        "trigger in the value path": perfect - perfect_fresh,
        "coverage": 1 - coverage,
        "capacity": coverage - perfect,
    }
    return max(losses, key=lambda k: losses[k])
