"""``memcap.critical``: the size at which the predicted recall reaches a target.

Inverts ``predict`` in one variable; nothing is simulated here.  Not here: the search (``crossing``), exponents
(``scaling``), simulated critical sizes (``simulated_critical``).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from memcap.retrieval.crossing import HELPS, check_variable, crossing, probe, settle, target_of
from memcap.retrieval.task import RetrievalTask

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
    target, level = target_of(recall, attention, clean_recall)
    check_variable(task, solve_for)
    probability = probe(task, solve_for, target)
    error = THEORY_ERROR["MLP" if task.width else "attention only"]
    margin = min(error, level / 2, (1 - level) / 2)
    found = crossing(task, solve_for, level, probability)
    if isinstance(found, str):
        return Critical(solve_for, target, level, None, math.nan, (None, None), found, math.nan)
    ends = [crossing(task, solve_for, at, probability) for at in (level - margin, level + margin)]
    reachable = [None if isinstance(end, str) else end for end in ends]
    if solve_for not in HELPS:
        reachable.reverse()
    value = math.ceil(found) if solve_for in HELPS else math.floor(found)
    value = settle(value, solve_for, level, probability)
    return Critical(solve_for, target, level, value, found, (reachable[0], reachable[1]), "", probability(value))
