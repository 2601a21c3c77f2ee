"""Local processes: a job sent ahead is never lost with the worker it was sent to, and never done twice."""

import os
import signal
import threading
import time
from concurrent.futures import wait
from pathlib import Path

import pytest

from memcap.errors import ConfigurationError, RunError
from memcap.study import process_slots
from memcap.study.process_slots import ProcessSlots, WorkerDied
from memcap.study.worker import frame


def note(folder, name, seconds=0.0):
    """Leave a trace when a job begins."""
    path = Path(folder) / f"{name}-{os.getpid()}-{time.time_ns()}"
    path.touch()
    time.sleep(seconds)
    return name


def numeric_threads():
    import torch

    return torch.get_num_threads()


@pytest.mark.parametrize("threads", [1, 2])
def test_numeric_threads_of_a_worker(threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")  # of this process, not of its workers
    pool = ProcessSlots(1, threads=threads)
    try:
        assert pool.submit(numeric_threads).result(timeout=120) == threads
    finally:
        pool.shutdown(cancel_futures=True)


@pytest.fixture
def one_slot():
    pool = ProcessSlots(1)
    yield pool
    pool.shutdown(cancel_futures=True)


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def begun(folder):
    return sorted(p.name.split("-")[0] for p in Path(folder).iterdir())


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_killed_worker_loses_only_the_job_it_was_doing(one_slot, tmp_path):
    assert one_slot.submit(len, "warm").result(60) == 4  # the start of the process is not a short job
    assert one_slot.submit(len, "short").result(60) == 5
    jobs = [one_slot.submit(note, str(tmp_path), name, 1.0) for name in ("a", "b", "c")]
    slot = one_slot._slots[0]
    until(lambda: begun(tmp_path) == ["a"] and slot.ahead is not None)
    assert jobs[1].running()  # in the worker's pipe: too late to cancel
    assert not jobs[1].cancel()
    os.kill(one_slot.pids()[0], signal.SIGKILL)
    with pytest.raises(WorkerDied, match="was killed by signal 9 in the middle of the cell"):
        jobs[0].result(60)
    assert [j.result(60) for j in jobs[1:]] == ["b", "c"]
    assert begun(tmp_path) == ["a", "b", "c"]  # each began once


def test_nothing_is_sent_behind_a_long_job(one_slot, tmp_path, monkeypatch):
    monkeypatch.setattr(process_slots, "_SHORT", 0.0)
    jobs = [one_slot.submit(note, str(tmp_path), name, 0.1) for name in ("a", "b", "c")]
    until(lambda: "b" in begun(tmp_path))
    assert one_slot._slots[0].ahead is None
    assert jobs[2].cancel()
    assert jobs[1].result(60) == "b"
    assert one_slot.submit(len, "xy").result(60) == 2
    assert begun(tmp_path) == ["a", "b"]


def test_jobs_that_do_not_fit_into_the_pipe_wait_their_turn(one_slot):
    """Both directions full at once would be a deadlock."""
    big = "x" * 300_000
    futures = [one_slot.submit(str.upper, big) for _ in range(12)]
    assert len(frame(big)) > 300_000
    assert {f.result(60) for f in futures} == {big.upper()}


def test_what_cannot_be_sent_fails_alone(one_slot):
    futures = [one_slot.submit(len, v) for v in ("ab", "abc", threading.Lock(), "a", "abcd")]
    with pytest.raises(TypeError, match="pickle"):
        futures[2].result(60)
    assert [futures[i].result(60) for i in (0, 1, 3, 4)] == [2, 3, 1, 4]


def test_shutting_down_leaves_no_future_open(tmp_path):
    pool = ProcessSlots(2)
    assert [f.result(60) for f in [pool.submit(len, "ab") for _ in range(6)]] == [2] * 6
    futures = [pool.submit(note, str(tmp_path), str(n), 30.0) for n in range(8)]
    until(lambda: len(begun(tmp_path)) == 2)
    pool.shutdown(cancel_futures=True)
    assert not wait(futures, timeout=10).not_done
    assert len(begun(tmp_path)) == 2
    with pytest.raises(RunError, match="have been shut down"):
        pool.submit(len, "ab")
    patient = ProcessSlots(1)
    later = [patient.submit(note, str(tmp_path), "later") for _ in range(5)]
    patient.shutdown()
    assert [f.result(0) for f in later] == ["later"] * 5
    with pytest.raises(ConfigurationError, match="at least 1, got 0 and 1"):
        ProcessSlots(0)


def test_a_worker_begins_nothing_for_a_dead_driver(tmp_path):
    """Jobs wait in its pipe; its parent is not the driver any more."""
    from memcap.study.worker import read_frame, serve

    folder = tmp_path / "traces"
    folder.mkdir()
    (tmp_path / "jobs").write_bytes(frame((note, (str(folder), "a"), {})) + frame((note, (str(folder), "b"), {})))
    for parent, expected in ((os.getppid() + 1, []), (os.getppid(), ["a", "b"])):
        with (tmp_path / "jobs").open("rb") as jobs, (tmp_path / "answers").open("wb") as answers:
            serve(jobs, answers, parent)
        assert begun(folder) == expected
        with (tmp_path / "answers").open("rb") as answers:
            assert [read_frame(answers) for _ in expected] == [(True, name) for name in expected]
            assert answers.read() == b""
