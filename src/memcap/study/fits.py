"""What a fit says: plain results that tables and charts read.

The computations live beside this file: ``critical_fit`` (where a line of cells crosses a target), ``power_law``
(exponents) and ``law_comparison`` (which of several laws the points support).  Nothing here computes or draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from numpy.typing import NDArray

Column = Sequence[Any] | NDArray[Any]
"""Values of one column, one per point."""

Scale = str
"""``"logit"`` or ``"linear"``: on which scale a response is a straight line."""

Method = str
"""``"profile"`` or ``"bootstrap"``: how an exponent gets its interval."""

Censored = Literal["above", "below"] | None


@dataclass(frozen=True)
class Critical:
    """Where one line of a grid crosses a target, e.g. the samples at which recall reaches 0.5.

    Attributes:
        value: the crossing, in units of the axis; for a censored line the end of the axis that it lies beyond.
        low: lower end of the interval (0 when nothing bounds it from below).
        high: upper end of the interval (infinity when nothing bounds it from above).
        censored: ``"above"``: the crossing lies above every value tried; ``"below"``: below every value tried;
            ``None``: it was seen.
        settings: what is constant along the line, by name.
        axis: the name of the axis along which the line runs.
        response: the name of the result that crosses.
        target: the level that it crosses.
        confidence: of the interval, e.g. 0.95.
        n_points: cells that the fit used.
        slope: change of the response's logit (or probit) per unit of log(axis); NaN for a censored line.
    """

    value: float
    low: float
    high: float
    censored: Censored
    settings: dict[str, Any]
    axis: str = ""
    response: str = ""
    target: float = 0.5
    confidence: float = 0.95
    n_points: int = 0
    slope: float = float("nan")

    def describe(self) -> str:
        """One line for people: ``samples = 512 [480, 540]`` or ``samples >= 4096 (censored)``."""
        if self.censored == "above":
            return f"{self.axis} >= {self.value:g} (censored)"
        if self.censored == "below":
            return f"{self.axis} < {self.value:g} (censored)"
        return f"{self.axis} = {self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and tables."""
        return asdict(self)


CriticalLine = Critical
"""The same class under the name that charts use."""


@dataclass(frozen=True)
class Exponent:
    """A power law ``response = exp(intercept) * product(x_i ^ value_i)`` with an interval for every exponent.

    Attributes:
        names: the factors, in the order of ``values``.
        values: exponents.
        lows: lower ends of the intervals.
        highs: upper ends of the intervals.
        intercept: natural logarithm of the prefactor.
        r_squared: weighted share of the variance of log(response) that the law explains (1: all of it).
        residuals: log(response) minus the law, one per point, in the order of the points; NaN for a censored point.
        n_points: points that the fit used, censored ones included.
        method: how the intervals were made, in words.
        response: what the law predicts.
        confidence: of the intervals.
        n_censored: how many of the points are bounds and not values.
        labels: the exponents' names in the formula (``a`` in ``dimension^a``), in the order of ``names``.
        intercept_low: lower end of the intercept's interval.
        intercept_high: upper end of the intercept's interval.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    intercept: float
    r_squared: float
    residuals: tuple[float, ...]
    n_points: int
    method: str
    response: str = ""
    confidence: float = 0.95
    n_censored: int = 0
    labels: tuple[str, ...] = ()
    intercept_low: float = float("nan")
    intercept_high: float = float("nan")

    def describe(self) -> str:
        """One line for people: ``samples ~ dimension^-1.5 [-1.6, -1.4]``."""
        factors = " · ".join(
            f"{n}^{v:.3f} [{lo:.3f}, {hi:.3f}]"
            for n, v, lo, hi in zip(self.names, self.values, self.lows, self.highs, strict=True)
        )
        return f"{self.response} ~ {factors}  (R² = {self.r_squared:.4f}, {self.n_points} points)"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and tables."""
        return asdict(self)


@dataclass(frozen=True)
class LawScore:
    """How well one law describes the points.

    Attributes:
        law: the law, as written.
        parameters: free numbers in it, the scatter included.
        log_likelihood: of the points under the fitted law (natural logarithm).
        aicc: Akaike's criterion, corrected for few points; smaller is better.
        weight: share of the support among the laws compared, in [0, 1].
        fit: the fitted law.
    """

    law: str
    parameters: int
    log_likelihood: float
    aicc: float
    weight: float
    fit: Exponent = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and tables."""
        return asdict(self)
