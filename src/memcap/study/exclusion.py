"""What to write under ``exclude`` so that a grid loses the cells that its measurement refuses, and no other."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

_COMPARISONS = {">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le}


def rule_for(refused: Sequence[Mapping[str, Any]], accepted: Sequence[Mapping[str, Any]], axes: Sequence[str]) -> str:
    """A line for ``exclude`` that is true for all refused settings and no accepted ones.

    Tried are comparisons of two settings and of one axis with a number; otherwise the first refused point is named.

    Args:
        refused: settings of cells that the measurement refuses; at least one.
        accepted: settings of cells that it takes.
        axes: names that vary.

    >>> cells = [{"facts": f, "length": n} for f in (3, 9) for n in (4, 8, 16)]
    >>> rule_for([c for c in cells if c["facts"] > c["length"]], [c for c in cells if c["facts"] <= c["length"]],
    ...          ["facts", "length"])
    'facts > length'
    """
    first = refused[0]
    numbers = [n for n, v in first.items() if isinstance(v, int | float) and not isinstance(v, bool)]
    varying = [n for n in axes if n in numbers]

    def separates(name: str, sign: str, other: Any) -> bool:
        def holds(cell: Mapping[str, Any]) -> bool:
            return bool(_COMPARISONS[sign](cell[name], cell[other] if isinstance(other, str) else other))

        try:
            return all(map(holds, refused)) and not any(map(holds, accepted))
        except (KeyError, TypeError):
            return False

    for a, b in itertools.permutations(numbers, 2):
        if a in varying:
            for sign in _COMPARISONS:
                if separates(a, sign, b):
                    return f"{a} {sign} {b}"
    for name in varying:
        for sign, end in ((">=", min), ("<=", max)):
            value = end(cell[name] for cell in refused)
            if separates(name, sign, value):
                return f"{name} {sign} {value}"
    return "{" + ", ".join(f"{name}: {first[name]}" for name in axes) + "}"
