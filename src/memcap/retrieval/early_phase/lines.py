"""Critical numbers of samples along a line of tasks: simulated with intervals, predicted, and their exponents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from memcap.errors import FitError
from memcap.random import stream
from memcap.retrieval.critical import critical
from memcap.retrieval.early_phase.points import Point
from memcap.retrieval.seed_bootstrap import resampled
from memcap.retrieval.task import RetrievalTask

FACTORS = {"full": (0.45, 0.58, 0.76, 1.0, 1.3, 1.7, 2.2), "small": (0.5, 0.75, 1.1, 1.6)}
USED = (0.08, 0.92)  # points outside are saturated and not logit-linear


@dataclass(frozen=True)
class CriticalPoint:
    """One task of a line.

    Attributes:
        at: value of the line's variable.
        predicted: critical N by the theory.
        simulated: critical N by a logit-linear fit through the simulated points.
        resampled: the same for every bootstrap resample of the seeds.
        points: what was simulated.
    """

    at: int
    predicted: float
    simulated: float
    resampled: Float[np.ndarray, " resamples"]
    points: list[Point]

    @property
    def interval(self) -> tuple[float, float]:
        """95 % bootstrap interval of the simulated critical N."""
        low, high = np.quantile(self.resampled, [0.025, 0.975])
        return float(low), float(high)

    @property
    def ratio(self) -> float:
        """Predicted over simulated."""
        return self.predicted / self.simulated


def tasks_around(task: RetrievalTask, target: str, scale: str) -> tuple[float, list[RetrievalTask]]:
    """The predicted critical N of ``task`` and the tasks to simulate around it.

    Raises:
        FitError: if the theory finds no critical N.
    """
    found = critical(task, solve_for="samples", **{target: 0.5})
    if found.value is None:
        raise FitError(f"no critical number of samples to look around: {found.reason}")
    factors = FACTORS[scale]
    return found.crossing, [task.replace(samples=max(round(found.crossing * f), 1)) for f in factors]


def critical_point(at: int, predicted: float, points: list[Point]) -> CriticalPoint:
    """The simulated critical N of measured points, with a bootstrap over seeds.

    Raises:
        FitError: if fewer than two points lie within ``USED``, or there are fewer than two seeds a point.
    """
    if len(points[0].values) < 2:
        raise FitError(f"an interval over seeds needs at least 2 seeds a point, got {len(points[0].values)}")
    samples = np.array([float(p.task.samples) for p in points])
    values = np.stack([p.values for p in points])
    simulated = _crossing(samples, values.mean(axis=1))
    if simulated is None:
        raise FitError(
            f"fewer than two of {len(points)} points lie between {USED[0]} and {USED[1]}: "
            f"{', '.join(f'{v:.2f}' for v in values.mean(axis=1))}; widen the factors"
        )
    draws = stream(points[0].task.seed, "retrieval:bootstrap", points[0].task.samples)
    spread = resampled(values, lambda mean: _crossing(samples, mean), simulated, draws, paired=False)
    return CriticalPoint(at, predicted, simulated, spread, points)


def _crossing(samples: Float[np.ndarray, " n"], mean: Float[np.ndarray, " n"]) -> float | None:
    used = (mean > USED[0]) & (mean < USED[1])
    if used.sum() < 2:
        return None
    x, y = np.log(samples[used]), np.log(mean[used] / (1 - mean[used]))
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
    if slope <= 0:
        return None
    return float(np.exp(x.mean() - y.mean() / slope))


@dataclass(frozen=True)
class Exponent:
    """Slope of ln N against the logarithm of the line's variable.

    Attributes:
        simulated: by least squares through the simulated critical N.
        interval: 95 % bootstrap interval over seeds.
        predicted: the same slope through the predicted ones.
    """

    simulated: float
    interval: tuple[float, float]
    predicted: float


def exponent(line: list[CriticalPoint]) -> Exponent:
    """The exponent of a line of at least three critical points: two fit any power law.

    Raises:
        FitError: for fewer points of different size.
    """
    if len({p.at for p in line}) < 3:
        raise FitError(f"an exponent needs at least three points, got {len({p.at for p in line})} of different size")
    x = np.log([float(p.at) for p in line])
    centred = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    slopes = np.log(np.stack([p.resampled for p in line])).T @ centred
    low, high = np.quantile(slopes, [0.025, 0.975])
    return Exponent(
        simulated=float(np.log([p.simulated for p in line]) @ centred),
        interval=(float(low), float(high)),
        predicted=float(np.log([p.predicted for p in line]) @ centred),
    )


def mean_and_worst(line: list[CriticalPoint]) -> tuple[float, float]:
    """Mean and largest |ln(predicted / simulated)|."""
    errors = np.abs([np.log(p.ratio) for p in line])
    return float(errors.mean()), float(errors.max())
