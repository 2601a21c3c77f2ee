"""Activations of the frozen MLP: values and derivatives in NumPy and in torch, by name.

Not here: Hermite coefficients and expectations (the theory computes them from these functions).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from memcap.errors import ConfigurationError, nearest

if TYPE_CHECKING:
    import torch

NAMED = ("relu", "gelu", "tanh", "he2")
HIGHEST_DEGREE = 6
_TERM = re.compile(r"(?P<sign>[+-]?)(?:(?P<factor>\d+(?:\.\d*)?(?:e-?\d+)?|\.\d+(?:e-?\d+)?)\*)?h(?P<degree>\d+)")


@dataclass(frozen=True)
class Activation:
    """An activation φ and its derivative φ'.

    Attributes:
        name: as given by the user.
        powers: coefficients of a polynomial, lowest power first; empty for ReLU, GELU and tanh.
        hermite: ``(degree, coefficient)`` of a polynomial in normalised Hermite polynomials; empty for the others.
    """

    name: str
    powers: tuple[float, ...] = ()
    hermite: tuple[tuple[int, float], ...] = ()

    def value(self, x: Any) -> Any:
        """φ(x), elementwise, for a NumPy array or a torch tensor."""
        return _polynomial(self.powers, x) if self.powers else _VALUE[self.name](x)

    def slope(self, x: Any) -> Any:
        """φ'(x), elementwise; ReLU has slope 0 at 0, as in torch."""
        if not self.powers:
            return _SLOPE[self.name](x)
        return _polynomial(tuple(k * c for k, c in enumerate(self.powers))[1:] or (0.0,), x)


def activation(name: str) -> Activation:
    """The activation called ``name``.

    Args:
        name: ``relu``, ``gelu`` (exact, with the error function), ``tanh``, ``he2`` (= ``h2``), or a sum of normalised
            Hermite polynomials ``h0`` … ``h6`` with optional factors, such as ``h1+h2`` or ``0.5*h1-2*h3``.
            ``h_k = He_k/√(k!)``, so ``h1 = x`` and ``h2 = (x² - 1)/√2``.

    Raises:
        ConfigurationError: if the name is unknown or the sum is malformed.

    >>> activation("h1+h2").hermite
    ((1, 1.0), (2, 1.0))
    >>> float(activation("he2").value(np.array(3.0))) == 8 / math.sqrt(2)
    True
    """
    if name == "he2":
        return Activation(name, *_from_hermite({2: 1.0}))
    if name in NAMED:
        return Activation(name)
    terms: dict[int, float] = {}
    text, end = name.replace(" ", ""), 0
    for match in _TERM.finditer(text):
        degree = int(match["degree"])
        if match.start() != end or (end > 0 and not match["sign"]) or degree > HIGHEST_DEGREE:
            break
        factor = float(match["factor"] or 1) * (-1 if match["sign"] == "-" else 1)
        terms[degree] = terms.get(degree, 0.0) + factor
        end = match.end()
    if not text or end != len(text) or not any(terms.values()):
        raise ConfigurationError(
            f"activation must be one of {', '.join(NAMED)} or a sum of Hermite polynomials h0 … h{HIGHEST_DEGREE} "
            f"such as 'h1+h2' or '0.5*h1-2*h3', got {name!r}{nearest(name, NAMED)}"
        )
    return Activation(name, *_from_hermite(terms))


def _from_hermite(terms: dict[int, float]) -> tuple[tuple[float, ...], tuple[tuple[int, float], ...]]:
    degree = max(terms)
    scaled = [terms.get(k, 0.0) / math.sqrt(math.factorial(k)) for k in range(degree + 1)]
    powers = np.polynomial.hermite_e.herme2poly(scaled)
    powers = np.pad(powers, (0, degree + 1 - len(powers)))
    return tuple(float(c) for c in powers), tuple(sorted((k, float(c)) for k, c in terms.items()))


def _polynomial(powers: tuple[float, ...], x: Any) -> Any:
    total = x * 0.0 + powers[-1]
    for coefficient in reversed(powers[:-1]):
        total = total * x + coefficient
    return total


def _is_torch(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] == "torch"


def _relu(x: Any) -> Any:
    return x.clamp(min=0) if _is_torch(x) else np.maximum(x, 0)


def _step(x: Any) -> Any:
    return (x > 0).to(x.dtype) if _is_torch(x) else (np.asarray(x) > 0).astype(np.float64)


def _tanh(x: Any) -> Any:
    return x.tanh() if _is_torch(x) else np.tanh(x)


def _normal_cdf(x: Any) -> Any:
    if _is_torch(x):
        tensor: torch.Tensor = x
        return 0.5 * (1 + (tensor / math.sqrt(2)).erf())
    from scipy.special import ndtr

    return ndtr(x)


def _normal_pdf(x: Any) -> Any:
    exponent = -0.5 * x * x
    return (exponent.exp() if _is_torch(x) else np.exp(exponent)) / math.sqrt(2 * math.pi)


_VALUE: dict[str, Callable[[Any], Any]] = {"relu": _relu, "tanh": _tanh, "gelu": lambda x: x * _normal_cdf(x)}
_SLOPE: dict[str, Callable[[Any], Any]] = {
    "relu": _step,
    "tanh": lambda x: 1 - _tanh(x) ** 2,
    "gelu": lambda x: _normal_cdf(x) + x * _normal_pdf(x),
}
