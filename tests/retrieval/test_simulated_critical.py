"""Critical sizes by simulation: agreement with theory, intervals, and reasons where there is none."""

import math

import numpy as np
import pytest

import memcap
from memcap.errors import ConfigurationError
from memcap.retrieval import simulated_critical as module
from memcap.retrieval.critical import critical
from memcap.retrieval.prediction import attention_success
from memcap.retrieval.simulated_critical import STEPS, places, simulated_critical


def task(**fields):
    return memcap.RetrievalTask(**{"vocabulary": 48, "length": 16, "samples": 1000, "dimension": 40, **fields})


@pytest.mark.parametrize(
    ("variable", "target"),
    [("samples", {"attention": 0.5}), ("dimension", {"recall": 0.9}), ("length", {"attention": 0.6})],
)
def test_simulated_sizes_agree_with_predicted_ones(variable, target):
    predicted = critical(task(), solve_for=variable, **target)
    told = []
    found = simulated_critical(task(), predicted, seeds=5, test_samples=600, progress=lambda: told.append(1))
    assert found.reason == ""
    assert found.interval[0] <= found.value <= found.interval[1]
    assert found.value == pytest.approx(predicted.crossing, rel=0.4)
    assert len(told) == 5 * len(places(task(), predicted))
    assert found == simulated_critical(task(), predicted, seeds=5, test_samples=600)


def test_runs_are_placed_where_the_theory_expects_them():
    predicted = critical(task(), solve_for="samples", attention=0.5)
    sizes = places(task(), predicted)
    assert len(sizes) == len(STEPS)
    expected = np.array([attention_success(task(samples=n)) for n in sizes])
    np.testing.assert_allclose(np.log(expected / (1 - expected)), STEPS, atol=0.2)
    longest = places(task(), critical(task(), solve_for="length", attention=0.5))
    expected = np.array([attention_success(task(length=n)) for n in longest])
    np.testing.assert_allclose(np.log(expected / (1 - expected)), STEPS[::-1], atol=0.3)


def made_up(monkeypatch, recall_at):
    class Run:
        def __init__(self, at, seed):
            self.attention_success = recall_at(at.samples, seed)

    monkeypatch.setattr(module, "simulate", lambda at, seed, test_samples: Run(at, seed))
    return simulated_critical(task(), critical(task(), solve_for="samples", attention=0.5), seeds=4)


def test_a_known_crossing_is_found(monkeypatch):
    found = made_up(monkeypatch, lambda n, seed: 1 / (1 + (100 / n) ** 1.5))
    assert found.value == pytest.approx(100, rel=1e-9)
    assert found.interval == (pytest.approx(100), pytest.approx(100))
    wide = made_up(monkeypatch, lambda n, seed: 1 / (1 + (100 * 1.1 ** (seed - 1.5) / n) ** 1.5))
    assert wide.interval[0] < 97 < wide.value < 103 < wide.interval[1]


@pytest.mark.parametrize("recall_at", [lambda n, seed: 1.0, lambda n, seed: 0.3, lambda n, seed: 30 / (n + 30)])
def test_no_crossing_is_said_with_what_was_measured(monkeypatch, recall_at):
    found = made_up(monkeypatch, recall_at)
    assert math.isnan(found.value)
    assert found.reason.startswith("simulation does not cross 0.5: ")
    assert " at " in found.reason


def test_out_of_reach_keeps_its_reason_and_one_seed_has_no_interval():
    nowhere = critical(task(dimension=2), solve_for="samples", attention=0.9)
    assert simulated_critical(task(dimension=2), nowhere).reason == nowhere.reason
    predicted = critical(task(), solve_for="samples", attention=0.5)
    alone = simulated_critical(task(), predicted, seeds=1, test_samples=300)
    assert alone.value > 0
    assert math.isnan(alone.interval[0])
    with pytest.raises(ConfigurationError, match="seeds must be an integer"):
        simulated_critical(task(), predicted, seeds=0)
