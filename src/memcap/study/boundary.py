"""Spend cells only where a result crosses a target: bisection along one axis, line by line.

Boundaries are smooth, so a line starts where its neighbours crossed (straight on, where two are known) and usually
needs two or three values; the line in the middle of the grid comes first and the others follow outwards.  Which cells
are asked for depends on results alone, never on who finishes first, so a resumed or parallel run asks for the same.
The response is taken to be monotone along a line; a line whose ends lie on one side of the target is censored.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from memcap.errors import ConfigurationError
from memcap.study.cell import Cell
from memcap.study.grid import Grid
from memcap.study.record import Outcome
from memcap.study.table import flatten

Place = tuple[int, ...]
_Search = Generator[list[int], None, None]


@dataclass
class Line:
    """One line of the grid along the boundary's axis.

    Attributes:
        place: where it lies on the other axes.
        allowed: positions on the axis that are not excluded, ascending in the axis's value.
        first_past: position in ``allowed`` of the first value on the far side of the target; ``len(allowed)`` if none
            is; ``None`` while unknown, or if the line's cells failed.
        rising: whether the response rises along the axis; ``None`` if neither this line nor those before it tell.
    """

    place: Place
    allowed: list[int]
    first_past: int | None = None
    rising: bool | None = None
    high: dict[int, bool] = field(default_factory=dict)
    ended: bool = False


class AlongBoundary:
    """The schedule of ``strategy: boundary``; see the top of this file.

    Raises:
        ConfigurationError: if the grid has no such strategy, or ``exclude`` leaves nothing.
    """

    waits = True

    def __init__(self, grid: Grid, slots: int = 1) -> None:
        wanted = grid.boundary
        if wanted is None:
            raise ConfigurationError(f"{grid.where}: 'strategy' is not 'boundary'")
        self._grid, self._wanted = grid, wanted
        values: list[Any] = list(grid.axes[wanted.axis])
        self._positions = sorted(range(len(values)), key=lambda i: values[i])
        self._values = values
        self._others = [name for name in grid.axes if name != wanted.axis]
        self._cells: dict[tuple[Place, int], list[Cell]] = {}
        self._lines: dict[Place, Line] = {}
        for place in product(*(range(len(grid.axes[name])) for name in self._others)):
            self._add_line(place)
        if not self._cells:
            raise ConfigurationError(f"{grid.where}: 'exclude' leaves no cell")
        self.total = min(sum(map(len, self._cells.values())), 4 * len(self._lines) * len(grid.seeds))
        self._center = tuple(len(grid.axes[name]) // 2 for name in self._others)
        self._searches: dict[Place, _Search] = {}
        self._queue: deque[Cell] = deque()
        self._where: dict[str, tuple[Place, int]] = {}
        self._missing: dict[tuple[Place, int], int] = {}
        self._found: dict[tuple[Place, int], list[float]] = {}
        self._waiting: dict[Place, set[int]] = {}
        self._start_ready()

    def _add_line(self, place: Place) -> None:
        point = {name: self._grid.axes[name][i] for name, i in zip(self._others, place, strict=True)}
        allowed = []
        for position in self._positions:
            full = {name: point.get(name, self._values[position]) for name in self._grid.axes}
            cells = [c for seed in self._grid.seeds if (c := self._grid.cell_at(full, seed)) is not None]
            if cells:
                self._cells[place, position] = cells
                allowed.append(position)
        self._lines[place] = Line(place, allowed, ended=not allowed)

    def identities(self) -> list[str]:
        """Of every cell that this schedule might ask for."""
        return [c.identity for cells in self._cells.values() for c in cells]

    def lines(self) -> list[Line]:
        """What is known of every line."""
        return list(self._lines.values())

    def take(self, room: int) -> list[Cell]:
        """See ``Schedule``."""
        return [self._queue.popleft() for _ in range(min(room, len(self._queue)))]

    def exhausted(self) -> bool:
        """See ``Schedule``."""
        return not self._queue and not self._waiting

    def learn(self, cell: Cell, outcome: Outcome | None) -> None:
        """See ``Schedule``."""
        spot = self._where.pop(cell.identity, None)
        if spot is None:
            return
        value = flatten(outcome.result).get(self._wanted.response) if outcome is not None else None
        if outcome is not None and outcome.result and not isinstance(value, int | float):
            raise ConfigurationError(
                f"boundary: {cell.task!r} gives no number {self._wanted.response!r}; it gives: "
                f"{', '.join(flatten(outcome.result))}"
            )
        if isinstance(value, int | float) and not math.isnan(value):
            self._found.setdefault(spot, []).append(float(value))
        self._missing[spot] -= 1
        if self._missing[spot] == 0:
            place, position = spot
            means = self._found.get(spot)
            if means:
                line = self._lines[place]
                line.high[line.allowed.index(position)] = math.fsum(means) / len(means) >= self._wanted.target
            self._waiting[place].discard(position)
            if not self._waiting[place]:
                self._advance(place)

    def _advance(self, place: Place) -> None:
        """Continue the search on one line; when it ends, start those that follow it."""
        line = self._lines[place]
        self._waiting.pop(place, None)
        for asked in self._searches[place]:
            if asked:
                self._ask(place, [line.allowed[i] for i in asked])
                return
        line.ended = True
        self._start_ready()

    def _ask(self, place: Place, positions: list[int]) -> None:
        self._waiting[place] = set(positions)
        for position in positions:
            cells = self._cells[place, position]
            self._missing[place, position] = len(cells)
            for cell in cells:
                self._where[cell.identity] = (place, position)
                self._queue.append(cell)

    def _start_ready(self) -> None:
        for place, line in self._lines.items():
            parent = self._parent(place)
            ready = parent is None or self._lines[parent].ended
            if ready and not line.ended and place not in self._searches:
                line.rising = self._known_direction(parent)
                self._searches[place] = _search(line, self._guess(place, line))
                self._advance(place)

    def _parent(self, place: Place) -> Place | None:
        """The neighbour one step nearer to the middle; ``None`` for the middle itself."""
        for axis, (here, middle) in enumerate(zip(place, self._center, strict=True)):
            if here != middle:
                step = 1 if here < middle else -1
                return (*place[:axis], here + step, *place[axis + 1 :])
        return None

    def _known_direction(self, parent: Place | None) -> bool | None:
        if self._wanted.direction != "auto":
            return self._wanted.direction == "rising"
        return None if parent is None else self._lines[parent].rising

    def _crossing(self, place: Place) -> int | None:
        """Rank on the whole axis of a finished line's first value past the target."""
        line = self._lines[place]
        if line.first_past is None:
            return None
        if line.first_past == len(line.allowed):
            return len(self._positions)
        return self._positions.index(line.allowed[line.first_past])

    def _guess(self, place: Place, line: Line) -> int | None:
        parent = self._parent(place)
        nearest = None if parent is None else self._crossing(parent)
        if parent is None or nearest is None:
            return None
        grandparent = self._parent(parent)
        rank = nearest
        if grandparent is not None and _same_way(place, parent, grandparent):
            before = self._crossing(grandparent)
            rank = nearest if before is None else 2 * nearest - before
        return sum(self._positions.index(p) < rank for p in line.allowed)


def _same_way(place: Place, parent: Place, grandparent: Place) -> bool:
    return all(2 * b == a + c for a, b, c in zip(place, parent, grandparent, strict=True))


def _search(line: Line, guess: int | None) -> _Search:
    """Ask for positions until the first one past the target is known; gives up on a line whose cells failed."""
    count = len(line.allowed)

    def known(i: int) -> bool:
        return i in line.high

    low, top = -1, count  # the answer lies in (low, top]
    if line.rising is None:
        yield sorted({0, count - 1})
        if not (known(0) and known(count - 1)) or line.high[0] == line.high[count - 1]:
            return
        line.rising = line.high[count - 1]
        low, top = 0, count - 1
    elif guess is not None:
        asked = [i for i in (guess - 1, guess) if 0 <= i < count]
        yield asked
        if not all(known(i) for i in asked):
            return
        for i in asked:
            low, top = (low, min(top, i)) if line.high[i] == line.rising else (max(low, i), top)
        step = 1
        while top - low > 1 and (low == -1 or top == count):
            probe = max(0, top - step) if low == -1 else min(count - 1, low + step)
            yield [probe]
            if not known(probe):
                return
            low, top = (low, probe) if line.high[probe] == line.rising else (probe, top)
            step *= 2
    while top - low > 1:
        middle = (low + top) // 2
        yield [middle]
        if not known(middle):
            return
        low, top = (low, middle) if line.high[middle] == line.rising else (middle, top)
    line.first_past = top
