"""Predicted against simulated recall at every point of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from memcap.retrieval.early_phase.points import Point
from memcap.retrieval.prediction import predict
from memcap.retrieval.task import RetrievalTask


@dataclass(frozen=True)
class GridPoint:
    """One point of a grid: simulated values beside the prediction.

    Attributes:
        label: the axes' values, as text.
        simulated: over seeds.
        predicted: by the theory.
        target: what was measured.
    """

    label: str
    simulated: Point
    predicted: float
    target: str


def tasks_of(grid: dict[str, Any]) -> list[tuple[dict[str, int], RetrievalTask]]:
    """Every point of a grid of the configuration."""
    axes = grid["axes"]
    points = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    return [(at, RetrievalTask(**{**grid["task"], **at})) for at in points]


def jobs_of(grid: dict[str, Any]) -> list[tuple[dict[str, int], RetrievalTask, str]]:
    """What has to be measured: recall of three steps at every point and, if asked for, of the first step alone."""
    jobs = [(at, task, "recall") for at, task in tasks_of(grid)]
    if grid.get("first_step"):
        jobs += [(at, task.replace(attention="uniform"), "clean_recall") for at, task in tasks_of(grid)]
    return jobs


def predicted(task: RetrievalTask, target: str) -> float:
    """The theory's number for a measured target."""
    return float(getattr(predict(task), target))


def mean_absolute_error(points: list[GridPoint], target: str) -> float:
    """Mean |predicted - simulated| over the points of one target."""
    return float(np.mean([abs(p.predicted - p.simulated.mean) for p in points if p.target == target]))


def noise_of_error(points: list[GridPoint], target: str) -> float:
    """What a perfect prediction would show as mean absolute error: √(2/π) times the mean standard error."""
    errors = [p.simulated.standard_error for p in points if p.target == target]
    return float(np.sqrt(2 / np.pi) * np.mean(errors))
