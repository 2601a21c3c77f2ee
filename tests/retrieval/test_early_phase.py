"""The early-phase figure: its fits on made-up data, its configuration, and a small part of it against stored values."""

import json

import numpy as np
import pytest

import memcap
from memcap.errors import ConfigurationError, FitError
from memcap.retrieval.early_phase import figure
from memcap.retrieval.early_phase.figure import configuration, reproduce
from memcap.retrieval.early_phase.grids import tasks_of
from memcap.retrieval.early_phase.lines import critical_point, exponent, mean_and_worst, tasks_around
from memcap.retrieval.early_phase.points import Point, measure, measure_all


def task(**fields):
    return memcap.RetrievalTask(**{"vocabulary": 32, "length": 8, "samples": 500, "dimension": 24, **fields})


def made_up(critical, seeds=20, noise=0.05, rng=None):
    rng = rng or np.random.default_rng(0)
    points = []
    for factor in (0.5, 0.7, 1.0, 1.4, 2.0):
        mean = 1 / (1 + factor**-2.0)
        values = np.clip(mean + noise * rng.standard_normal(seeds), 0, 1)
        points.append(Point(task(samples=round(critical * factor)), values))
    return points


def test_a_known_critical_size_and_exponent_are_found():
    rng = np.random.default_rng(3)
    line = [critical_point(x, 900.0 * x**2, made_up(1000 * x**2, rng=rng)) for x in (1, 2, 4, 8)]
    for point, x in zip(line, (1, 2, 4, 8), strict=True):
        assert point.simulated == pytest.approx(1000 * x**2, rel=0.05)
        assert point.interval[0] < 1000 * x**2 * 1.02
        assert point.interval[1] > 1000 * x**2 * 0.98
    slope = exponent(line)
    assert slope.interval[0] - 0.01 < 2 < slope.interval[1] + 0.01
    assert slope.predicted == pytest.approx(2)
    mean, worst = mean_and_worst(line)
    assert mean == pytest.approx(np.log(1 / 0.9), abs=0.05)
    assert worst >= mean


def test_bootstrap_intervals_cover():
    rng, covered = np.random.default_rng(5), 0
    for _ in range(40):
        low, high = critical_point(1, 1000.0, made_up(1000, seeds=12, noise=0.15, rng=rng)).interval
        covered += low <= 1000 <= high
    assert covered >= 33


@pytest.mark.slow
def test_bootstrap_intervals_cover_over_many_sweeps():
    rng, covered = np.random.default_rng(5), 0
    for _ in range(1000):
        low, high = critical_point(1, 1000.0, made_up(1000, noise=0.1, rng=rng)).interval
        covered += low <= 1000 <= high
    assert 930 <= covered <= 970


def test_exact_points_give_the_exact_exponent():
    rng = np.random.default_rng(0)
    line = [critical_point(x, 1000.0 * x**1.5, made_up(1000 * x**1.5, noise=0.0, rng=rng)) for x in (1, 4, 9, 16, 25)]
    slope = exponent(line)
    assert slope.simulated == pytest.approx(1.5, abs=1e-12)
    assert slope.interval == (pytest.approx(1.5, abs=1e-12), pytest.approx(1.5, abs=1e-12))
    with pytest.raises(FitError, match="at least three points, got 1 of different size"):
        exponent([line[0], line[0], line[0]])
    with pytest.raises(FitError, match="at least three points, got 2 of different size"):
        exponent(line[:2])
    with pytest.raises(FitError, match="an interval over seeds needs at least 2 seeds a point, got 1"):
        critical_point(1, 1000.0, made_up(1000, seeds=1))


def test_saturated_points_are_no_fit():
    points = [Point(task(samples=n), np.full(4, value)) for n, value in ((100, 0.01), (200, 0.5), (400, 0.99))]
    with pytest.raises(FitError, match="fewer than two of 3 points lie between 0.08 and 0.92: 0.01, 0.50, 0.99"):
        critical_point(1, 200.0, points)
    with pytest.raises(FitError, match="at least three points, got 1 of different size"):
        exponent([critical_point(1, 900.0, made_up(1000))])


def test_a_line_needs_a_predicted_critical_size():
    with pytest.raises(FitError, match="no critical number of samples to look around"):
        tasks_around(task(dimension=2, vocabulary=512), "recall", "small")


def test_measured_attention_success_agrees_with_test_sequences():
    at = task(vocabulary=64, length=32, samples=1500, dimension=32)
    exact = np.mean([measure(at, "attention", s) for s in range(12)])
    runs = [memcap.simulate(at, seed=s, test_samples=1000).attention_success for s in range(24)]
    assert abs(exact - np.mean(runs)) < 4 * np.std(runs) / np.sqrt(24)


def test_results_do_not_depend_on_the_number_of_workers():
    jobs = [(task(), "recall", s) for s in range(3)] + [(task(), "attention", 0)]
    told = []
    assert measure_all(jobs, 1) == measure_all(jobs, 2, lambda *news: told.append(news))
    assert told[-1] == (4, 4, "simulated runs")


def test_every_task_of_the_configuration_is_valid():
    settings = configuration()
    assert sum(len(tasks_of(grid)) for grid in settings["grids"]) > 100
    for line in settings["lines"]:
        ((name, sizes),) = line["axis"].items()
        for size in sizes:
            memcap.RetrievalTask(**{**line["task"], name: size, "samples": 1000})


def test_nothing_matches():
    with pytest.raises(
        ConfigurationError, match="no grid or line of scale 'small' has 'N x L' in its name; names: N x d"
    ):
        reproduce("small", only="N x L")


def test_the_record_keeps_its_contract(monkeypatch):
    tiny = {
        "grids": [
            {
                "name": "tiny grid",
                "task": {"vocabulary": 32, "length": 4},
                "axes": {"dimension": [16, 32], "samples": [400]},
                "first_step": True,
                "bound": 0.1,
                "seeds": {"small": 4, "full": 4},
            }
        ],
        "lines": [
            {
                "name": "tiny line",
                "target": "attention",
                "task": {"vocabulary": 32, "dimension": 16},
                "axis": {"length": [16, 32, 64]},
                "seeds": {"small": 12, "full": 12},
                "exponent": [1.0, 3.0],
            }
        ],
    }
    monkeypatch.setattr(figure, "configuration", lambda: tiny)
    monkeypatch.setattr(figure, "golden", dict)
    record = reproduce("small", workers=1)
    json.dumps(record)
    assert [t["title"][:9] for t in record["tables"]] == ["tiny grid", "tiny line"]
    for table in record["tables"]:
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    names = [c["what"] for c in record["checks"]]
    assert any("mean absolute error, recall" in n for n in names)
    assert any("simulated exponent" in n for n in names)
    golden_check = record["checks"][-1]
    assert not golden_check["passed"]  # nothing is stored for this configuration
    assert reproduce("small", workers=2)["means"] == record["means"]
    monkeypatch.setattr(figure, "golden", lambda: {name: value + 0.1 for name, value in record["means"].items()})
    assert not reproduce("small", workers=1)["checks"][-1]["passed"]


def test_stored_values_are_reproduced():
    record = reproduce("small", only="m x d, tanh", workers=1)
    check = record["checks"][-1]
    assert check["what"].startswith("12 simulated means equal the stored ones")
    assert check["passed"], check


@pytest.mark.slow
@pytest.mark.parametrize("part", ["N x d", "L x N", "V x d", "m x d", "attention, ", "recall, ", "first step, "])
def test_the_whole_figure(part):
    record = reproduce("full", only=part)
    failed = [c for c in record["checks"] if not c["passed"]]
    assert not failed
