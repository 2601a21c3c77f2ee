"""A study's SQLite file: opening, creating and refusing it, transactions, snapshots, SQLite's errors in plain words.

What is stored and when is ``sqlite_store``'s.  Write-ahead mode: readers never wait, and a killed process leaves a
whole file.  ``synchronous=NORMAL``: what was stored survives the death of any process; after a power cut the last
moments may be missing and are then computed again, the file stays whole.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memcap.errors import ConfigurationError, FormatError, MemcapError, RunError, missing_folder
from memcap.study.cell import FORMAT

APPLICATION = 0x6D63_7374  # "mcst" in the file's header says whose file it is
_PATIENCE = 60.0  # seconds to wait for another writer before giving up

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


class SqliteFile:
    """One file and one writing connection to it; created if it is missing and ``create`` is true.

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
                raise missing_folder(self.path)
        elif self.path.stat().st_size > 0:
            with self.path.open("rb") as file:
                if file.read(16) != b"SQLite format 3\0":
                    raise FormatError(f"{self.path} is not a study store (its first bytes are not SQLite's)")
        with self.told():
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
            with self.write() as connection:
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
    def told(self) -> Iterator[None]:
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
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction that holds the write lock from its start; all of it or nothing."""
        with self._lock, self.told():
            connection = self._open_connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def read(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock, self.told():
            return self._open_connection().execute(query, parameters).fetchall()

    def snapshot(self, query: str, parameters: Sequence[Any], rows: int) -> Iterator[list[tuple[Any, ...]]]:
        """Blocks of at most ``rows`` rows, read as they are asked for, as they all were when this was called."""
        self._open_connection()
        with self.told():
            reader = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            try:
                cursor = reader.execute(query, parameters)
                first = cursor.fetchmany(rows)  # the snapshot is taken here, not when the caller first looks
            except BaseException:
                reader.close()
                raise
        return self._blocks(reader, cursor, first, rows)

    def _blocks(
        self, reader: sqlite3.Connection, cursor: sqlite3.Cursor, block: list[tuple[Any, ...]], rows: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        try:
            with self.told():
                while block:
                    yield block
                    block = cursor.fetchmany(rows)
        finally:
            reader.close()

    def close(self) -> None:
        """Close the file; closing twice is allowed."""
        with self._lock:
            if self._connection is not None:
                try:
                    with self.told():
                        self._connection.close()  # the last one to close folds the journal into the file
                except MemcapError:
                    pass  # a full disk at this point loses nothing: the journal beside the file is whole
                self._connection = None
