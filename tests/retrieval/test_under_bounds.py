"""The lower-bound figure: no decoder above its bound, N and L only as N/L, and stored values of a small piece."""

import json
import math

import numpy as np
import pytest

import memcap
from memcap.errors import ConfigurationError
from memcap.retrieval.decoders import CLASS_A, CLASS_B, MMSE
from memcap.retrieval.under_bounds import figure
from memcap.retrieval.under_bounds.figure import configuration, golden, name_of, reproduce
from memcap.retrieval.under_bounds.points import AXIS, Job, interval, measure_all, tasks_along


def test_a_small_piece_of_the_figure_against_stored_values():
    record = reproduce("small", only="samples, d", workers=1)
    json.dumps(record, allow_nan=False)
    assert all(check["passed"] for check in record["checks"]), record["checks"]
    assert record["checks"][-1]["what"].startswith("8 mean recalls equal the stored ones")
    assert {row["decoder"] for row in record["curves"]} == set(CLASS_B)
    assert all(len(row) == len(t["columns"]) for t in record["tables"] for row in t["rows"])
    assert all(row["low"] <= row["recall"] <= row["high"] for row in record["curves"])


def test_the_posterior_mean_is_best_of_all_decoders_and_under_the_bound(monkeypatch):
    (part,) = [p for p in configuration() if "few facts" in p["name"]]
    part = {**part, "axis": {AXIS: [20, 80]}, "seeds": {"small": 32, "full": 32}}
    monkeypatch.setattr(figure, "configuration", lambda: [part])
    record = reproduce("small", seed=100, workers=1)
    assert all(check["passed"] for check in record["checks"]), record["checks"]
    mean = {(row["at"], row["decoder"]): row["recall"] for row in record["curves"]}
    for at in (20.0, 80.0):
        assert mean[at, MMSE] >= max(mean[at, name] for name in CLASS_A) - 0.02  # 32 seeds of 7 facts
    assert mean[80.0, MMSE] > mean[80.0, "matched filter"] + 0.3


def test_every_point_of_the_configuration_is_stored_and_valid():
    wanted = set()
    for part in configuration():
        for line, at, task in tasks_along(part):
            assert task.dimension < task.vocabulary  # the Gaussian step of the bound is for d < V
            if part["seeds"]["small"]:
                names = CLASS_B if part["sees"] == "samples" else (*CLASS_A, *([MMSE] if task.vocabulary < 9 else []))
                wanted |= {name_of({"part": part["name"], "line": line, "at": at, "decoder": d}) for d in names}
    assert wanted == set(golden())


def test_the_axis_is_samples_over_length():
    part = {"task": {"vocabulary": 9, "dimension": 4}, "axis": {AXIS: [10, 30]}, "lines": {"length": [3, 5]}}
    found = [(line, at, task.length, task.samples) for line, at, task in tasks_along(part)]
    assert found == [
        ("length=3", 10.0, 3, 20),
        ("length=3", 30.0, 3, 60),
        ("length=5", 10.0, 5, 40),
        ("length=5", 30.0, 5, 120),
    ]


def test_intervals():
    mean, low, high = interval(np.array([0.48, 0.5, 0.52]), 10)
    assert (mean, high - mean) == (pytest.approx(0.5), pytest.approx(mean - low))
    assert high - mean == pytest.approx(4.303 * 0.02 / math.sqrt(3), rel=1e-3)
    same = interval(np.ones(12), 64)
    assert same[0] == same[2] == 1.0
    assert 0.99 < same[1] < 0.9999  # twelve perfect runs do not beat a bound of 0.9999


def test_results_do_not_depend_on_the_number_of_workers():
    task = memcap.RetrievalTask(vocabulary=12, length=4, samples=60, dimension=6)
    jobs = [Job(task.replace(seed=s), "first gradient", 500) for s in range(3)]
    told = []
    assert measure_all(jobs, 1, None) == measure_all(jobs, 2, lambda *news: told.append(news))
    assert told[-1] == (3, 3, "decoded runs")


def made_up(monkeypatch, decoded, **part):
    part = {
        "name": "made up",
        "sees": "first gradient",
        "task": {"vocabulary": 64, "dimension": 16},
        "axis": {AXIS: [25]},
        "lines": {"length": [8, 32]},
        "seeds": {"small": 3, "full": 3},
        **part,
    }
    monkeypatch.setattr(figure, "configuration", lambda: [part])
    monkeypatch.setattr(figure, "measure_all", lambda jobs, workers, progress: [decoded(job) for job in jobs])
    return {check["what"][9:20]: check for check in reproduce("small", seed=1)["checks"]}


def test_a_decoder_above_its_bound_fails_the_check(monkeypatch):
    found = made_up(monkeypatch, lambda job: {"oracle": 0.9 + 0.001 * job.task.seed, "honest": 0.3})
    (check,) = found.values()
    assert not check["passed"]
    assert check["measured"] > 0.2
    assert "(oracle)" in check["what"]
    (check,) = made_up(monkeypatch, lambda job: {"honest": 0.5 + 0.1 * job.task.seed}).values()
    assert check["passed"]


def test_recall_that_depends_on_length_beyond_the_ratio_fails_the_check(monkeypatch):
    checks = made_up(monkeypatch, lambda job: {"x": 0.2 + 0.01 * job.task.length + 0.001 * job.task.seed}, collapse=0.1)
    assert not list(checks.values())[-1]["passed"]
    checks = made_up(monkeypatch, lambda job: {"x": 0.2 + 0.001 * job.task.length}, collapse=0.1)
    assert list(checks.values())[-1]["passed"]


def test_nothing_matches():
    with pytest.raises(ConfigurationError, match="no part of scale 'small' has 'N x L' in its name; names: first grad"):
        reproduce("small", only="N x L")


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["small", "full"])
def test_the_whole_figure(scale):
    record = reproduce(scale)
    assert not [c for c in record["checks"] if not c["passed"]]
