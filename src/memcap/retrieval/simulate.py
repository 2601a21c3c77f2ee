"""``memcap.simulate``: draw the data of a task, take the gradient steps, and report what is recalled.

Not here: the mathematics of the steps (``small_step``, ``closed_form``, ``population``, ``training``).
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.stats import binomtest

from memcap.errors import ConfigurationError
from memcap.retrieval.closed_form import closed_forms
from memcap.retrieval.embeddings import Embeddings, data_hash, draw_embeddings
from memcap.retrieval.learned import Learned
from memcap.retrieval.multinomial import multinomial
from memcap.retrieval.ordered import product
from memcap.retrieval.population import population
from memcap.retrieval.recall import Answers, evaluate, joined
from memcap.retrieval.run import QUANTILES, Run
from memcap.retrieval.small_step import small_step
from memcap.retrieval.step_sizes import StepSizes, nominal_drive
from memcap.retrieval.streams import Source, source
from memcap.retrieval.task import RetrievalTask, integer, one_of, require_task
from memcap.retrieval.training import Training, train, trained_attention

ENGINES = ("auto", "small-step", "closed-form", "multinomial", "population")


def simulate(
    task: RetrievalTask,
    *,
    seed: int | None = None,
    steps: int = 3,
    test_samples: int = 8192,
    step_sizes: StepSizes | None = None,
    training: Training | None = None,
    engine: str = "auto",
    threads: int = 1,
    device: str = "cpu",
) -> Run:
    """Train on a task by a few gradient steps and measure what is recalled.

    Args:
        seed: replaces the task's own seed when given.
        steps: 1 reads W_V1 under uniform attention, 2 reads it under the learned attention, 3 reads W_V2.
        test_samples: fresh sequences, from a stream of their own; each asks for all of its facts.
        step_sizes: of the three steps; the small-step limit (and κ = 4 for soft attention) when None.
        training: continue to train instead of taking three steps; ``steps`` then comes from it.
        engine: ``small-step`` (attention only, in the limit), ``closed-form`` (any), ``multinomial`` (counts instead of
            sequences, exact in law, for the first step and for perfect attention), ``population`` (infinite data), or
            ``auto``.  An MLP in the limit uses the closed form with infinitesimal steps: no count table describes its
            hidden states.
        threads: blocks worked on at once; no number in the run depends on it.
        device: of the closed form, such as ``cpu`` or ``cuda``; data are drawn on the CPU and are the same everywhere.

    Returns:
        A ``Run``; ``run.recall`` is the fraction of fresh sequences answered strictly right.

    Raises:
        ConfigurationError: for an option that does not exist or does not fit the task.
        RunError: if a number is not finite; a failed run has no recall.

    Source: arXiv 2603.15923, section 2; closed forms derived here: docs/theory/retrieval-engines.md.

    >>> task = RetrievalTask(vocabulary=32, length=4, samples=4_000, dimension=48)
    >>> run = simulate(task, seed=1)
    >>> run.engine, run.recall > 0.9
    ('small-step', True)
    """
    started = time.perf_counter()
    task = require_task(task, "simulate")
    task = task if seed is None else task.replace(seed=seed)
    steps = integer("steps", steps, 1, 3)
    test_samples = integer("test_samples", test_samples, 1, 2**40)
    threads = integer("threads", threads, 1, 1024)
    one_of("engine", engine, ENGINES)
    require_device(device)
    if training is not None and (step_sizes is not None or engine != "auto" or task.data == "population"):
        raise ConfigurationError("training takes its own steps: leave out step_sizes and engine, use data='empirical'")
    sizes = step_sizes or StepSizes()
    if task.attention != "soft" and (sizes.attention is not None or sizes.sharpness != StepSizes.sharpness):
        raise ConfigurationError(
            f"an attention step size or sharpness needs attention='soft', got attention={task.attention!r}"
        )
    embeddings = draw_embeddings(task)
    hashed = data_hash(task, embeddings, task.seed)
    samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
    trace: tuple[tuple[int, float, float], ...] = ()
    budget: dict[str, float] = {}
    states: tuple[tuple[Learned, ...], ...]  # of every fact, by head
    if training is not None:
        result = train(task, embeddings, samples, training, device=device)
        engine, states, trace, steps = "training", result.states, result.trace, result.updates
        embeddings = result.embeddings
    else:
        engine = chosen_engine(task, sizes) if engine == "auto" else engine
        states = tuple((one,) for one in take_steps(task, embeddings, samples, sizes, engine, steps, threads, device))
        budget = attention_budget(task, embeddings, states[0][0])
    test = source(task, embeddings.permutation, "test", test_samples, task.seed)
    answers = joined(
        [
            evaluate(task, embeddings.for_fact(k), heads, replace(test, fact=k), seed=task.seed, device=device)
            for k, heads in enumerate(states)
        ]
    )
    return Run(
        task=task,
        engine=engine,
        steps=steps,
        settings=sizes.to_dict() if training is None else {**training.to_dict(), "attention": trained_attention(task)},
        **measured(answers, states[0][0].seen),
        test_samples=test_samples,
        attention=budget,
        largest_first_logit=states[0][0].largest_first_logit,
        data_hash=hashed,
        trace=trace,
        threads=threads,
        seconds=time.perf_counter() - started,
    )


def require_device(device: str) -> None:
    """Refuse a device that torch does not know or cannot reach, before anything is computed.

    Raises:
        ConfigurationError: naming the device and those that are there.
    """
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        there = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
        reason = str(error).splitlines()[0]
        raise ConfigurationError(
            f"device must be one that torch can use here, got {device!r} (there are: {', '.join(there)}; {reason})"
        ) from None


def chosen_engine(task: RetrievalTask, sizes: StepSizes) -> str:
    """The engine that ``auto`` means."""
    if task.data == "population":
        return "population"
    return "small-step" if sizes.limit and not task.width and task.facts == 1 else "closed-form"


def take_steps(
    task: RetrievalTask,
    embeddings: Embeddings,
    samples: Source,
    sizes: StepSizes,
    engine: str,
    steps: int,
    threads: int,
    device: str,
) -> tuple[Learned, ...]:
    """The state after the gradient steps for every fact of a sequence, by one engine."""
    if (engine == "population") != (task.data == "population"):
        raise ConfigurationError(f"engine {engine!r} does not fit data={task.data!r}")
    if engine == "population":
        return (population(task, embeddings, sizes, steps=steps),)
    if engine == "multinomial":
        return (multinomial(task, embeddings, sizes, steps=steps),)
    if engine == "small-step":
        return (small_step(task, embeddings, samples, sizes, steps=steps, threads=threads),)
    return closed_forms(task, embeddings, samples, sizes, steps=steps, threads=threads, device=device)


def measured(answers: Answers, seen: np.ndarray) -> dict[str, Any]:
    """The fields of a ``Run`` that come from its answers."""
    recalled, known = answers.recalled, seen[answers.informative]
    interval = binomtest(int(recalled.sum()), len(recalled)).proportion_ci(method="wilson")
    correct = float(answers.clean_correct.mean())
    spread = answers.clean_other_variance
    gap = correct - answers.clean_other_mean
    return {
        "recall": float(recalled.mean()),
        "recall_interval": (float(interval.low), float(interval.high)),
        "clean_recall": float(answers.clean_recalled.mean()),
        "recall_seen": float(recalled[known].mean()) if known.any() else None,
        "recall_unseen": float(recalled[~known].mean()) if not known.all() else None,
        "seen_tokens": int(seen.sum()),
        "attention_success": float(answers.attended.mean()),
        "attention_mass": float(answers.mass.mean()),
        "margins": quantiles(answers.margin),
        "clean_margins": quantiles(answers.clean_margin),
        "value": {
            "correct": correct,
            "other_mean": answers.clean_other_mean,
            "other_variance": spread,
            "snr": gap * gap / spread if spread > 0 else 0.0,
        },
    }


def quantiles(values: np.ndarray) -> dict[str, float]:
    """Quantiles by name, such as ``0.05``."""
    return {f"{q:g}": float(v) for q, v in zip(QUANTILES, np.quantile(values, QUANTILES), strict=True)}


def attention_budget(task: RetrievalTask, embeddings: Embeddings, learned: Learned) -> dict[str, float]:
    """Drive, scores and their variances after the attention step; empty where none was taken."""
    if learned.reading != "trained":
        return {}
    noise = product(embeddings.tokens, product(embeddings.tokens.T, learned.alpha))
    variance = float(noise.var())
    return {
        "drive": learned.drive,
        "nominal_drive": nominal_drive(task),
        "trigger_score": learned.trigger_score,
        "trigger_norm2": float(embeddings.trigger @ embeddings.trigger),
        "alpha_variance": variance,
        "token_score_variance": float(learned.token_scores.var()),
        "snr": learned.drive**2 / variance if variance > 0 and math.isfinite(learned.drive**2 / variance) else 0.0,
    }
