"""The file under bad luck: torn at every byte, a full disk, a file-size limit."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from store_conformance import cell, done

from memcap.study.record import State
from memcap.study.sqlite_store import SqliteStore
from memcap.study.study import Study


@pytest.mark.parametrize("step", [101, pytest.param(1, marks=pytest.mark.slow)])
def test_a_store_torn_at_any_byte_of_its_last_transaction_loses_nothing_earlier(tmp_path, step):
    """The journal is cut as a crash could leave it; the torn cell is redone, everything before it is there."""
    path = tmp_path / "study.db"
    store = SqliteStore(path)
    store.add([cell(x) for x in range(3)])
    ids = [cell(x).identity for x in range(3)]
    store.claim(ids[:1], "me", 1e12)
    store.finish([(ids[0], done(r=0))], "me")
    store.claim(ids[1:2], "me", 1e12)
    journal = path.with_name("study.db-wal")
    before = journal.stat().st_size
    store.finish([(ids[1], done(r=1))], "me")
    content, journalled = path.read_bytes(), journal.read_bytes()
    store.close()
    assert len(journalled) > before
    torn = tmp_path / "torn.db"
    lengths = sorted({*range(before, len(journalled), step), len(journalled) - 1, len(journalled)})
    for length in lengths:
        torn.write_bytes(content)
        torn.with_name("torn.db-wal").write_bytes(journalled[:length])
        torn.with_name("torn.db-shm").unlink(missing_ok=True)
        again = SqliteStore(torn)
        assert again.get(ids[0]).outcome.result == {"r": 0}
        whole = length == len(journalled)
        assert again.get(ids[1]).state is (State.DONE if whole else State.RUNNING), length
        again.abandon("me")
        again.reopen([State.LOST])
        again.claim(ids[1:], "you", 1e12)
        again.finish([(i, done(r=9)) for i in ids[1:]], "you")
        again.close()
        last = SqliteStore(torn)
        assert last.counts()[State.DONE] == 3
        assert last.get(ids[0]).outcome.result == {"r": 0}
        last.close()


FILL = """
import resource, sys
from memcap.errors import MemcapError
from memcap.study.study import Study
study = Study.open(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    study.run({"task": "study_toys:toy", "axes": {"x": {"from": 1, "to": 400, "step": 1}}})
except MemcapError as error:
    print(f"{type(error).__name__}: {error}")
    sys.exit(error.exit_code)
"""


def fill(path, limit):
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}
    command = [sys.executable, "-c", FILL, str(path), str(limit)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs file-size limits")
@pytest.mark.parametrize("limit", [300_000, 60_000])
def test_a_full_disk_gives_a_clear_error_and_an_intact_store(tmp_path, limit):
    path = tmp_path / "study.db"
    result = fill(path, limit)
    assert result.returncode == 1, result.stderr
    assert result.stdout.startswith(f"RunError: {path} could not be written")
    assert "is the disk full, or a file-size limit reached?" in result.stdout
    assert "Traceback" not in result.stderr
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with Study.open(path) as study:  # room again
        before = study.status()
        summary = study.run({"task": "study_toys:toy", "axes": {"x": {"from": 1, "to": 400, "step": 1}}})
        assert summary.done == 400 - before["done"]
        assert study.status() == {"pending": 0, "running": 0, "done": 400, "failed": 0, "lost": 0}
