"""A store in one SQLite file, in write-ahead mode: readers never wait, and a killed process leaves a whole file.

The contract is in ``store.py``.  ``synchronous=NORMAL``: what was stored survives the death of any process; after a
power cut the last moments may be missing and are then computed again, the file stays whole.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from memcap.errors import ConfigurationError, FormatError, MemcapError, RunError
from memcap.study.cell import FORMAT, Cell, canonical
from memcap.study.memory_store import check_reopen
from memcap.study.record import Outcome, Record, State, dumps, loads
from memcap.study.store import Store

APPLICATION = 0x6D63_7374  # "mcst" in the file's header says whose file it is
_PATIENCE = 60.0  # seconds to wait for another writer before giving up
_CHUNK = 500  # identities in one statement

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE cells (
  number INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE,
  task TEXT NOT NULL, task_version INTEGER NOT NULL, settings TEXT NOT NULL, seed INTEGER NOT NULL,
  place TEXT NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
  owner TEXT NOT NULL DEFAULT '', lease REAL NOT NULL DEFAULT 0,
  result TEXT, error_type TEXT, error TEXT, trace TEXT, started REAL, finished REAL, seconds REAL, cpu_seconds REAL,
  peak_memory INTEGER, host TEXT, device TEXT, versions TEXT, data_hash TEXT, outcome_state TEXT
);
CREATE INDEX cells_by_state ON cells (state);
"""
_CELL = "identity, task, task_version, settings, seed, place, state, attempts, owner, lease"
_OUTCOME = [f.name for f in dataclasses.fields(Outcome) if f.name != "state"]
_COLUMNS = f"{_CELL}, outcome_state, {', '.join(_OUTCOME)}"
_FINISH = (
    f"UPDATE cells SET state = ?, outcome_state = ?, {', '.join(f'{n} = ?' for n in _OUTCOME)} "
    "WHERE identity = ? AND owner = ? AND state IN ('running', 'lost')"
)


class SqliteStore(Store):
    """One file; created if it is missing and ``create`` is true.

    Raises:
        FormatError: if the file is not a store, is damaged, or was written by a newer format.
        ConfigurationError: if there is no such file or folder.
        RunError: if it cannot be opened or stays locked.
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        if self.path.is_dir():
            raise FormatError(f"{self.path} is a folder; a study is one file, e.g. {self.path / 'phase.db'}")
        if not self.path.exists():
            if not create:
                raise ConfigurationError(
                    f"there is no study at {self.path}; 'memcap study run' or Study.open creates one"
                )
            if not self.path.absolute().parent.is_dir():
                raise ConfigurationError(f"{self.path}: the folder {self.path.absolute().parent} does not exist")
        elif self.path.stat().st_size > 0:
            with self.path.open("rb") as file:
                if file.read(16) != b"SQLite format 3\0":
                    raise FormatError(f"{self.path} is not a study store (its first bytes are not SQLite's)")
        with self._told():
            self._open()

    def _open(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:  # switching on write-ahead mode does not wait for other writers by itself
            connection = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                self._connection = connection
                self._prepare()
                return
            except BaseException as error:
                connection.close()
                self._connection = None
                locked = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
                if not locked or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _prepare(self) -> None:
        if self._pragma("user_version") == 0:
            with self._write() as connection:
                tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
                if self._pragma("user_version") == 0:  # still: another process may have been first
                    if tables:
                        raise FormatError(f"{self.path} is a SQLite file, but not a study store")
                    for statement in _SCHEMA.split(";"):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {APPLICATION}")
                    connection.execute(f"PRAGMA user_version = {FORMAT}")
        if self._pragma("application_id") != APPLICATION:
            raise FormatError(f"{self.path} is a SQLite file, but not a study store")
        version = self._pragma("user_version")
        if version > FORMAT:
            raise FormatError(
                f"{self.path} has study format {version}, this memcap reads up to {FORMAT}; install a newer memcap"
            )

    def _pragma(self, name: str) -> int:
        return int(self._open_connection().execute(f"PRAGMA {name}").fetchone()[0])

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise RunError(f"the study {self.path} is closed")
        return self._connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        """SQLite's errors as one sentence about this file."""
        try:
            yield
        except sqlite3.Error as error:
            text = str(error)
            if "malformed" in text or "not a database" in text:
                raise FormatError(f"{self.path} is damaged and cannot be read: {text}") from None
            if "full" in text or "disk I/O" in text:
                raise RunError(
                    f"{self.path} could not be written ({text}): is the disk full, or a file-size limit reached? "
                    "What was stored before is whole; make room, then 'memcap study resume'"
                ) from None
            if "readonly" in text or "unable to open" in text:
                raise RunError(f"{self.path} cannot be opened for writing: {text}") from None
            raise RunError(f"{self.path}: {text}") from None

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """One transaction that holds the write lock from its start; all of it or nothing."""
        with self._lock, self._told():
            connection = self._open_connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _read(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock, self._told():
            return self._open_connection().execute(query, parameters).fetchall()

    def add(self, cells: Iterable[Cell]) -> int:
        """See ``Store``."""
        rows = (
            (c.identity, c.task, c.version, _in_order(c.settings), c.seed, c.place, State.PENDING.value) for c in cells
        )
        with self._write() as connection:
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
        with self._write() as connection:
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
        with self._write() as connection:
            return connection.execute(
                "UPDATE cells SET lease = ? WHERE state = 'running' AND owner = ?", (until, owner)
            ).rowcount

    def finish(self, outcomes: Sequence[tuple[str, Outcome]], owner: str) -> list[str]:
        """See ``Store``."""
        rows = [(identity, _outcome_row(outcome, identity, owner)) for identity, outcome in outcomes]
        with self._write() as connection:
            return [identity for identity, row in rows if connection.execute(_FINISH, row).rowcount]

    def release(self, identities: Sequence[str], owner: str) -> int:
        """See ``Store``."""
        with self._write() as connection:
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
        with self._write() as connection:
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
        if not self._read("SELECT 1 FROM cells WHERE state = 'running' AND lease < ? LIMIT 1", (now,)):
            return 0
        with self._write() as connection:
            return connection.execute(
                "UPDATE cells SET state = 'lost' WHERE state = 'running' AND lease < ?", (now,)
            ).rowcount

    def abandon(self, owner: str) -> int:
        """See ``Store``."""
        with self._write() as connection:
            return connection.execute(
                "UPDATE cells SET state = 'lost' WHERE state = 'running' AND owner = ?", (owner,)
            ).rowcount

    def owners(self) -> list[str]:
        """See ``Store``."""
        return [r[0] for r in self._read("SELECT DISTINCT owner FROM cells WHERE state = 'running' ORDER BY owner")]

    def states(self) -> dict[str, State]:
        """See ``Store``."""
        return {i: State(s) for i, s in self._read("SELECT identity, state FROM cells ORDER BY number")}

    def counts(self) -> dict[State, int]:
        """See ``Store``."""
        found = dict(self._read("SELECT state, count(*) FROM cells GROUP BY state"))
        return {s: int(found.get(s.value, 0)) for s in State}

    def get(self, identity: str) -> Record | None:
        """See ``Store``."""
        rows = self._read(f"SELECT {_COLUMNS} FROM cells WHERE identity = ?", (identity,))
        return _record(rows[0]) if rows else None

    def records(self, states: Sequence[State] | None = None) -> Iterator[Record]:
        """See ``Store``.  Rows are read as they are asked for, through a connection and a snapshot of their own."""
        where = "" if states is None else f" WHERE state IN ({', '.join('?' * len(states))})"
        values = [] if states is None else [s.value for s in states]
        self._open_connection()
        with self._told():
            reader = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            try:
                rows = reader.execute(f"SELECT {_COLUMNS} FROM cells{where} ORDER BY number", values)
                first = rows.fetchone()  # the snapshot is taken here, not when the caller first looks
            except BaseException:
                reader.close()
                raise
        return self._stream(reader, rows, first)

    def _stream(self, reader: sqlite3.Connection, rows: sqlite3.Cursor, row: Any) -> Iterator[Record]:
        try:
            with self._told():
                while row is not None:
                    yield _record(row)
                    row = rows.fetchone()
        finally:
            reader.close()

    def meta(self) -> dict[str, str]:
        """See ``Store``."""
        return dict(self._read("SELECT key, value FROM meta ORDER BY key"))

    def set_meta(self, key: str, value: str) -> None:
        """See ``Store``."""
        with self._write() as connection:
            connection.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = ?", (key, value, value)
            )

    def close(self) -> None:
        """See ``Store``."""
        with self._lock:
            if self._connection is not None:
                try:
                    with self._told():
                        self._connection.close()  # the last one to close folds the journal into the file
                except MemcapError:
                    pass  # a full disk at this point loses nothing: the journal beside the file is whole
                self._connection = None


def _in_order(settings: Mapping[str, Any]) -> str:
    """JSON in the order of the settings, which is the order of the table's columns."""
    return json.dumps(dict(settings), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _outcome_row(outcome: Outcome, identity: str, owner: str) -> tuple[Any, ...]:
    values = {name: getattr(outcome, name) for name in _OUTCOME}
    values["result"] = dumps(outcome.result)
    values["versions"] = canonical(outcome.versions)
    return (outcome.state.value, outcome.state.value, *values.values(), identity, owner)


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
