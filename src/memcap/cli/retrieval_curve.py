"""``--curve samples=100..100000``: the points of a sweep, and a picture of it in the terminal."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

from memcap.errors import ConfigurationError, nearest

FIELDS = ("vocabulary", "length", "samples", "dimension", "width")
_TEXT = re.compile(r"(?P<field>\w+)=(?P<low>[\d_.e+]+?)\.\.(?P<high>[\d_.e+]+?)(?::(?P<points>\d+))?")
ROWS, COLUMNS = 16, 64


def curve_points(text: str, default_points: int = 9) -> tuple[str, list[int]]:
    """The field and its values, evenly spaced in the logarithm and distinct.

    Raises:
        ConfigurationError: if the text is not ``field=low..high`` or ``field=low..high:points``.

    >>> curve_points("samples=100..100000:4")
    ('samples', [100, 1000, 10000, 100000])
    """
    match = _TEXT.fullmatch(text.replace(" ", "").replace(",", ""))
    try:
        if match is None:
            raise ValueError
        low, high = (int(float(match[name])) for name in ("low", "high"))
        points = int(match["points"] or default_points)
    except (ValueError, OverflowError):
        raise ConfigurationError(
            f"--curve takes field=low..high or field=low..high:points, such as samples=100..100000:7, got {text!r}"
        ) from None
    if match["field"] not in FIELDS:
        raise ConfigurationError(
            f"--curve sweeps {', '.join(FIELDS)}, got {match['field']!r}{nearest(match['field'], FIELDS)}"
        )
    if not 1 <= low < high or not 2 <= points <= 1000:
        raise ConfigurationError(f"--curve needs 1 <= low < high and 2 to 1000 points, got {text!r}")
    ratio = math.log(high / low) / (points - 1)
    values = sorted({round(low * math.exp(ratio * i)) for i in range(points)})
    return match["field"], values


def picture(
    name: str,
    values: Sequence[int],
    predicted: Sequence[float | None],
    simulated: Sequence[tuple[float, float, float] | None],
    *,
    sizes: bool = False,
) -> str:
    """A character plot of recall against ``values`` (logarithmic): ``·`` predicted, ``●`` simulated, ``│`` interval.

    With ``sizes`` the vertical axis is a size, logarithmic, from the smallest to the largest drawn.
    """
    grid = [[" "] * COLUMNS for _ in range(ROWS + 1)]
    logs = [math.log(value) for value in values]
    span = (logs[-1] - logs[0]) or 1.0

    def column(log: float) -> int:
        return round((log - logs[0]) / span * (COLUMNS - 1))

    drawn = [p for p in predicted if p is not None] + [y for point in simulated if point is not None for y in point]
    bottom, top = (math.log(min(drawn, default=1)), math.log(max(drawn, default=1))) if sizes else (0.0, 1.0)
    tall = (top - bottom) or 1.0

    def row(height: float) -> int:
        share = ((math.log(height) if sizes else height) - bottom) / tall
        return ROWS - round(min(max(share, 0.0), 1.0) * ROWS)

    def tick(y: int) -> str:
        at = bottom + (1 - y / ROWS) * tall
        return f"{math.exp(at):9.3g}" if sizes else f"{at:5.2f}"

    known = [(log, p) for log, p in zip(logs, predicted, strict=True) if p is not None]
    for (left, a), (right, b) in itertools.pairwise(known):
        for x in range(column(left), column(right) + 1):
            share = min(max((x / (COLUMNS - 1) * span + logs[0] - left) / ((right - left) or 1.0), 0.0), 1.0)
            grid[row(a ** (1 - share) * b**share if sizes else a + (b - a) * share)][x] = "·"
    for log, point in zip(logs, simulated, strict=True):
        if point is not None:
            middle, low, high = point
            for y in range(row(high), row(low) + 1):
                grid[y][column(log)] = "│"
            grid[row(middle)][column(log)] = "●"
    lines = [f"{tick(y)} ┤{''.join(line).rstrip()}" for y, line in enumerate(grid)]
    margin = " " * (len(tick(0)) + 1)
    first, last = f"{values[0]:,}", f"{values[-1]:,}"
    axis = first + name.center(COLUMNS - len(first) - len(last)) + last
    legend = "   ".join(["· predicted"] * bool(known) + ["● simulated"] * any(p is not None for p in simulated))
    below = [f"{margin}└" + "─" * COLUMNS, f"{margin} {axis}", f"{margin} {legend}"]
    return "\n".join([*lines, *below])
