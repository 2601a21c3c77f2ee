"""The contract of a store, in words.  ``tests/study/store_conformance.py`` runs it over every backend.

A store holds one row per cell, named by the cell's identity, in the order in which the cells were first added, and a
small table of texts about the study.  Several drivers (processes, threads) may use one store at once.

* **Identity.**  Adding a cell that is there changes nothing, whatever its state.
* **Claims.**  A driver computes a cell only after claiming it.  A claim turns *pending* into *running* for one owner
  until a moment in time (the lease); of several owners that claim at once exactly one gets it.  The owner extends its
  leases by a heartbeat.
* **Outcomes.**  ``finish`` keeps an outcome only while the cell is running for that owner, or is *lost* and was last
  that owner's; otherwise it changes nothing and says so.  A cell that is *done* never changes again.
* **Lost.**  ``expire`` turns running cells whose lease has passed into *lost*; ``abandon`` those of an owner known to
  be dead.
* **Durability.**  When a call returns, what it did survives the death of the process.  A call that fails leaves the
  store as it was.  Readers see whole transactions, never wait for a writer and never make one wait.
* **Values.**  Results come back equal to what was stored: NaN, infinities, big integers and the difference between
  1 and 1.0 included.
* **Errors.**  Every failure is a ``MemcapError``: ``FormatError`` for a file that is not a store, or is a newer one;
  ``RunError`` for a disk that is full or a store that stays locked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from memcap.study.batch import Batch, batches_of
from memcap.study.cell import Cell
from memcap.study.record import Outcome, Record, State


class Store(ABC):
    """One row per cell; see the contract at the top of this file."""

    @abstractmethod
    def add(self, cells: Iterable[Cell]) -> int:
        """Add the cells that are not there yet, as *pending*; returns how many were new."""

    @abstractmethod
    def claim(self, identities: Sequence[str], owner: str, until: float) -> list[str]:
        """Turn the *pending* ones of ``identities`` into *running* for ``owner``; returns the ones it got, in order.

        Each claimed cell counts one attempt more.
        """

    @abstractmethod
    def heartbeat(self, owner: str, until: float) -> int:
        """Extend the leases of everything ``owner`` runs to ``until``; returns how many cells that is."""

    @abstractmethod
    def finish(self, outcomes: Sequence[tuple[str, Outcome]], owner: str) -> list[str]:
        """Keep outcomes, all or none; returns the identities that were kept (see *Outcomes* above)."""

    @abstractmethod
    def release(self, identities: Sequence[str], owner: str) -> int:
        """Turn what ``owner`` runs of ``identities`` back into *pending*, the attempt not counted; returns how many."""

    @abstractmethod
    def reopen(self, states: Sequence[State], identities: Sequence[str] | None = None) -> int:
        """Turn *failed* or *lost* cells (all, or those of ``identities``) into *pending*; returns how many.

        Raises:
            ConfigurationError: for any other state.
        """

    @abstractmethod
    def expire(self, now: float) -> int:
        """Turn running cells whose lease ended before ``now`` into *lost*; returns how many."""

    @abstractmethod
    def abandon(self, owner: str) -> int:
        """Turn everything that ``owner`` runs into *lost*; returns how many cells that is."""

    @abstractmethod
    def owners(self) -> list[str]:
        """Who runs cells at this moment."""

    @abstractmethod
    def states(self) -> dict[str, State]:
        """Identity to state, of every cell, in the order of adding."""

    @abstractmethod
    def counts(self) -> dict[State, int]:
        """How many cells are in each state; every state is named."""

    @abstractmethod
    def get(self, identity: str) -> Record | None:
        """One row, or ``None``."""

    @abstractmethod
    def records(self, states: Sequence[State] | None = None) -> Iterator[Record]:
        """Rows in the order of adding, as they all were at one moment."""

    def batches(self, states: Sequence[State] | None = None) -> Iterator[Batch]:
        """The rows of ``records`` as columns; a store that can decode many rows at once does so here."""
        return batches_of(self.records(states))

    @abstractmethod
    def meta(self) -> dict[str, str]:
        """Texts about the study."""

    @abstractmethod
    def set_meta(self, key: str, value: str) -> None:
        """Set one text about the study."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files and locks; closing twice is allowed."""
