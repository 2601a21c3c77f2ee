"""Which cell next: the driver asks a schedule, and tells it what came out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from memcap.study.cell import Cell
from memcap.study.record import Outcome


@runtime_checkable
class Schedule(Protocol):
    """Cells in the order in which they should be computed.

    ``waits``: whether later cells depend on earlier outcomes, so that the driver must wait for cells that another
    driver is computing.  ``total``: how many cells it may ask for at most.
    """

    waits: bool
    total: int

    def take(self, room: int) -> list[Cell]:
        """At most ``room`` cells to compute now; none while it waits for outcomes or when all have been given out."""
        ...

    def learn(self, cell: Cell, outcome: Outcome | None) -> None:
        """What came of a cell that was taken; ``None`` if it was not computed."""
        ...

    def exhausted(self) -> bool:
        """Whether no more cells will come, whatever is still learnt."""
        ...


class EveryCell:
    """All given cells.  Cells that share an expensive part are kept together, one such group per slot at a time."""

    waits = False

    def __init__(self, cells: Iterable[Cell], slots: int = 1) -> None:
        self._slots = max(1, slots)
        self._groups: deque[deque[Cell]] = deque()
        by_name: dict[str, deque[Cell]] = {}
        self.total = 0
        for cell in cells:
            self.total += 1
            if cell.group and cell.group in by_name:
                by_name[cell.group].append(cell)
            else:
                queue = deque([cell])
                self._groups.append(queue)
                if cell.group:
                    by_name[cell.group] = queue
        self._active: deque[deque[Cell]] = deque()

    def take(self, room: int) -> list[Cell]:
        """See ``Schedule``."""
        taken: list[Cell] = []
        while len(taken) < room:
            while self._groups and len(self._active) < self._slots:
                self._active.append(self._groups.popleft())
            if not self._active:
                break
            queue = self._active[0]
            taken.append(queue.popleft())
            if queue:
                self._active.rotate(-1)
            else:
                self._active.popleft()
        return taken

    def learn(self, cell: Cell, outcome: Outcome | None) -> None:
        """See ``Schedule``; nothing depends on outcomes here."""

    def exhausted(self) -> bool:
        """See ``Schedule``."""
        return not self._groups and not self._active
