"""The fits of a study: critical values, exponents, comparisons of laws; ``Study`` inherits them.

What is computed lives in ``critical_fit``, ``power_law`` and ``law_comparison``; this file brings it the cells.
These are imported where they are used: statistics take seconds to import, and runs, tables and exports need none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memcap.errors import ConfigurationError, nearest
from memcap.study import measurements
from memcap.study.finished_cells import Cells
from memcap.study.fits import Critical, Exponent, LawScore, Method, Scale
from memcap.study.law import read_law
from memcap.study.record import State
from memcap.study.store import Store

if TYPE_CHECKING:
    from memcap.study.shared_seeds import Sample

_CROSSING = ("trials", "rising", "scale")
"""Options of ``critical`` that exponents of critical values take, too."""


class Fitting(ABC):
    """Fits over the finished cells of a store."""

    store: Store

    @property
    @abstractmethod
    def meta(self) -> dict[str, Any]:
        """About the study; its ``grids`` say which settings are derived and what people look at first."""

    def critical(
        self,
        axis: str,
        response: str,
        *,
        target: float = 0.5,
        task: str | None = None,
        where: str | None = None,
        trials: str | None = None,
        rising: bool | None = None,
        scale: Scale = "logit",
        confidence: float = 0.95,
    ) -> list[Critical]:
        """Where ``response`` crosses ``target`` along ``axis``, on every line of the grid, with intervals.

        Args:
            axis: a setting, e.g. ``"samples"``; lines are told apart by all other settings that vary.
            response: a result, e.g. ``"recall"``.
            target: the level.
            task: which measurement, if the study holds several.
            where: an expression over settings and results; only cells where it is true.
            trials: name of the setting or result that says how many answers a fraction counts, if they are independent.
            rising: direction of the response; by default what most lines show.
            scale: ``"logit"`` for fractions, ``"linear"`` for other responses.
            confidence: of the intervals.

        Raises:
            FitError: if the cells cannot carry the question; the message names the line.
            ConfigurationError: if a name or an option is wrong.
        """
        from memcap.study.lines import critical_lines

        return critical_lines(
            self._cells(task, where),
            axis,
            response,
            target=target,
            trials=trials,
            rising=rising,
            scale=scale,
            confidence=confidence,
        )

    def fit_exponent(
        self,
        law: str,
        *,
        response: str | None = None,
        target: float = 0.5,
        task: str | None = None,
        where: str | None = None,
        method: Method = "profile",
        confidence: float = 0.95,
        **options: Any,
    ) -> Exponent:
        """Fit a power law such as ``"samples ~ dimension^a * length^b"``.

        If the left side is a setting, its critical values are fitted (``response`` crossing ``target``; censored lines
        count as bounds); if it is a result, the results themselves are, averaged over seeds.  Where points share
        seeds, the intervals allow for what the cells of one seed have in common.

        Args:
            law: what is fitted; an exponent that is a number is kept.
            response: for critical values: the result that crosses; by default the measurement's main one.
            target: for critical values: the level.
            task: which measurement, if the study holds several.
            where: an expression; only cells where it is true.
            method: ``"profile"`` or ``"bootstrap"``.
            confidence: of the intervals.
            options: as for ``critical``: ``trials``, ``rising``, ``scale``.

        Raises:
            FitError: if the points cannot support the law or the law does not describe them; the message says why.
            ConfigurationError: if the law, a name or an option is wrong.
        """
        from memcap.study.shared_seeds import fit_over_seeds

        sample, seeds, without = self._points([law], response, target, task, where, options)
        return fit_over_seeds(law, sample, seeds=seeds, without=without, method=method, confidence=confidence)

    def compare(
        self,
        laws: Sequence[str],
        *,
        response: str | None = None,
        target: float = 0.5,
        task: str | None = None,
        where: str | None = None,
        **options: Any,
    ) -> list[LawScore]:
        """Which of several laws for one response the cells support, best first; arguments as for ``fit_exponent``.

        Points count as independent here, and so do the intervals of the scores' fits: ``fit_exponent`` gives those that
        allow for shared seeds.

        Raises:
            FitError: if the points cannot support a law or the comparison.
            ConfigurationError: if a law, a name or an option is wrong.
        """
        from memcap.study.law_comparison import compare

        sample, _, _ = self._points(laws, response, target, task, where, options)
        return compare(sample.points, laws, spread=sample.spread, censored=sample.censored)

    def _points(
        self,
        laws: Sequence[str],
        response: str | None,
        target: float,
        task: str | None,
        where: str | None,
        options: Mapping[str, Any],
    ) -> tuple[Sample, list[int], Callable[[frozenset[int]], Sample]]:
        """The points, the seeds that they share, and the points without some seeds."""
        from memcap.study.lines import (
            cell_groups,
            critical_lines,
            points_of_cells,
            sample_of_lines,
            shared_seeds,
        )
        from memcap.study.shared_seeds import Sample

        for name in options:
            if name not in _CROSSING:
                raise ConfigurationError(
                    f"no option {name!r}{nearest(name, _CROSSING)}; options: {', '.join(_CROSSING)}"
                )
        parsed = [read_law(law) for law in laws]
        if not parsed:
            raise ConfigurationError("no law given; write one as 'samples ~ dimension^a'")
        names = list(dict.fromkeys(n for p in parsed for n in (*p.free, *(f for f, _ in p.fixed))))
        cells = self._cells(task, where)
        left = parsed[0].response
        if left not in cells.names:

            def of_cells(leave_out: frozenset[int] = frozenset()) -> Sample:
                return Sample(points_of_cells(cells, left, names, leave_out))

            return of_cells(), shared_seeds(cell_groups(cells, names), cells), of_cells
        crossing = response or self.main_response(task)
        lines = critical_lines(cells, left, crossing, target=target, **options)

        def of_lines(leave_out: frozenset[int]) -> Sample:
            part = critical_lines(cells, left, crossing, target=target, leave_out=leave_out, **options)
            return sample_of_lines(part, names, lines)

        return sample_of_lines(lines, names), shared_seeds(cells.lines(left), cells), of_lines

    def main_response(self, task: str | None = None) -> str:
        """The result that people look at first, as the study's measurement (or ``task``) names it.

        Raises:
            ConfigurationError: if it names none, or the study has no such task.
        """
        known = [measurements.find(grid["task"]) for grid in self.meta["grids"]]
        names = list(dict.fromkeys(m.name for m in known))
        if task is not None and task not in names:
            raise ConfigurationError(f"no task {task!r} in this study{nearest(task, names)}; tasks: {', '.join(names)}")
        for measurement in known:
            if task in (None, measurement.name) and measurement.response:
                return measurement.response
        raise ConfigurationError("say which result crosses the target: response=...")

    def _cells(self, task: str | None, where: str | None) -> Cells:
        derived = [name for grid in self.meta["grids"] for name in grid.get("derived", {})]
        return Cells(self.store.records([State.DONE]), task=task, where=where, derived=derived)
