"""What a run is told (``Limits``), whom it tells (``Observer``) and what it says at its end (``RunSummary``)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

from memcap.study.cell import Cell
from memcap.study.record import Outcome


@dataclass(frozen=True)
class Limits:
    """How a run ends early and how it treats dying workers.

    Attributes:
        tries: how often a cell whose worker ends itself is tried before it is *failed*; a worker killed from outside
            makes its cell *lost* at once.
        fail_fast: stop at the first failed cell.
        time_limit: seconds after which no more is started and what runs is given back.
        lease: seconds for which a claim holds without a heartbeat.
    """

    tries: int = 3
    fail_fast: bool = False
    time_limit: float | None = None
    lease: float = 60.0


@dataclass(frozen=True)
class RunSummary:
    """What one run did.

    Attributes:
        done: cells computed in this run.
        failed: cells that failed in this run.
        lost: cells whose worker was killed in this run.
        already_done: cells that were done before.
        elsewhere: cells that another driver was computing.
        pending: cells of this grid still to do.
        seconds: wall time of the run.
        stopped: why it ended early; empty if it did not.
    """

    done: int = 0
    failed: int = 0
    lost: int = 0
    already_done: int = 0
    elsewhere: int = 0
    pending: int = 0
    seconds: float = 0.0
    stopped: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


@runtime_checkable
class Observer(Protocol):
    """Is told what happens while it happens."""

    def begin(self, total: int, already_done: int) -> None:
        """A run of at most ``total`` cells starts."""
        ...

    def cell(self, cell: Cell, outcome: Outcome) -> None:
        """One cell came to its end."""
        ...

    def end(self) -> None:
        """The run is over."""
        ...
