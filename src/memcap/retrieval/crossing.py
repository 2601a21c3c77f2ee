"""Where a predicted probability crosses a level as one size of a task varies: the search behind ``critical``.

Recall grows with samples, dimension and width and falls with length and vocabulary, so a bracket in the logarithm is
halved and then interpolated between integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

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


def target_of(recall: float | None, attention: float | None, clean_recall: float | None) -> tuple[str, float]:
    """The one target that is given, and its level; recall 0.5 if none is.

    Raises:
        ConfigurationError: for more than one, or a level outside (0, 1).
    """
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


ENDLESS = 2**40
"""A size from which on a limit is reported as one, not as a number."""


def check_variable(task: RetrievalTask, solve_for: str) -> None:
    """Refuse a variable that the task cannot be solved for.

    Raises:
        ConfigurationError: saying why.
    """
    if not isinstance(task, RetrievalTask):
        raise ConfigurationError(f"critical expects a RetrievalTask, got {type(task).__name__}")
    check_solve_for(solve_for)
    if solve_for == "width" and not task.width:
        raise ConfigurationError("solve_for='width' needs a task with an MLP: give it a width to start from")
    if solve_for == "samples" and task.data == "population":
        raise ConfigurationError("solve_for='samples' needs data='empirical'; the population gradient has no samples")


def probe(task: RetrievalTask, variable: str, target: str) -> Callable[[int], float]:
    """The predicted ``target`` as a function of ``variable``, remembered.

    Raises:
        ConfigurationError: for an attention target where no attention step is taken.
    """
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


def crossing(task: RetrievalTask, variable: str, level: float, probability: Callable[[int], float]) -> float | str:
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


def settle(value: int, variable: str, level: float, probability: Callable[[int], float]) -> int:
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
    where = f"however {'many' if variable == 'samples' else 'large'}" if at >= ENDLESS else f"at {variable} = {at:,}"
    reason = f"the most {variable} can do is {best:.3g} ({where}), below {level:g}"
    if task.attention == "uniform":
        return reason + "; under uniform attention nothing marks the right token: ask for clean_recall instead"
    try:
        limit = predict(task.replace(**{variable: at}))
    except ConfigurationError:
        return reason
    return f"{reason}; limited by {limit.bottleneck}"
