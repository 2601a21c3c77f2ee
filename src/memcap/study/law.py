"""A power law as text: ``samples ~ dimension^a * length^b * vocabulary^0.5``; reads it, computes nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from memcap.errors import ConfigurationError

_NAME = r"[A-Za-z_][A-Za-z0-9_.]*"
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:/\d+)?"
_FACTOR = re.compile(rf"({_NAME})(?:\s*(?:\^|\*\*)\s*\(?\s*({_NAME}|{_NUMBER})\s*\)?)?")


@dataclass(frozen=True)
class Law:
    """``response = constant * product(free_i ^ unknown_i) * product(fixed_j ^ known_j)``.

    Attributes:
        text: as written.
        response: what is explained.
        free: factors whose exponents are fitted, in the order written.
        labels: their exponents' names, in the same order.
        fixed: factors with known exponents.
    """

    text: str
    response: str
    free: tuple[str, ...]
    labels: tuple[str, ...]
    fixed: tuple[tuple[str, float], ...]


def read_law(text: str) -> Law:
    """Read a law such as ``samples ~ dimension^a · length^b``; a number as exponent is kept, a name is fitted.

    Raises:
        ConfigurationError: if it is not one; the message shows an example.

    >>> law = read_law("samples ~ dimension^a * length^2")
    >>> law.response, law.free, law.labels, law.fixed
    ('samples', ('dimension',), ('a',), (('length', 2.0),))
    """
    example = "write it as 'samples ~ dimension^a * length^b'"
    left, tilde, right = text.partition("~")
    response = left.strip()
    if not tilde or not re.fullmatch(_NAME, response):
        raise ConfigurationError(f"{text!r} is no law; {example}")
    free: list[str] = []
    labels: list[str] = []
    fixed: list[tuple[str, float]] = []
    parts = [p.strip() for p in re.split(r"·|(?<!\*)\*(?!\*)", right)]
    for part in parts:
        if part == "1" and len(parts) == 1:
            continue  # a constant
        match = _FACTOR.fullmatch(part)
        if match is None:
            raise ConfigurationError(f"{text!r}: {part!r} is no factor; {example}")
        name, exponent = match[1], match[2] or "1"
        if name == response or name in free or name in [n for n, _ in fixed]:
            raise ConfigurationError(f"{text!r} names {name!r} twice")
        if re.fullmatch(_NAME, exponent):
            if exponent in labels:
                raise ConfigurationError(f"{text!r} uses the exponent {exponent!r} twice")
            free.append(name)
            labels.append(exponent)
        else:
            fixed.append((name, float(Fraction(exponent))))
    return Law(text, response, tuple(free), tuple(labels), tuple(fixed))
