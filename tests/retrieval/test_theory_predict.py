"""``memcap.predict``: against simulation, its contrasts, monotone, its warnings, and what it refuses."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memcap
from memcap.errors import ConfigurationError
from memcap.retrieval.prediction import attention_success, predict


def task(**fields):
    return memcap.RetrievalTask(**{"vocabulary": 128, "length": 16, "samples": 3000, "dimension": 64, **fields})


POINTS = [
    ({}, 0.02),
    ({"samples": 200}, 0.03),
    ({"vocabulary": 256, "length": 32, "samples": 2250}, 0.02),
    ({"length": 64, "samples": 800, "dimension": 56}, 0.04),
    ({"embeddings": "sphere"}, 0.025),
    ({"embeddings": "sphere", "vocabulary": 41, "samples": 135, "dimension": 42}, 0.06),
    ({"vocabulary": 64, "length": 64, "samples": 2000, "dimension": 65, "embeddings": "orthogonal"}, 0.02),
    ({"data": "population"}, 0.025),
    ({"attention": "oracle"}, 0.02),
    ({"trigger_in_value": True, "samples": 10_000}, 0.04),
    ({"label_noise": 0.5}, 0.02),
    ({"vocabulary": 256, "length": 8, "samples": 1000, "dimension": 200, "label_noise": 0.5}, 0.02),
    ({"length": 8, "samples": 300, "dimension": 100, "label_noise": 0.6, "attention": "oracle"}, 0.02),
    ({"vocabulary": 349, "samples": 700, "dimension": 46, "label_noise": 0.8, "attention": "oracle"}, 0.01),
    ({"width": 256, "activation": "tanh"}, 0.035),
]


@pytest.mark.parametrize(("fields", "allowed"), POINTS, ids=str)
def test_recall_against_simulation(fields, allowed):
    at = task(**fields)
    runs = [memcap.simulate(at, seed=100 + s, test_samples=2000) for s in range(10)]
    recalls = np.array([r.recall for r in runs])
    predicted = predict(at)
    error = recalls.std(ddof=1) / np.sqrt(10)
    assert abs(predicted.recall - recalls.mean()) < allowed + 3 * error
    cleans = np.array([r.clean_recall for r in runs])
    assert abs(predicted.clean_recall - cleans.mean()) < allowed + 3 * cleans.std(ddof=1) / np.sqrt(10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("v", "length", "n", "d"),
    [(256, 16, 8000, 136), (256, 128, 20_000, 122), (1024, 16, 40_000, 252), (1024, 64, 100_000, 228)],
)
def test_sizes_for_99_percent(v, length, n, d):
    at = task(vocabulary=v, length=length, samples=n, dimension=d)
    found = memcap.critical(at, solve_for="dimension", recall=0.99)
    recalls = [memcap.simulate(at.replace(dimension=found.value), seed=s).recall for s in range(4)]
    assert abs(np.mean(recalls) - 0.99) < 0.01


def test_regimes_follow_the_table():
    mean_bias = predict(task(vocabulary=64, length=512, samples=10_000, dimension=48))
    assert mean_bias.regime == "mean bias"
    assert mean_bias.bottleneck == "attention"
    assert predict(task(vocabulary=4096, length=32, samples=20_000, dimension=16)).regime == "counts"
    assert predict(task(data="population")).regime == "interference"
    assert predict(task(attention="oracle")).regime == "value step"
    assert predict(task(attention="uniform")).regime == "first step"
    assert predict(task(samples=90, dimension=512, length=2)).bottleneck == "coverage"
    assert predict(task(samples=10**6, dimension=24, length=2)).bottleneck == "capacity"
    assert predict(task(samples=10**6, dimension=512, length=2)).bottleneck == "none"


def test_infinite_data_is_the_limit_of_many_samples():
    many, infinite = predict(task(samples=10**13)), predict(task(data="population"))
    assert many.recall == pytest.approx(infinite.recall, abs=0.003)
    assert many.variances["interference"] == pytest.approx(infinite.variances["interference"], rel=1e-6)
    assert infinite.coverage == 1
    assert infinite.snr["pairs"] == math.inf


def test_length_one_needs_no_attention():
    one = predict(task(length=1))
    assert one.attention_success == 1
    assert one.recall == predict(task(length=1, attention="oracle")).recall
    assert one.snr == {}


def test_orthonormal_attention_beats_random_at_the_same_size():
    fields = {"vocabulary": 64, "length": 256, "samples": 512, "dimension": 65}
    assert attention_success(task(**fields, embeddings="orthogonal")) > 0.95
    assert attention_success(task(**fields)) < 0.15


def test_budget_by_group_and_json():
    found = predict(task())
    groups = found.snr_by_group()
    assert set(groups) == {"finite-sample noise", "interference", "mean bias", "MLP noise"}
    assert groups["MLP noise"] == math.inf
    assert groups["mean bias"] == found.snr["mean bias"]
    assert 1 / found.snr["total"] >= sum(1 / x for x in groups.values()) * 0.999
    assert json.loads(json.dumps(found.to_dict()))["recall"] == found.recall
    assert predict(task(width=64)).snr_by_group()["MLP noise"] < math.inf


def test_the_seed_changes_nothing():
    assert predict(task(seed=1)) == predict(task(seed=2))


@pytest.mark.parametrize(
    "fields", [{}, {"label_noise": 0.5}, {"length": 128, "samples": 1600, "dimension": 56}], ids=str
)
def test_recall_deviation_is_what_seeds_scatter(fields):
    at = task(**fields)
    recalls = [memcap.simulate(at, seed=s, test_samples=20_000).recall for s in range(24)]
    assert 0.6 < np.std(recalls, ddof=1) / predict(at).recall_deviation < 1.5
    assert math.isnan(predict(at.replace(attention="uniform")).recall_deviation)


def test_the_stored_trigger_overlaps_with_either_sign():
    at = task(samples=420, dimension=72, trigger_in_value=True)
    recalls = np.array([memcap.simulate(at, seed=s, test_samples=1).clean_recall for s in range(30)])
    assert abs(predict(at).clean_recall - recalls.mean()) < 0.02 + 3 * recalls.std() / np.sqrt(30)


@pytest.mark.parametrize(("v", "length", "n", "d"), [(22, 32, 451, 23), (32, 32, 640, 24), (64, 64, 1200, 24)])
def test_attention_on_a_small_sphere(v, length, n, d):
    at = task(vocabulary=v, length=length, samples=n, dimension=d, embeddings="sphere")
    found = np.array([memcap.simulate(at, seed=s, test_samples=500).attention_success for s in range(40)])
    assert abs(predict(at).attention_success - found.mean()) < 0.045 + 3 * found.std() / np.sqrt(40)


@settings(max_examples=15)
@given(
    st.integers(2, 200),
    st.integers(1, 300),
    st.integers(1, 10**6),
    st.integers(1, 300),
    st.sampled_from(["hard", "uniform", "oracle"]),
)
def test_predictions_are_probabilities(v, length, n, d, attention):
    found = predict(task(vocabulary=v, length=length, samples=n, dimension=d, attention=attention))
    for value in (found.recall, found.clean_recall, found.perfect_attention_recall, found.coverage):
        assert 0 <= value <= 1
    if attention != "uniform":
        assert 0 <= found.attention_success <= 1


@settings(max_examples=8)
@given(st.integers(32, 200), st.integers(2, 100), st.integers(50, 10**5), st.integers(16, 200))
def test_recall_grows_with_samples_and_dimension_and_falls_with_length(v, length, n, d):
    at = task(vocabulary=v, length=length, samples=n, dimension=d)
    here = predict(at).recall
    assert predict(at.replace(samples=2 * n)).recall > here - 0.01
    assert predict(at.replace(dimension=2 * d)).recall > here - 0.01
    assert predict(at.replace(length=2 * length)).recall < here + 0.01


WARNED = [
    ({"trigger_in_value": True, "vocabulary": 41, "samples": 135, "dimension": 42}, "up to 0.03 too low"),
    ({"embeddings": "sphere"}, "up to 0.04 too low"),
    ({"embeddings": "sphere", "dimension": 24}, "up to 0.08 too low"),
    ({"width": 64}, "fewer neurons than twice the dimensions"),
    ({"width": 64, "dimension": 16, "length": 64}, "in few dimensions"),
    ({"width": 64, "activation": "h2"}, "even activation"),
    ({"length": 128, "samples": 1600, "dimension": 56}, "one number per run"),
    ({"attention": "soft"}, "sharp softmax"),
    ({"attention": "uniform"}, "about 1/length"),
    ({"vocabulary": 8}, "rough here"),
    ({"label_noise": 0.6, "samples": 300, "dimension": 100}, "up to 0.07 too high"),
    ({"attention": "uniform", "trigger_in_value": True}, "up to 0.06 too high"),
    (
        {"vocabulary": 64, "length": 256, "samples": 256, "dimension": 65, "embeddings": "orthogonal"},
        "up to 0.2 too high",
    ),
    ({"dimension": 128, "samples": 500}, "discrete counts"),
]


@pytest.mark.parametrize(("fields", "words"), WARNED, ids=str)
def test_warnings_say_where_the_theory_errs(fields, words):
    assert any(words in text for text in predict(task(**fields)).warnings)


def test_no_warning_inside_the_checked_range():
    assert predict(task(samples=20_000)).warnings == ()
    assert predict(task(samples=20_000, width=256)).warnings == ()


REFUSED = [
    ({"frequencies": "zipf"}, "token frequencies other than uniform"),
    ({"width": 64, "trigger_in_value": True}, "an MLP together with the trigger in the value path"),
    ({"width": 64, "attention": "uniform"}, "an MLP with uniform attention"),
    (
        {"embeddings": "orthogonal", "dimension": 129, "attention": "uniform", "label_noise": 0.1},
        "label noise with orthonormal embeddings",
    ),
]


@pytest.mark.parametrize(("fields", "words"), REFUSED, ids=str)
def test_what_the_theory_does_not_cover_is_refused(fields, words):
    with pytest.raises(ConfigurationError, match=rf"does not cover {words}.*memcap.simulate"):
        predict(task(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"samples": 0},
        {"length": 0},
        {"vocabulary": 1},
        {"dimension": 0},
        {"samples": math.nan},
        {"label_noise": math.nan},
    ],
    ids=str,
)
def test_impossible_tasks_never_reach_the_theory(fields):
    with pytest.raises(ConfigurationError, match=f"{next(iter(fields))} must be"):
        predict(task(**fields))


def test_uniform_attention_has_no_success():
    with pytest.raises(ConfigurationError, match="no success to predict"):
        attention_success(task(attention="uniform"))
