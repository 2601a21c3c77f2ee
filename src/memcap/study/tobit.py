"""The likelihood of a straight line through points of which some are only bounds, and profiles of it.

In Olsen's variables (``beta / scale``, ``1 / scale``) the logarithm of the likelihood is concave, so that the maximum
is the maximum.  Side 1: the true value lies above the one given; -1: below; 0: it is the one given.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import optimize, special

from memcap.errors import FitError


class Tobit:
    """``y_i ~ Normal(design_i @ beta, scale * spread_i)``, where censored points are bounds."""

    def __init__(self, design: Any, y: Any, spread: Any, side: Any) -> None:
        self.design = design / spread[:, None]
        self.y = y / spread
        self.log_spread = float(np.log(spread[side == 0]).sum())
        self.side = side
        self.seen = side == 0

    def _negative(self, table: Any, variables: Any) -> tuple[float, Any, Any]:
        """Minus the log likelihood, its gradient and its (positive) curvature; ``table`` is ``[-design, y]``."""
        z, theta = table @ variables, float(variables[-1])
        seen, count = self.seen, float(self.seen.sum())
        value = 0.5 * float(z[seen] @ z[seen]) + count * (0.5 * math.log(2 * math.pi) - math.log(theta))
        slope, curve = z.copy(), np.ones_like(z)
        bound = ~seen
        signed = self.side[bound] * z[bound]  # a true value beyond its bound has probability Phi(-signed)
        log_tail = special.log_ndtr(-signed)
        value -= float(log_tail.sum())
        hazard = np.exp(-0.5 * signed**2 - 0.5 * math.log(2 * math.pi) - log_tail)
        slope[bound] = self.side[bound] * hazard
        curve[bound] = hazard * (hazard - signed)
        gradient = table.T @ slope
        gradient[-1] -= count / theta
        hessian = (table.T * curve) @ table
        hessian[-1, -1] += count / theta**2
        return value, gradient, hessian

    def _maximise(self, design: Any, y: Any, start: Any) -> tuple[Any, float]:
        """Maximum over coefficients and scale for a (possibly reduced) design, by Newton's method with halving."""
        table, variables = np.column_stack([-design, y]), start
        value, gradient, hessian = self._negative(table, variables)
        for _ in range(200):
            step = np.linalg.lstsq(hessian, -gradient, rcond=None)[0]
            gain = float(-gradient @ step)
            if gain <= 1e-12 * (1 + abs(value)):
                return variables, -value
            share = 1.0
            while share > 1e-12:
                tried = variables + share * step
                if tried[-1] > 0:
                    new = self._negative(table, tried)
                    if new[0] <= value - 1e-4 * share * gain:
                        break
                share /= 2
            else:
                return variables, -value  # no further gain within rounding
            variables, (value, gradient, hessian) = tried, new
        raise FitError("the censored likelihood has no maximum that can be found; are there enough uncensored points?")

    def _centred(self) -> tuple[Any, Any]:
        """An orthonormal basis of the design's columns and the map back, for a well-conditioned search."""
        basis, triangle = np.linalg.qr(self.design)
        return basis * math.sqrt(len(self.y)), triangle / math.sqrt(len(self.y))

    def fit(self, beta: Any, scale: float) -> tuple[Any, float]:
        """Coefficients and scale of largest likelihood, searched from the given ones.

        Raises:
            FitError: if there is no maximum.
        """
        basis, back = self._centred()
        start = np.append(back @ beta, 1.0) / scale
        best, self.top = self._maximise(basis, self.y, start)
        self.theta = float(best[-1])
        self.beta = np.linalg.solve(back, best[:-1]) / self.theta
        return self.beta, 1 / self.theta

    def log_likelihood(self) -> float:
        """At the maximum (after ``fit``), in units of the points' own spread."""
        return self.top - self.log_spread

    def interval(self, index: int, allowed: float, freedom: int) -> tuple[float, float]:
        """Where the profile of coefficient ``index`` leaves ``2 * log ratio = n log(1 + allowed / freedom)``.

        That is Student's interval when nothing is censored.
        """
        if not hasattr(self, "beta"):
            beta = np.linalg.lstsq(self.design[self.seen], self.y[self.seen], rcond=None)[0]
            left = self.y[self.seen] - self.design[self.seen] @ beta
            self.fit(beta, max(1e-12, math.sqrt(float(left @ left) / max(1, freedom))))
        others = np.delete(self.design, index, axis=1)
        basis = np.linalg.qr(others).Q
        basis = basis * math.sqrt(len(self.y))
        start = np.append(basis.T @ (others @ np.delete(self.beta, index)) / len(self.y), 1.0) * self.theta
        drop = 0.5 * self.seen.sum() * math.log1p(allowed / freedom)

        def excess(value: float) -> float:
            reduced = self.y - value * self.design[:, index]
            return float(self.top - self._maximise(basis, reduced, start)[1] - drop)

        rows = self.design[self.seen]
        reach = math.sqrt(float(np.linalg.pinv(rows.T @ rows)[index, index])) / self.theta
        ends = []
        for side in (-1, 1):
            step = 2 * reach
            while excess(self.beta[index] + side * step) < 0:
                step *= 1.7
                if step > 1e6 * reach:
                    ends.append(side * math.inf)
                    break
            else:
                ends.append(
                    float(
                        optimize.brentq(
                            excess, self.beta[index], self.beta[index] + side * step, xtol=1e-9 * max(reach, 1e-12)
                        )
                    )
                )
        return ends[0], ends[1]
