"""``strategy: boundary``: the same boundary as the full grid for at most a third of its cells."""

import math

import numpy as np
import pytest

from memcap.errors import ConfigurationError
from memcap.study.boundary import AlongBoundary
from memcap.study.grid import Grid
from memcap.study.record import Outcome, State
from memcap.study.study import Study

X = {"from": 1, "to": 2048, "per_octave": 1}  # 12 values
AXES = {"x": X, "y": {"from": 1, "to": 2048, "per_octave": 1}}


def toy_plane(**keys):
    boundary = {"axis": "x", "response": "recall", **keys.pop("boundary", {})}
    return Grid(task="study_toys:toy", axes=keys.pop("axes", AXES), strategy="boundary", boundary=boundary, **keys)


def crossings(study):
    """Bracket of the crossing on every line, from whatever cells are there."""
    frame = study.frame(states=["done"])
    found = {}
    for y, line in frame.groupby("y"):
        mean = line.groupby("x")["recall"].mean().sort_index()
        high = mean[mean >= 0.5].index
        low = mean[mean < 0.5].index
        found[y] = (max(low, default=None), min(high, default=None))
    return found


def test_a_12_by_12_plane_costs_at_most_a_third_and_finds_the_same_boundary(tmp_path):
    """Recall crosses one half at x = y: in range on every line."""
    with Study.open(tmp_path / "a.db") as adaptive, Study.open(":memory:") as full:
        summary = adaptive.run(toy_plane())
        full.run({"task": "study_toys:toy", "axes": AXES})
        assert full.status()["done"] == 144
        assert summary.done == adaptive.status()["done"] <= 48
        assert crossings(adaptive) == crossings(full)
        ours = {line.settings["y"]: line for line in adaptive.critical("x", "recall")}
        theirs = {line.settings["y"]: line for line in full.critical("x", "recall")}
        for y, line in ours.items():
            assert line.censored == theirs[y].censored
            if line.censored is None:
                assert abs(np.log2(line.value / theirs[y].value)) < 0.05


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, -1.0, -2.0])
@pytest.mark.parametrize("rising", [True, False])
def test_boundaries_of_other_shapes_and_directions(power, rising):
    """The schedule alone, fed by a rule; lines that never cross are censored on the right side."""
    grid = toy_plane()
    schedule = AlongBoundary(grid)
    asked = drive(schedule, lambda x, y: (x >= 30 * (y / 30) ** power) == rising)
    assert asked <= 48
    for line in schedule.lines():
        y = grid.axes["y"][line.place[0]]
        past = [x >= 30 * (y / 30) ** power for x in grid.axes["x"]]
        assert line.rising == rising
        assert line.first_past == (past.index(True) if True in past else 12)


def drive(schedule, above):
    asked = 0
    while not schedule.exhausted():
        cells = schedule.take(5)
        assert cells, "the schedule waits for nothing"
        for cell in reversed(cells):  # in any order
            asked += 1
            value = float(above(cell.settings["x"], cell.settings["y"]))
            schedule.learn(cell, Outcome(State.DONE, {"recall": value}))
    return asked


def test_which_cells_are_asked_for_does_not_depend_on_workers_or_interruption(tmp_path):
    def asked(study):
        return sorted(r.identity for r in study.records())

    grid = toy_plane(seeds=[0, 1])
    with Study.open(":memory:") as one, Study.open(tmp_path / "b.db") as two:
        one.run(grid)
        two.run(grid, workers=2, time_limit=0.35)
        two.resume(workers=2)
        assert asked(one) == asked(two)
        assert two.status()["pending"] == 0
        again = two.resume()
        assert again.done == 0


def test_a_line_whose_cells_fail_is_left_and_the_others_are_found():
    grid = toy_plane()
    schedule = AlongBoundary(grid)
    bad = grid.axes["y"][3]
    while not schedule.exhausted():
        for cell in schedule.take(100):
            x, y = cell.settings["x"], cell.settings["y"]
            failed = Outcome(State.FAILED, error_type="ValueError", error="no")
            schedule.learn(cell, failed if y == bad else Outcome(State.DONE, {"recall": float(x >= y)}))
    known = {grid.axes["y"][line.place[0]]: line.first_past for line in schedule.lines()}
    assert known.pop(bad) is None
    assert known == {y: i for i, y in enumerate(grid.axes["y"]) if y != bad}


def test_three_axes_and_excluded_cells():
    axes = {"y": [1, 4, 16], "x": [1, 2, 4, 8, 16, 32], "sleep": [0.0, 0.001]}
    schedule = AlongBoundary(toy_plane(axes=axes, exclude=["x == 4 and y == 4"]))
    drive(schedule, lambda x, y: x >= y)
    for line in schedule.lines():
        y = axes["y"][line.place[0]]
        allowed = [x for x in axes["x"] if not (x == 4 and y == 4)]
        assert [axes["x"][p] for p in line.allowed] == allowed
        assert line.first_past == next(i for i, x in enumerate(allowed) if x >= y)


@pytest.mark.parametrize("at", [0, 1, 300, 40_000, 70_000])
def test_a_search_over_five_decades_never_asks_for_a_value_twice(at):
    grid = toy_plane(axes={"x": {"from": 1, "to": 65536, "per_octave": 8}, "y": [1]}, seeds=[0, 1])
    schedule = AlongBoundary(grid)
    asked = []
    while not schedule.exhausted():
        for cell in schedule.take(3):
            asked.append(cell.identity)
            schedule.learn(cell, Outcome(State.DONE, {"recall": float(cell.settings["x"] >= at)}))
    assert len(asked) == len(set(asked)) <= 2 * (2 + math.ceil(math.log2(len(grid.axes["x"]))))
    (line,) = schedule.lines()
    if 1 < at < 65536:
        assert grid.axes["x"][line.first_past - 1] < at <= grid.axes["x"][line.first_past]
    else:  # no crossing inside: nothing is claimed
        assert line.first_past is None


def test_memory_that_runs_out_in_the_middle_of_a_search_gives_no_number():
    grid = toy_plane(axes={"x": X, "y": [16]})
    schedule = AlongBoundary(grid)
    while not schedule.exhausted():
        for cell in schedule.take(100):
            big = 1 < cell.settings["x"] < 2048
            failed = Outcome(State.FAILED, error_type="MemoryError", error="no room")
            schedule.learn(cell, failed if big else Outcome(State.DONE, {"recall": float(cell.settings["x"] >= 16)}))
    assert [line.first_past for line in schedule.lines()] == [None]


def test_a_missing_response_is_told():
    study = Study.open(":memory:")
    with pytest.raises(ConfigurationError, match="gives no number 'recal'; it gives: .*recall"):
        study.run(toy_plane(boundary={"response": "recal"}))
    assert study.status()["running"] == 0
    with pytest.raises(ConfigurationError, match="boundary needs 'response'"):
        Grid(task="study_toys:plain", axes={"x": [1, 2]}, strategy="boundary", boundary={"axis": "x"}).boundary


def test_two_drivers_share_a_boundary(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    def one(_):
        with Study.open(tmp_path / "c.db") as study:
            return study.run(toy_plane(fixed={"sleep": 0.002})).done

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(one, range(2)))
    with Study.open(":memory:") as alone:
        assert sum(done) == alone.run(toy_plane(fixed={"sleep": 0.002})).done
