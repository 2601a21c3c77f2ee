"""One simulated point: the mean and standard error over seeds of what a task recalls or attends to."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from memcap.retrieval.closed_form import closed_form
from memcap.retrieval.embeddings import draw_embeddings, draw_trigger
from memcap.retrieval.ordered import product
from memcap.retrieval.simulate import simulate
from memcap.retrieval.small_step import small_step
from memcap.retrieval.step_sizes import StepSizes
from memcap.retrieval.streams import source
from memcap.retrieval.task import RetrievalTask

TEST_SAMPLES = 2048
TRIGGERS = 15


@dataclass(frozen=True)
class Point:
    """What the seeds of one task measured.

    Attributes:
        task: what was simulated.
        values: one number a seed.
    """

    task: RetrievalTask
    values: Float[np.ndarray, " seeds"]

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return float(self.values.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over seeds; nan with a single seed."""
        return float(self.values.std(ddof=1) / np.sqrt(len(self.values))) if len(self.values) > 1 else float("nan")


def measure(task: RetrievalTask, target: str, seed: int) -> float:
    """One run's ``recall``, ``clean_recall`` or ``attention`` success.

    Attention success is averaged over redrawn triggers (the noise in token scores does not depend on the trigger) and
    is exact given the scores: (share of tokens that lose)^(L-1).
    """
    if target != "attention":
        run = simulate(task, seed=seed, test_samples=TEST_SAMPLES)
        return float(getattr(run, target))
    task = task.replace(seed=seed)
    embeddings = draw_embeddings(task)
    samples = source(task, embeddings.permutation, "training", task.samples, seed)
    engine = closed_form if task.width else small_step
    learned = engine(task, embeddings, samples, StepSizes(), steps=2)
    noise = product(embeddings.tokens.T, learned.alpha)
    shares = []
    for index in range(TRIGGERS):
        trigger = draw_trigger(task, embeddings.tokens, seed, index)
        direction = noise + learned.drive * trigger
        scores = np.sort(product(embeddings.tokens, direction))
        beaten = np.searchsorted(scores, scores + float(trigger @ direction), side="left") / task.vocabulary
        shares.append(float(np.mean(beaten ** (task.length - 1))))
    return float(np.mean(shares))


def measure_all(jobs: list[tuple[RetrievalTask, str, int]], workers: int, progress: Any = None) -> list[float]:
    """``measure`` for many (task, target, seed); order of results is that of ``jobs`` for any number of workers.

    ``progress(done, total, what)`` is called after every job if given.
    """
    results: list[float] = []
    with ThreadPoolExecutor(max_workers=workers) as pool:
        for value in pool.map(lambda job: measure(*job), jobs):
            results.append(value)
            if progress is not None:
                progress(len(results), len(jobs), "simulated runs")
    return results
