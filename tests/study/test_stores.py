"""Every backend keeps the contract; what is particular to the SQLite file is tested here too."""

import multiprocessing
import sqlite3
import time
from pathlib import Path

import pytest
from store_conformance import StoreConformance, cell, done

from memcap.errors import ConfigurationError, FormatError, RunError
from memcap.study.memory_store import MemoryStore
from memcap.study.record import State
from memcap.study.sqlite_store import SqliteStore


class TestMemoryStore(StoreConformance):
    def open_store(self, tmp_path):
        return MemoryStore()


class TestSqliteStore(StoreConformance):
    def open_store(self, tmp_path):
        return SqliteStore(tmp_path / "study.db")


class TestSqliteStoreOfTwoConnections(StoreConformance):
    """Reads through another connection than writes: nothing may live in the writer's memory only."""

    def open_store(self, tmp_path):
        writer, reader = SqliteStore(tmp_path / "study.db"), SqliteStore(tmp_path / "study.db")
        for name in ("get", "states", "counts", "records", "meta", "owners"):
            setattr(writer, name, getattr(reader, name))
        close = writer.close
        writer.close = lambda: (reader.close(), close())
        return writer


def test_closing_leaves_one_file_and_reopening_finds_everything(tmp_path):
    store = SqliteStore(tmp_path / "study.db")
    store.add([cell(1)])
    store.close()
    store.close()
    assert [p.name for p in tmp_path.iterdir()] == ["study.db"]
    with pytest.raises(RunError, match="is closed"):
        store.counts()
    again = SqliteStore(tmp_path / "study.db", create=False)
    assert again.counts()[State.PENDING] == 1
    again.close()


def test_a_missing_study_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"there is no study at .*none\.db"):
        SqliteStore(tmp_path / "none.db", create=False)
    with pytest.raises(ConfigurationError, match=r"the folder does not exist; create .*absent first"):
        SqliteStore(tmp_path / "absent" / "study.db")
    with pytest.raises(FormatError, match="is a folder"):
        SqliteStore(tmp_path)


def test_what_is_no_store_is_refused(tmp_path):
    text = tmp_path / "grid.yaml"
    text.write_text("task: simulate\n")
    with pytest.raises(FormatError, match="not a study store"):
        SqliteStore(text)
    assert text.read_text() == "task: simulate\n"
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(FormatError, match="a SQLite file, but not a study store"):
        SqliteStore(other)


def test_a_newer_format_is_refused_naming_both_versions(tmp_path):
    path = tmp_path / "study.db"
    SqliteStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(FormatError, match="study format 7, this memcap reads up to 1"):
        SqliteStore(path)


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "study.db"
    store = SqliteStore(path)
    store.add([cell(x) for x in range(200)])
    store.close()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2 // 4096 * 4096])
    with pytest.raises(FormatError, match="damaged"):
        list(SqliteStore(path).records())


def write_fifty(path, name, barrier):
    store = SqliteStore(path)
    barrier.wait()
    cells = [cell(n, seed=name) for n in range(50)]
    for one in cells:
        store.add([one])
        store.claim([one.identity], str(name), time.time() + 60)
        assert store.finish([(one.identity, done(n=1))], str(name)) == [one.identity]
    store.close()


@pytest.mark.parametrize("writers", [8, pytest.param(32, marks=pytest.mark.slow)])
def test_many_writers_and_a_polling_reader(tmp_path, writers):
    path = tmp_path / "study.db"
    store = SqliteStore(path)
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(writers)
    processes = [context.Process(target=write_fifty, args=(path, n, barrier)) for n in range(writers)]
    for process in processes:
        process.start()
    seen = 0
    while any(p.is_alive() for p in processes):
        now = store.counts()[State.DONE]
        assert now >= seen  # readers see whole transactions, in order
        seen = now
        time.sleep(0.01)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert store.counts()[State.DONE] == 50 * writers
    assert len(list(store.records())) == 50 * writers
    store.close()


def test_two_drivers_that_create_the_file_at_once(tmp_path):
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(6)
    processes = [
        context.Process(target=write_fifty, args=(tmp_path / "new.db", n, barrier)) for n in range(6)
    ]  # each opens the file before the barrier
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [p.exitcode for p in processes] == [0] * 6


def test_a_read_only_file_says_so(tmp_path, monkeypatch):
    path = tmp_path / "study.db"
    SqliteStore(path).close()
    real = sqlite3.connect

    def read_only(name, **options):
        return real(f"file:{name}?mode=ro", uri=True, **options)

    monkeypatch.setattr(sqlite3, "connect", read_only)
    store = SqliteStore(path)
    with pytest.raises(RunError, match="cannot be opened for writing"):
        store.add([cell(1)])
    store.close()


def test_the_first_format_still_opens(tmp_path):
    """A file written by format 1, kept for ever; opened as a copy because opening may write."""
    kept = Path(__file__).parents[1] / "formats" / "study-1.sqlite"
    copy = tmp_path / "study.db"
    copy.write_bytes(kept.read_bytes())
    store = SqliteStore(copy, create=False)
    rows = list(store.records())
    assert [str(r.state) for r in rows] == ["done", "done", "failed", "lost", "pending"]
    assert rows[0].outcome.result["top"] == float("inf")
    assert repr(rows[0].outcome.result["bad"]) == "nan"
    assert rows[0].outcome.result["count"] == 2**70
    assert rows[2].outcome.error == "the toy was told to fail"
    assert store.meta()["question"] == "Does the first format still open?"
    for row in rows:  # the identity is recomputed from what is stored
        from memcap.study.cell import Cell

        assert Cell(row.task, row.task_version, row.settings, row.seed).identity == row.identity
    store.claim([rows[4].identity], "me", time.time() + 60)
    assert store.finish([(rows[4].identity, done(r=1))], "me") == [rows[4].identity]
    store.close()
