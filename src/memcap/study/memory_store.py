"""A store in a dict: the readable reference for the contract in ``store.py``, and a store for tests and small scripts.

It lives as long as the process; several threads may use it, several processes cannot.
"""

from __future__ import annotations

import copy
import dataclasses
import threading
from collections.abc import Iterable, Iterator, Sequence

from memcap.errors import ConfigurationError
from memcap.study.cell import Cell
from memcap.study.record import Outcome, Record, State, dumps, loads
from memcap.study.store import Store


class MemoryStore(Store):
    """One dict of records behind one lock."""

    def __init__(self) -> None:
        self._rows: dict[str, Record] = {}
        self._meta: dict[str, str] = {}
        self._lock = threading.RLock()

    def _change(self, identity: str, **fields: object) -> None:
        self._rows[identity] = dataclasses.replace(self._rows[identity], **fields)  # type: ignore[arg-type]

    def _running(self, owner: str) -> list[str]:
        return [i for i, r in self._rows.items() if r.state is State.RUNNING and r.owner == owner]

    def add(self, cells: Iterable[Cell]) -> int:
        """See ``Store``."""
        with self._lock:
            before = len(self._rows)
            for cell in cells:
                if cell.identity not in self._rows:
                    self._rows[cell.identity] = Record(
                        cell.identity,
                        cell.task,
                        cell.version,
                        dict(cell.settings),
                        cell.seed,
                        cell.place,
                        State.PENDING,
                        0,
                        "",
                        0.0,
                        None,
                    )
            return len(self._rows) - before

    def claim(self, identities: Sequence[str], owner: str, until: float) -> list[str]:
        """See ``Store``."""
        got = []
        with self._lock:
            for identity in identities:
                row = self._rows.get(identity)
                if row is not None and row.state is State.PENDING:
                    self._change(identity, state=State.RUNNING, owner=owner, lease=until, attempts=row.attempts + 1)
                    got.append(identity)
        return got

    def heartbeat(self, owner: str, until: float) -> int:
        """See ``Store``."""
        with self._lock:
            running = self._running(owner)
            for identity in running:
                self._change(identity, lease=until)
            return len(running)

    def finish(self, outcomes: Sequence[tuple[str, Outcome]], owner: str) -> list[str]:
        """See ``Store``."""
        stored = [(i, dataclasses.replace(o, result=loads(dumps(o.result)))) for i, o in outcomes]
        kept = []
        with self._lock:
            for identity, outcome in stored:
                row = self._rows.get(identity)
                if row is not None and row.owner == owner and row.state in (State.RUNNING, State.LOST):
                    self._change(identity, state=outcome.state, outcome=outcome)
                    kept.append(identity)
        return kept

    def release(self, identities: Sequence[str], owner: str) -> int:
        """See ``Store``."""
        with self._lock:
            mine = set(self._running(owner)) & set(identities)
            for identity in mine:
                self._change(identity, state=State.PENDING, owner="", attempts=self._rows[identity].attempts - 1)
            return len(mine)

    def reopen(self, states: Sequence[State], identities: Sequence[str] | None = None) -> int:
        """See ``Store``."""
        check_reopen(states)
        with self._lock:
            chosen = [
                i
                for i, r in self._rows.items()
                if r.state in states and (identities is None or i in frozenset(identities))
            ]
            for identity in chosen:
                self._change(identity, state=State.PENDING, owner="")
            return len(chosen)

    def expire(self, now: float) -> int:
        """See ``Store``."""
        with self._lock:
            late = [i for i, r in self._rows.items() if r.state is State.RUNNING and r.lease < now]
            for identity in late:
                self._change(identity, state=State.LOST)
            return len(late)

    def abandon(self, owner: str) -> int:
        """See ``Store``."""
        with self._lock:
            running = self._running(owner)
            for identity in running:
                self._change(identity, state=State.LOST)
            return len(running)

    def owners(self) -> list[str]:
        """See ``Store``."""
        with self._lock:
            return sorted({r.owner for r in self._rows.values() if r.state is State.RUNNING})

    def states(self) -> dict[str, State]:
        """See ``Store``."""
        with self._lock:
            return {i: r.state for i, r in self._rows.items()}

    def counts(self) -> dict[State, int]:
        """See ``Store``."""
        with self._lock:
            return {s: sum(r.state is s for r in self._rows.values()) for s in State}

    def get(self, identity: str) -> Record | None:
        """See ``Store``."""
        with self._lock:
            return copy.deepcopy(self._rows.get(identity))

    def records(self, states: Sequence[State] | None = None) -> Iterator[Record]:
        """See ``Store``."""
        with self._lock:
            rows = [copy.deepcopy(r) for r in self._rows.values() if states is None or r.state in states]
        return iter(rows)

    def meta(self) -> dict[str, str]:
        """See ``Store``."""
        with self._lock:
            return dict(self._meta)

    def set_meta(self, key: str, value: str) -> None:
        """See ``Store``."""
        with self._lock:
            self._meta[key] = value

    def close(self) -> None:
        """See ``Store``."""


def check_reopen(states: Sequence[State]) -> None:
    """Only *failed* and *lost* cells may be tried again.

    Raises:
        ConfigurationError: for any other state.
    """
    for state in states:
        if state not in (State.FAILED, State.LOST):
            raise ConfigurationError(f"only failed and lost cells can be tried again, not {str(state)!r} ones")
