"""The fits that a report draws when the caller brings none: crossings line by line, then exponents through them.

The statistics are ``memcap.study``'s, whose ``critical`` and ``fit_exponent`` give the same numbers; this file says
which lines there are and keeps the reason of every fit that the points could not support.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from memcap.errors import MemcapError
from memcap.report.tables.axis import plain
from memcap.report.tables.boundary import crossing
from memcap.study.critical_fit import critical
from memcap.study.fits import Critical, Exponent
from memcap.study.lines import sample_of_lines
from memcap.study.shared_seeds import Sample, fit_over_seeds

if TYPE_CHECKING:
    from memcap.report.subject import Subject


LABELS = "abcdefgh"
"""Names of the exponents in a law's text."""


def fitted(s: Subject) -> Subject:
    """The subject with crossings of the target along y and the laws through them, measured and predicted."""
    measured, problem = crossings(s, s.outcome)
    reasons = dict(s.reasons) | ({"criticals": problem} if problem else {})
    laws: dict[str, Exponent] = {}
    predicted = predicted_crossings(s) if s.predicted is not None else []
    for source, lines in (("measured", measured), ("predicted", predicted)):
        try:
            law = law_through(s, lines, measured=source == "measured")
        except MemcapError as error:
            if source == "measured":
                reasons["exponents"] = str(error)
        else:
            if law is not None:
                laws[source] = law
    if "measured" not in laws and "exponents" not in reasons:
        reasons["exponents"] = problem or "no numeric setting varies beside the one that is crossed"
    return replace(s, criticals=tuple(measured), exponents=laws, reasons=reasons)


def law_through(s: Subject, lines: list[Critical], *, measured: bool = False) -> Exponent | None:
    """The power law of the critical y in every numeric setting that varies; None when there is no such setting.

    Where names vary too (an activation, a method), only the lines of the first panel are used.  The interval of a law
    through measured lines allows for what cells of one seed have in common.

    Raises:
        FitError: when the lines cannot support it, with the reason.
    """
    names = [a for a in s.free if a != s.y]
    numbers = [
        n for n in names if pd.api.types.is_numeric_dtype(s.cells.frame[n]) and bool((s.cells.frame[n] > 0).all())
    ]
    fixed = {n: v for n, v in s.panels[0].fixed.items() if n not in numbers}

    def chosen(some: list[Critical]) -> list[Critical]:
        return [line for line in some if all(line.settings.get(k) == v for k, v in fixed.items())]

    used = chosen(lines)
    factors = [n for n in numbers if len({line.settings[n] for line in used}) > 1]
    if not factors or not used or s.y is None:
        return None
    law = f"{s.y} ~ " + " * ".join(f"{n}^{label}" for n, label in zip(factors, LABELS, strict=False))
    factors = factors[: len(LABELS)]

    def without(seeds: frozenset[int]) -> Sample:
        return sample_of_lines(chosen(crossings(s, s.outcome, leave_out=seeds)[0]), factors, used)

    seeds = _shared_seeds(s, fixed) if measured else []
    return fit_over_seeds(law, sample_of_lines(used, factors), seeds=seeds, without=without)


def _shared_seeds(s: Subject, fixed: dict[str, Any]) -> list[int]:
    """The seeds of the finished cells of the first panel, if some seed lies on more than one line along y."""
    cells = s.cells
    done = cells.done
    if "seed" not in done:
        return []
    done = done[np.isfinite(done[s.outcome].astype(float))]
    for name, value in fixed.items():
        if name in done:
            done = done[done[name] == value]
    lines = lines_along(done, [a for a in cells.axes if a != s.y])
    on = [set(line["seed"]) for _, line in lines]
    together = sorted({int(seed) for seeds in on for seed in seeds})
    return together if sum(map(len, on)) > len(together) else []


def predicted_crossings(s: Subject) -> list[Critical]:
    """Where the predictions cross the target along y, line by line, by interpolation; no interval."""
    assert s.predicted is not None
    cells, y = s.cells, s.y
    if y is None or not pd.api.types.is_numeric_dtype(cells.frame[y]) or not bool((cells.frame[y] > 0).all()):
        return []
    others = [a for a in cells.axes if a != y]
    found = []
    for settings, line in lines_along(cells.frame[cells.frame[s.predicted].notna()], others):
        means = line.groupby(y)[s.predicted].mean().sort_index()
        at, value = means.index.to_numpy(float), means.to_numpy(float)
        place, censored = crossing(at, value, s.target, log=True)
        mark: Any = censored or None
        found.append(Critical(place, place, place, mark, settings, y, s.predicted, s.target))
    return found


def lines_along(frame: pd.DataFrame, others: list[str]) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    """The rows of each combination of ``others``, with that combination."""
    if not others:
        return [({}, frame)]
    groups = frame.groupby(others, dropna=False, sort=True)
    return [({n: plain(v) for n, v in zip(others, values, strict=True)}, line) for values, line in groups]


def crossings(s: Subject, outcome: str, *, leave_out: frozenset[int] = frozenset()) -> tuple[list[Critical], str]:
    """One fitted crossing per line along y; and why there are none or fewer, in words (empty when all were fitted).

    Args:
        s: the subject; the finished cells of all panels are used.
        outcome: the result that crosses, measured or predicted.
        leave_out: seeds whose cells are not used, except for the direction of the response.
    """
    cells, y = s.cells, s.y
    if y is None:
        return [], "no setting varies"
    column = cells.frame[y]
    if not pd.api.types.is_numeric_dtype(column) or not bool((column > 0).all()):
        return [], f"{y} is not a positive number, so there is no crossing along it"
    done = cells.done
    done = done[np.isfinite(done[outcome].astype(float))]
    others = [a for a in cells.axes if a != y]
    direction = spearmanr(done[y], done[outcome]).statistic if done[outcome].nunique() > 1 else math.nan
    rising = bool(direction > 0) if math.isfinite(direction) and direction != 0 else None
    if leave_out:
        done = done[~done["seed"].isin(leave_out)]
    found: list[Critical] = []
    problem = ""
    for varied, line in lines_along(done, others):
        settings = {**cells.fixed, **varied}
        try:
            found.append(
                critical(
                    line[y].to_numpy(float),
                    line[outcome].to_numpy(float),
                    target=s.target,
                    groups=line["seed"].to_numpy() if "seed" in line else None,
                    rising=rising,
                    scale="logit" if s.unit else "linear",
                    axis=y,
                    response=outcome,
                    settings=settings,
                )
            )
        except MemcapError as error:
            problem = str(error)
    return found, problem
