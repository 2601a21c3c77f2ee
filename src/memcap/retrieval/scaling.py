"""``memcap.scaling``: how a critical size moves with every other size of a task: difference quotients of the theory."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from memcap.errors import ConfigurationError
from memcap.retrieval.crossing import RANGES, check_variable, crossing, probe, target_of
from memcap.retrieval.task import RetrievalTask, real


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
    target, level = target_of(recall, attention, clean_recall)
    check_variable(task, solve_for)

    def solve(at: RetrievalTask) -> float | str:
        return crossing(at, solve_for, level, probe(at, solve_for, target))

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
