"""A store in one SQLite file.  The contract is in ``store.py``; the file itself is ``sqlite_file``'s."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from memcap.study.batch import FACTS, ROWS, Batch
from memcap.study.cell import Cell, canonical
from memcap.study.memory_store import check_reopen
from memcap.study.record import MARK, Outcome, Record, State, dumps, loads
from memcap.study.sqlite_file import SqliteFile
from memcap.study.store import Store

_CHUNK = 500  # identities in one statement
_CELL = "identity, task, task_version, settings, seed, place, state, attempts, owner, lease"
_OUTCOME = [f.name for f in dataclasses.fields(Outcome) if f.name != "state"]
_COLUMNS = f"{_CELL}, outcome_state, {', '.join(_OUTCOME)}"
_BATCH = f"{', '.join(FACTS)}, settings, CASE state WHEN 'done' THEN result ELSE '{{}}' END"
_FINISH = (
    f"UPDATE cells SET state = ?, outcome_state = ?, {', '.join(f'{n} = ?' for n in _OUTCOME)} "
    "WHERE identity = ? AND owner = ? AND state IN ('running', 'lost')"
)


class SqliteStore(Store):
    """Cells in the file ``path``; created if it is missing and ``create`` is true.

    Raises:
        FormatError: if the file is not a store, is damaged, or was written by a newer format.
        ConfigurationError: if there is no such file or folder.
        RunError: if it cannot be opened or stays locked.
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self._file = SqliteFile(path, create=create)
        self.path = self._file.path

    def add(self, cells: Iterable[Cell]) -> int:
        """See ``Store``."""
        rows = (
            (c.identity, c.task, c.version, _in_order(c.settings), c.seed, c.place, State.PENDING.value) for c in cells
        )
        with self._file.write() as connection:
            before = connection.total_changes
            connection.executemany(
                "INSERT INTO cells (identity, task, task_version, settings, seed, place, state) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (identity) DO NOTHING",
                rows,
            )
            return connection.total_changes - before

    def claim(self, identities: Sequence[str], owner: str, until: float) -> list[str]:
        """See ``Store``."""
        got = []
        with self._file.write() as connection:
            for identity in identities:
                changed = connection.execute(
                    "UPDATE cells SET state = 'running', owner = ?, lease = ?, attempts = attempts + 1 "
                    "WHERE identity = ? AND state = 'pending'",
                    (owner, until, identity),
                )
                if changed.rowcount:
                    got.append(identity)
        return got

    def heartbeat(self, owner: str, until: float) -> int:
        """See ``Store``."""
        with self._file.write() as connection:
            return connection.execute(
                "UPDATE cells SET lease = ? WHERE state = 'running' AND owner = ?", (until, owner)
            ).rowcount

    def finish(self, outcomes: Sequence[tuple[str, Outcome]], owner: str) -> list[str]:
        """See ``Store``."""
        rows = [(identity, _outcome_row(outcome, identity, owner)) for identity, outcome in outcomes]
        with self._file.write() as connection:
            return [identity for identity, row in rows if connection.execute(_FINISH, row).rowcount]

    def release(self, identities: Sequence[str], owner: str) -> int:
        """See ``Store``."""
        with self._file.write() as connection:
            return sum(
                connection.execute(
                    "UPDATE cells SET state = 'pending', owner = '', attempts = attempts - 1 "
                    "WHERE identity = ? AND owner = ? AND state = 'running'",
                    (identity, owner),
                ).rowcount
                for identity in identities
            )

    def reopen(self, states: Sequence[State], identities: Sequence[str] | None = None) -> int:
        """See ``Store``."""
        check_reopen(states)
        marks = ", ".join("?" * len(states))
        update = f"UPDATE cells SET state = 'pending', owner = '' WHERE state IN ({marks})"
        values = [s.value for s in states]
        with self._file.write() as connection:
            if identities is None:
                return connection.execute(update, values).rowcount
            return sum(
                connection.execute(
                    f"{update} AND identity IN ({', '.join('?' * len(part))})", [*values, *part]
                ).rowcount
                for part in (identities[i : i + _CHUNK] for i in range(0, len(identities), _CHUNK))
            )

    def expire(self, now: float) -> int:
        """See ``Store``."""
        if not self._file.read("SELECT 1 FROM cells WHERE state = 'running' AND lease < ? LIMIT 1", (now,)):
            return 0
        with self._file.write() as connection:
            return connection.execute(
                "UPDATE cells SET state = 'lost' WHERE state = 'running' AND lease < ?", (now,)
            ).rowcount

    def abandon(self, owner: str) -> int:
        """See ``Store``."""
        with self._file.write() as connection:
            return connection.execute(
                "UPDATE cells SET state = 'lost' WHERE state = 'running' AND owner = ?", (owner,)
            ).rowcount

    def owners(self) -> list[str]:
        """See ``Store``."""
        return [
            r[0] for r in self._file.read("SELECT DISTINCT owner FROM cells WHERE state = 'running' ORDER BY owner")
        ]

    def states(self) -> dict[str, State]:
        """See ``Store``."""
        return {i: State(s) for i, s in self._file.read("SELECT identity, state FROM cells ORDER BY number")}

    def counts(self) -> dict[State, int]:
        """See ``Store``."""
        found = dict(self._file.read("SELECT state, count(*) FROM cells GROUP BY state"))
        return {s: int(found.get(s.value, 0)) for s in State}

    def get(self, identity: str) -> Record | None:
        """See ``Store``."""
        rows = self._file.read(f"SELECT {_COLUMNS} FROM cells WHERE identity = ?", (identity,))
        return _record(rows[0]) if rows else None

    def records(self, states: Sequence[State] | None = None) -> Iterator[Record]:
        """See ``Store``."""
        where, values = _in_states(states)
        query = f"SELECT {_COLUMNS} FROM cells{where} ORDER BY number"
        blocks = self._file.snapshot(query, values, 1)
        return (_record(row) for block in blocks for row in block)

    def batches(self, states: Sequence[State] | None = None) -> Iterator[Batch]:
        """See ``Store``."""
        where, values = _in_states(states)
        query = f"SELECT {_BATCH} FROM cells{where} ORDER BY number"
        return map(_batch, self._file.snapshot(query, values, ROWS))

    def meta(self) -> dict[str, str]:
        """See ``Store``."""
        return dict(self._file.read("SELECT key, value FROM meta ORDER BY key"))

    def set_meta(self, key: str, value: str) -> None:
        """See ``Store``."""
        with self._file.write() as connection:
            connection.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = ?", (key, value, value)
            )

    def close(self) -> None:
        """See ``Store``."""
        self._file.close()


def _in_order(settings: Mapping[str, Any]) -> str:
    """JSON in the order of the settings, which is the order of the table's columns."""
    return json.dumps(dict(settings), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _outcome_row(outcome: Outcome, identity: str, owner: str) -> tuple[Any, ...]:
    values = {name: getattr(outcome, name) for name in _OUTCOME}
    values["result"] = dumps(outcome.result)
    values["versions"] = canonical(outcome.versions)
    return (outcome.state.value, outcome.state.value, *values.values(), identity, owner)


def _in_states(states: Sequence[State] | None) -> tuple[str, list[str]]:
    """A condition on the state, and its parameters."""
    if states is None:
        return "", []
    return f" WHERE state IN ({', '.join('?' * len(states))})", [s.value for s in states]


@lru_cache(maxsize=256)
def _parsed(text: str) -> dict[str, str]:
    """Versions; one dict for all rows of a run."""
    found: dict[str, str] = json.loads(text)
    return found


def _record(row: tuple[Any, ...]) -> Record:
    identity, task, task_version, settings, seed, place, state, attempts, owner, lease, outcome_state = row[:11]
    outcome = None
    if outcome_state is not None:
        values = dict(zip(_OUTCOME, row[11:], strict=True))
        values["result"], values["versions"] = loads(values["result"]), _parsed(values["versions"])
        outcome = Outcome(State(outcome_state), **values)
    return Record(
        identity, task, task_version, json.loads(settings), seed, place, State(state), attempts, owner, lease, outcome
    )


def _batch(block: list[tuple[Any, ...]]) -> Batch:
    """Rows of ``_BATCH``; a column of JSON is decoded at once, results when they are needed."""
    *columns, settings, results = zip(*block, strict=True)
    facts: dict[str, Sequence[Any]] = dict(zip(FACTS, columns, strict=True))
    written = set(facts["versions"]) - {None}
    versions = {text: canonical(_parsed(text)) for text in written}
    facts["versions"] = [None if text is None else versions[text] for text in facts["versions"]]
    return Batch(facts, _decoded(settings), results, _decoded)


def _decoded(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Many texts of JSON; pydantic's parser is twice as fast as Python's, which alone puts NaN and infinities back."""
    together = f"[{','.join(texts)}]"
    found: list[dict[str, Any]] = loads(together) if MARK in together else from_json(together, cache_strings="keys")
    return found
