"""``memcap.critical``: the size at which the predicted recall reaches a target, and ``memcap.scaling``: how it moves.

Inverts ``predict`` in one variable; nothing is simulated here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from scipy.optimize import brentq

from memcap.errors import ConfigurationError, nearest
from memcap.retrieval.prediction import attention_success, predict
from memcap.retrieval.task import RetrievalTask, real

RANGES = {
    "samples": (1, 2**62),
    "dimension": (1, 2**20),
    "width": (1, 2**24),
    "length": (1, 2**31),
    "vocabulary": (2, 2**24),
}
"""Variable -> the values that are searched."""

HELPS = ("samples", "dimension", "width")
"""Variables in which recall grows; in the others it falls."""

TARGETS = ("recall", "clean_recall", "attention")
THEORY_ERROR = {"attention only": 0.05, "MLP": 0.10}
"""Error of a predicted probability at the threshold (docs/theory/retrieval.md, "Measured"): sets the interval."""


@dataclass(frozen=True)
class Critical:
    """Where a prediction crosses a target.

    Attributes:
        solve_for: the variable.
        target: ``recall``, ``clean_recall`` or ``attention``.
        level: the probability asked for.
        value: the smallest integer that reaches it (the largest, for length and vocabulary); None if out of reach.
        crossing: the same as a real number, interpolated; nan if out of reach.
        interval: values at which the target would be reached if the theory were off by its known error in either
            direction; None where an end is out of reach.
        reason: why there is no value; empty otherwise.
        reached: the predicted probability at ``value``; nan if out of reach.
    """

    solve_for: str
    target: str
    level: float
    value: int | None
    crossing: float
    interval: tuple[float | None, float | None]
    reason: str
    reached: float

    def to_dict(self) -> dict[str, Any]:
        """Every field, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Scaling:
    """Local exponents of a critical size.

    Attributes:
        solve_for: the variable whose critical value is followed.
        target: as in ``Critical``.
        level: as in ``Critical``.
        critical: its value at the task.
        exponents: other variable -> d ln(critical value) / d ln(variable); nan where a neighbour is out of reach.
        notes: variable -> why its exponent is nan.
    """

    solve_for: str
    target: str
    level: float
    critical: float
    exponents: dict[str, float]
    notes: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Every field, ready for JSON."""
        return asdict(self)


def critical(
    task: RetrievalTask,
    *,
    solve_for: str = "samples",
    recall: float | None = None,
    attention: float | None = None,
    clean_recall: float | None = None,
) -> Critical:
    """The value of ``solve_for`` at which the prediction reaches a target, all other fields of ``task`` kept.

    Args:
        task: the problem; its own value of ``solve_for`` does not matter.
        solve_for: ``samples``, ``dimension``, ``width``, ``length`` or ``vocabulary``.
        recall: target for recall of fresh sequences (0.5 if no target is given).
        attention: target for attention success, instead of ``recall``.
        clean_recall: target for recall of clean token queries, instead of ``recall``.

    Raises:
        ConfigurationError: for an unknown variable, a target outside (0, 1), or more than one target.

    Source: derived here: docs/theory/retrieval.md, "Inverse questions".

    >>> from memcap.retrieval.task import RetrievalTask
    >>> task = RetrievalTask(vocabulary=1024, length=16, samples=40_000, dimension=8)
    >>> critical(task, solve_for="dimension", recall=0.99).value
    251
    """
    target, level = _target(recall, attention, clean_recall)
    _check_variable(task, solve_for)
    probability = _probe(task, solve_for, target)
    error = THEORY_ERROR["MLP" if task.width else "attention only"]
    margin = min(error, level / 2, (1 - level) / 2)
    found = _solve(task, solve_for, level, probability)
    if isinstance(found, str):
        return Critical(solve_for, target, level, None, math.nan, (None, None), found, math.nan)
    ends = [_solve(task, solve_for, at, probability) for at in (level - margin, level + margin)]
    reachable = [None if isinstance(end, str) else end for end in ends]
    if solve_for not in HELPS:
        reachable.reverse()
    value = math.ceil(found) if solve_for in HELPS else math.floor(found)
    value = _settle(value, solve_for, level, probability)
    return Critical(solve_for, target, level, value, found, (reachable[0], reachable[1]), "", probability(value))


def scaling(
    task: RetrievalTask,
    *,
    solve_for: str = "samples",
    recall: float | None = None,
    attention: float | None = None,
    clean_recall: float | None = None,
    factor: float = 1.25,
) -> Scaling:
    """Local exponents of the critical ``solve_for`` in every other size of ``task``.

    Args:
        task: the problem.
        solve_for: as in ``critical``.
        recall: as in ``critical``.
        attention: as in ``critical``.
        clean_recall: as in ``critical``.
        factor: each size is divided and multiplied by this (rounded to integers) for the difference quotient.

    Raises:
        ConfigurationError: as ``critical``; also if the target is out of reach at ``task`` itself.

    Source: derived here: docs/theory/retrieval.md, "Regimes and exponents".
    """
    real("factor", factor, 1.0 + 1e-6, 100.0)
    target, level = _target(recall, attention, clean_recall)
    _check_variable(task, solve_for)

    def solve(at: RetrievalTask) -> float | str:
        return _solve(at, solve_for, level, _probe(at, solve_for, target))

    base = solve(task)
    if isinstance(base, str):
        raise ConfigurationError(f"no exponents: {target} = {level:g} is out of reach of {solve_for}: {base}")
    exponents: dict[str, float] = {}
    notes: dict[str, str] = {}
    for name in ("samples", "length", "vocabulary", "dimension", "width"):
        if (
            name == solve_for
            or (name == "width" and not task.width)
            or (name == "samples" and task.data != "empirical")
        ):
            continue
        here = int(getattr(task, name))
        low, high = max(round(here / factor), RANGES[name][0]), max(round(here * factor), here + 1)
        try:
            values = [solve(task.replace(**{name: size})) for size in (low, high)]
        except ConfigurationError as error:
            exponents[name], notes[name] = math.nan, str(error)
            continue
        if isinstance(values[0], str) or isinstance(values[1], str):
            exponents[name] = math.nan
            notes[name] = next(str(v) for v in values if isinstance(v, str))
            continue
        exponents[name] = math.log(values[1] / values[0]) / math.log(high / low)
    return Scaling(solve_for, target, level, base, exponents, notes)


def _target(recall: float | None, attention: float | None, clean_recall: float | None) -> tuple[str, float]:
    given = {
        name: value
        for name, value in (("recall", recall), ("attention", attention), ("clean_recall", clean_recall))
        if value is not None
    }
    if len(given) > 1:
        raise ConfigurationError(f"give one target, got {' and '.join(given)}")
    name, value = next(iter(given.items()), ("recall", 0.5))
    level = real(name, value, 0.0, 1.0)
    if level in (0.0, 1.0):
        raise ConfigurationError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return name, level


def check_solve_for(name: str) -> None:
    """Refuse a variable that cannot be solved for, naming the nearest one that can.

    Raises:
        ConfigurationError: for an unknown name.
    """
    if name not in RANGES:
        raise ConfigurationError(
            f"solve_for must be one of {', '.join(RANGES)}, got {name!r}{nearest(str(name), RANGES)}"
        )


def _check_variable(task: RetrievalTask, solve_for: str) -> None:
    if not isinstance(task, RetrievalTask):
        raise ConfigurationError(f"critical expects a RetrievalTask, got {type(task).__name__}")
    check_solve_for(solve_for)
    if solve_for == "width" and not task.width:
        raise ConfigurationError("solve_for='width' needs a task with an MLP: give it a width to start from")
    if solve_for == "samples" and task.data == "population":
        raise ConfigurationError("solve_for='samples' needs data='empirical'; the population gradient has no samples")


def _probe(task: RetrievalTask, variable: str, target: str) -> Callable[[int], float]:
    known: dict[int, float] = {}
    if target == "attention" and task.attention in ("uniform", "oracle"):
        raise ConfigurationError(
            f"attention={task.attention!r} takes no attention step, so there is no attention target"
        )

    def probability(value: int) -> float:
        if value not in known:
            at = task.replace(**{variable: value})
            known[value] = attention_success(at) if target == "attention" else float(getattr(predict(at), target))
        return known[value]

    return probability


def _solve(task: RetrievalTask, variable: str, level: float, probability: Callable[[int], float]) -> float | str:
    """The real value at which ``probability`` crosses ``level``, or the reason why it does not."""
    low, high = RANGES[variable]
    if task.embeddings == "orthogonal" and variable == "dimension":
        return "with orthonormal embeddings nothing depends on the dimension beyond vocabulary + 1"
    if task.embeddings == "orthogonal" and variable == "vocabulary":
        high = task.dimension - 1
    helps = variable in HELPS
    good, bad = (high, low) if helps else (low, high)
    # Walk from the task's own size towards a bracket: far ends are slow or saturated.
    at = min(max(int(getattr(task, variable)), low), high)
    if probability(at) >= level:
        good, bad = at, _walk(at, bad, lambda value: probability(value) < level)
        if probability(bad) >= level:
            return f"reached at every {variable} from {min(good, bad)} to {max(good, bad)}"
    else:
        bad, good = at, _walk(at, good, lambda value: probability(value) >= level)
        if probability(good) < level:
            best = probability(good)
            return _out_of_reach(task, variable, level, best, good)
    bad, good = _narrow(bad, good, level, probability)
    if abs(good - bad) <= 1 or probability(good) == probability(bad):
        return _interpolate(bad, good, level, probability)
    left, right = sorted((bad, good))
    root = brentq(
        lambda x: _logit(_real_probability(math.exp(x), probability)) - _logit(level),
        math.log(left),
        math.log(right),
        xtol=1e-4,
    )
    return float(math.exp(root))


def _walk(start: int, end: int, found: Callable[[int], bool]) -> int:
    """Step from ``start`` towards ``end`` by factors of 4 until ``found`` or the end."""
    at = start
    while at != end:
        at = min(at * 4, end) if end > start else max(at // 4, end)
        if found(at):
            break
    return at


def _narrow(bad: int, good: int, level: float, probability: Callable[[int], float]) -> tuple[int, int]:
    """Halve the bracket in the logarithm until its ends are within a factor 2."""
    while max(bad, good) > 2 * min(bad, good):
        middle = round(math.sqrt(bad * good))
        if middle in (bad, good):
            break
        if probability(middle) >= level:
            good = middle
        else:
            bad = middle
    return bad, good


def _real_probability(value: float, probability: Callable[[int], float]) -> float:
    """``probability`` between integers, linear in the logit."""
    low = math.floor(value)
    share = value - low
    if share == 0.0 or low > 10_000:
        return probability(round(value))
    a, b = _logit(probability(low)), _logit(probability(low + 1))
    return 1 / (1 + math.exp(-(a + share * (b - a))))


def _interpolate(bad: int, good: int, level: float, probability: Callable[[int], float]) -> float:
    a, b = _logit(probability(bad)), _logit(probability(good))
    return float(good) if a == b else bad + (good - bad) * (_logit(level) - a) / (b - a)


def _settle(value: int, variable: str, level: float, probability: Callable[[int], float]) -> int:
    """Move by single steps to the first integer that truly reaches the level (rounding of the root)."""
    step = 1 if variable in HELPS else -1
    if value > 10_000:  # the root is known to 1e-4; single steps would not be seen
        return value
    for _ in range(8):
        if probability(value) >= level or value + step < RANGES[variable][0]:
            break
        value += step
    return value


def _logit(p: float) -> float:
    p = min(max(p, 1e-12), 1 - 1e-12)
    return math.log(p / (1 - p))


def _out_of_reach(task: RetrievalTask, variable: str, level: float, best: float, at: int) -> str:
    reason = f"the most {variable} can do is {best:.3g} (at {variable} = {at}), below {level:g}"
    if task.attention == "uniform":
        return reason + "; under uniform attention nothing marks the right token: ask for clean_recall instead"
    try:
        limit = predict(task.replace(**{variable: at}))
    except ConfigurationError:
        return reason
    return f"{reason}; limited by {limit.bottleneck}"
