"""Runs: what is computed, what is stored, and what happens when cells, workers or drivers misbehave."""

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import study_toys

from memcap.errors import ConfigurationError
from memcap.study import owner
from memcap.study.driver import recover
from memcap.study.grid import Grid
from memcap.study.record import State
from memcap.study.study import Study

HERE = str(Path(__file__).parent)


def toy_grid(count=12, task="study_toys:toy", **keys):
    return {"task": task, "axes": {"x": {"from": 1, "to": count, "step": 1}}, **keys}


def comparable(study):
    """Everything in the table but times, places and processes."""
    frame = study.frame()
    gone = ["seconds", "cpu_seconds", "peak_memory", "started", "finished", "host", "attempts"]
    rows = frame.drop(columns=gone).sort_values("identity").to_dict("records")
    return [repr(sorted(row.items())) for row in rows]


@pytest.fixture
def study(tmp_path):
    with Study.open(tmp_path / "study.db") as study:
        yield study


def in_memory(grid, **options):
    study = Study.open(":memory:")
    study.run(grid, **options)
    return study


def test_every_backend_gives_the_same_table_and_leaves_random_state_alone(study):
    grid = toy_grid(seeds=[0, 1])
    before = np.random.get_state()[1].tolist()
    summary = study.run(grid, workers=2)
    assert (summary.done, summary.failed, summary.lost, summary.stopped) == (24, 0, 0, "")
    inline = in_memory(grid)
    with ThreadPoolExecutor(3) as pool:
        threads = in_memory(grid, executor=pool)
    assert comparable(study) == comparable(inline) == comparable(threads)
    assert np.random.get_state()[1].tolist() == before


def test_results_host_versions_seed_and_data_hash_are_kept(study):
    study.run(toy_grid(1, seeds=[5]))
    row = study.frame().iloc[0]
    assert (row["seed"], row["data_hash"], row["device"], row["task"], row["state"]) == (
        5, "hash-5", "cpu", "toy", "done"
    )  # fmt: skip
    assert row["count"] == 2**60 + 1
    assert np.isnan(row["snr.bad"])
    assert row["snr.top"] == np.inf
    assert row["curve"] == [0.0, -np.inf, 1.0]
    assert '"numpy"' in row["versions"]
    assert row["peak_memory"] > 10**6


def test_done_cells_are_never_computed_again(study, tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    grid = toy_grid(6, fixed={"log": str(traces)})
    study.run(grid)
    summary = study.run(toy_grid(8, fixed={"log": str(traces)}), workers=1)
    assert (summary.already_done, summary.done) == (6, 2)
    assert len(list(traces.iterdir())) == 8


def test_five_raise_and_one_is_killed(study):
    grid = {"task": "study_toys:thirty", "axes": {"x": {"from": 0, "to": 29, "step": 1}}}
    summary = study.run(grid, workers=2)
    assert (summary.done, summary.failed, summary.lost) == (24, 5, 1)
    assert study.status() == {"pending": 0, "running": 0, "done": 24, "failed": 5, "lost": 1}
    again = study.resume(workers=1)
    assert (again.done, again.failed, again.lost) == (0, 0, 1)  # one ran, and was killed again
    again = study.resume(workers=1, retry_failed=True)
    assert (again.failed, again.lost) == (5, 1)
    frame = study.frame(states=["failed"])
    assert list(frame["error"]) == [f"x is {float(x)}" for x in range(5)]
    assert list(frame["error_type"]) == ["ValueError"] * 5
    assert "killed by signal 9" in study.frame(states=["lost"])["error"].iloc[0]


def test_a_cell_that_ends_its_worker_fails_alone_after_k_tries(study, tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    fixed = {"mode": "exit", "log": str(traces)}
    summary = study.run(
        {"task": "study_toys:some_bad", "axes": {"x": [1, 2, 3, 4]}, "fixed": fixed}, workers=2, tries=3
    )
    assert (summary.done, summary.failed, summary.lost) == (3, 1, 0)
    error = study.frame(states=["failed"])["error"].iloc[0]
    assert error == "the worker process ended itself with exit status 3 in the middle of the cell (3 times)"
    counts = [len(list(traces.glob(f"{x}.0-*"))) for x in (1, 2, 3, 4)]
    assert counts == [1, 1, 3, 1]


def test_running_out_of_memory_is_a_failure_not_a_number(study):
    study.run({"task": "study_toys:toy", "axes": {"x": [1]}, "fixed": {"mode": "memory"}})
    row = study.frame().iloc[0]
    assert (row["state"], row["error_type"], row["error"]) == ("failed", "MemoryError", "no room for the table")
    assert "recall" not in study.frame().columns


def test_the_memory_limit_costs_only_its_cell(study):
    grid = {"task": "study_toys:some_bad", "axes": {"x": [1, 3]}, "fixed": {"mode": "hog"}}
    summary = study.run(grid, workers=1, memory_limit="150 MiB")
    assert (summary.done, summary.failed) == (1, 1)
    row = study.frame(states=["failed"]).iloc[0]
    assert row["error_type"] == "MemoryLimit"
    assert "more than the 150 MiB a cell may" in row["error"]


def test_fail_fast_stops_and_the_rest_stays_to_do(study):
    grid = {"task": "study_toys:some_bad", "axes": {"x": {"from": 1, "to": 20, "step": 1}}, "fixed": {"mode": "raise"}}
    summary = study.run(grid, fail_fast=True)
    assert (summary.done, summary.failed, summary.pending, summary.stopped) == (2, 1, 17, "first failure")
    assert study.status()["running"] == 0
    assert study.run(grid).failed == 1  # x = 5; the failed one is not tried again unasked


@pytest.mark.parametrize("workers", [0, 2])
def test_the_time_limit_gives_back_what_it_did_not_finish(study, workers):
    grid = toy_grid(40, fixed={"sleep": 0.05})
    summary = study.run(grid, workers=workers, time_limit=0.6)
    assert summary.stopped == "time limit"
    assert 0 <= summary.done < 40
    assert study.status()["running"] == study.status()["lost"] == 0
    assert summary.pending == 40 - summary.done
    assert study.resume(workers=2).done == summary.pending


class InterruptAt:
    """An observer that presses Ctrl-C at the n-th outcome."""

    def __init__(self, count):
        self.left = count

    def begin(self, total, already_done):
        pass

    def cell(self, cell, outcome):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)

    def end(self):
        pass


@pytest.mark.parametrize("workers", [0, 2])
def test_an_interrupted_study_equals_one_in_one_go(study, workers):
    grid = toy_grid(10, seeds=[0, 1, 2, 3])
    with pytest.raises(KeyboardInterrupt):
        study.run(grid, workers=workers, observer=InterruptAt(13))
    status = study.status()
    assert status["running"] == status["lost"] == status["failed"] == 0
    assert 13 <= status["done"] < 40
    summary = study.resume(workers=workers)
    assert (summary.already_done, summary.done) == (status["done"], 40 - status["done"])
    assert comparable(study) == comparable(in_memory(grid))


def test_grouped_cells_share_their_part_and_change_no_result(study, tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    axes = {"samples": [1, 2, 5, 9], "size": [10, 20, 30]}
    grid = {"task": "study_toys:shared", "axes": axes, "fixed": {"log": str(traces)}, "seeds": [0, 1]}
    study.run(grid)
    assert len(list(traces.iterdir())) == 6  # 24 cells, 3 sizes x 2 seeds
    got = {(r.settings["samples"], r.settings["size"], r.seed): r.outcome.result["total"] for r in study.records()}
    for (samples, size, seed), total in got.items():
        table = study_toys.prepare_shared({"size": size, "seed": seed, "log": ""})
        assert total == study_toys.run_shared({"samples": samples}, table)["total"]
    workers = in_memory(grid, workers=2)
    assert comparable(workers) == comparable(study)
    assert len(list(traces.iterdir())) <= 6 + 6 + 6  # at most once per group and worker


def test_two_drivers_on_one_store_compute_nothing_twice(tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    grid = toy_grid(60, fixed={"log": str(traces), "sleep": 0.005})

    def drive(_):
        with Study.open(tmp_path / "study.db") as study:
            return study.run(grid, workers=1).done

    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(drive, range(3)))
    assert sum(done) == 60
    assert len(list(traces.iterdir())) == 60


SCRIPT = """
import sys
from memcap.study.study import Study
study = Study.open(sys.argv[1])
study.run({"task": "study_toys:toy", "axes": {"x": {"from": 1, "to": int(sys.argv[2]), "step": 1}},
           "fixed": {"sleep": float(sys.argv[3])}}, workers=int(sys.argv[4]))
"""


def start_driver(path, count, sleep, workers):
    environment = {**os.environ, "PYTHONPATH": HERE}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path), str(count), str(sleep), str(workers)], env=environment
    )


def family(driver):
    """The driver and its workers, as process numbers."""
    import psutil

    try:
        return [driver.pid, *(child.pid for child in psutil.Process(driver.pid).children())]
    except psutil.Error:
        return []


@pytest.mark.parametrize(
    ("kills", "cells"), [(20, 60), pytest.param(200, 200, marks=pytest.mark.slow)], ids=["20-kills", "200-kills"]
)
def test_random_kills_lose_and_duplicate_nothing(tmp_path, kills, cells):
    """SIGKILL a worker or the driver, at random, again and again; then let it finish."""
    path = tmp_path / "study.db"
    chance = random.Random(5)
    sleep = 0.1 if kills == 20 else 0.25
    driver = start_driver(path, cells, sleep, 2)
    with Study.open(path) as study:  # kills count from the first result on: before it there is nothing to lose
        while not study.status()["done"]:
            assert driver.poll() is None
            time.sleep(0.05)
    killed = 0
    known = {}
    while killed < kills:
        time.sleep(chance.uniform(0.03, 0.2))
        if driver.poll() is not None:
            driver = start_driver(path, cells, sleep, 2)
            continue
        people = family(driver)
        if len(people) > 1 or chance.random() < 0.2:
            victim = chance.choice(people) if chance.random() < 0.6 else people[-1]
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed += 1
    driver.kill()
    driver.wait()
    with Study.open(path) as study:
        known = {r.identity: (r.outcome.started, r.outcome.finished) for r in study.records(["done"])}
        while any(study.resume(workers=2).to_dict()[n] for n in ("lost", "pending")):
            continue
        assert study.status() == {"pending": 0, "running": 0, "done": cells, "failed": 0, "lost": 0}
        after = {r.identity: (r.outcome.started, r.outcome.finished) for r in study.records()}
        assert len(after) == cells
        assert {i: after[i] for i in known} == known  # what was done was not computed again
        clean = in_memory(toy_grid(cells, fixed={"sleep": sleep}), workers=2) if cells == 60 else None
        if clean is not None:
            assert comparable(study) == comparable(clean)


def test_a_dead_driver_is_noticed_at_once_and_a_live_one_is_left_alone(tmp_path):
    path = tmp_path / "study.db"
    driver = start_driver(path, 4, 30, 1)
    deadline = time.monotonic() + 60
    with Study.open(path) as study:
        while study.status()["running"] == 0:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert recover(study.store) == 0
        driver.kill()
        driver.wait()
        assert recover(study.store) == study.status()["lost"] > 0


def test_owners_are_told_apart():
    mine = owner.enter()
    assert not owner.known_dead(mine)
    owner.leave(mine)
    assert owner.known_dead(mine)  # a run of this process that has ended
    machine, pid, started, _ = mine.split("|")
    assert not owner.known_dead(f"elsewhere|{pid}|{started}|x")
    assert owner.known_dead(f"{machine}|{pid}|{int(started) - 100}|x")  # the process number was used again
    assert owner.known_dead(f"{machine}|{2**22 + 5}|{started}|x")


def test_options_that_cannot_mean_anything_are_refused(study):
    for options, message in [
        ({"workers": -1}, "workers is 0"),
        ({"tries": 0}, "tries is at least 1"),
        ({"time_limit": 0.0}, "time_limit is a positive number"),
        ({"memory_limit": "2 bananas", "workers": 1}, "a size is a number of bytes"),
        ({"memory_limit": "2 GiB"}, "memory_limit needs workers"),
        ({"workers": 2, "scheduler": "tcp://h:1"}, "give one of workers, scheduler and executor"),
        ({"scheduler": 7}, "scheduler is an address"),
    ]:
        with pytest.raises(ConfigurationError, match=message):
            study.run(toy_grid(2), **options)
    with pytest.raises(ConfigurationError, match="nothing to resume"):
        Study.open(":memory:").resume()


def test_the_study_remembers_what_it_asks(study):
    study.run(toy_grid(2, question="Where?", method="By looking."))
    study.run(toy_grid(3, question="Where?", method="By looking."))
    meta = study.meta
    assert (meta["question"], meta["method"]) == ("Where?", "By looking.")
    assert len(meta["grids"]) == 2
    assert meta["versions"]["memcap"]
    assert meta["created"].startswith("20")
    assert Grid(**meta["grids"][1]).cells == Grid(**toy_grid(3)).cells
    assert "3 done" in repr(study)
    assert [r.state for r in study.records(["done"])] == [State.DONE] * 3
    with pytest.raises(ConfigurationError, match="no state 'don'.*did you mean 'done'"):
        study.frame(states=["don"])
