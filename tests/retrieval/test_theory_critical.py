"""``memcap.critical`` and ``memcap.scaling``: the answer reaches the target, exponents follow the regimes, errors."""

import math

import numpy as np
import pytest

import memcap
from memcap.errors import ConfigurationError
from memcap.retrieval.critical import critical
from memcap.retrieval.crossing import check_solve_for
from memcap.retrieval.prediction import attention_success, predict
from memcap.retrieval.scaling import scaling


def task(**fields):
    return memcap.RetrievalTask(**{"vocabulary": 64, "length": 128, "samples": 1000, "dimension": 24, **fields})


def test_the_answer_is_the_first_integer_that_reaches_the_target():
    for at, variable, level in (
        (task(vocabulary=256, length=16, samples=8000), "dimension", 0.99),
        (task(dimension=64, length=8), "samples", 0.5),
    ):
        found = critical(at, solve_for=variable, recall=level)
        step = max(1, found.value // 5000)  # large answers are known to 1e-4
        assert predict(at.replace(**{variable: found.value + step})).recall >= level
        assert predict(at.replace(**{variable: found.value - step})).recall < level
        assert found.reached == pytest.approx(level, abs=0.01)
        low, high = found.interval
        assert low < found.crossing < high


def test_length_and_vocabulary_are_the_largest():
    at = task(vocabulary=256, samples=20_000, dimension=128)
    longest = critical(at, solve_for="length", recall=0.9)
    assert (
        predict(at.replace(length=longest.value)).recall >= 0.9 > predict(at.replace(length=longest.value + 2)).recall
    )
    assert longest.interval[0] < longest.crossing < longest.interval[1]
    largest = critical(at.replace(length=32), solve_for="vocabulary", recall=0.99)
    assert 250 < largest.value < 320


def test_published_sizes_for_99_percent():
    for v, length, n, d in ((256, 16, 8000, 136), (1024, 16, 40_000, 252)):
        found = critical(task(vocabulary=v, length=length, samples=n), solve_for="dimension", recall=0.99)
        assert abs(found.value - d) <= 3


def test_the_answer_does_not_depend_on_where_the_search_starts():
    answers = {critical(task(samples=n), attention=0.5).value for n in (1, 4000, 10**9)}
    assert max(answers) - min(answers) <= 2


def test_exponents_of_the_mean_bias_regime():
    law = scaling(task(length=512, dimension=48, vocabulary=256), attention=0.5)
    assert law.exponents["length"] == pytest.approx(2.0, abs=0.1)
    assert law.exponents["dimension"] == pytest.approx(-1.5, abs=0.1)
    assert law.exponents["vocabulary"] == pytest.approx(0.5, abs=0.12)
    assert law.critical == pytest.approx(
        critical(task(length=512, dimension=48, vocabulary=256), attention=0.5).crossing
    )


def test_exponents_of_coverage_and_capacity():
    law = scaling(task(length=2, dimension=400), solve_for="samples", recall=0.9)
    assert law.exponents["vocabulary"] == pytest.approx(1.0, abs=0.15)
    assert abs(law.exponents["dimension"]) < 0.2
    capacity = scaling(task(vocabulary=1024, length=2, samples=10**7), solve_for="dimension", recall=0.5)
    assert 0.45 < capacity.exponents["vocabulary"] < 0.6
    assert abs(capacity.exponents["samples"]) < 0.05


def test_first_step_alone_is_asked_for_clean_queries():
    at = task(attention="uniform", vocabulary=256, length=16, dimension=160)
    found = critical(at, clean_recall=0.5)
    assert predict(at.replace(samples=found.value)).clean_recall == pytest.approx(0.5, abs=0.005)
    never = critical(at, recall=0.5)
    assert never.value is None
    assert "ask for clean_recall" in never.reason


def test_out_of_reach_says_why():
    found = critical(task(dimension=4), recall=0.5)
    assert found.value is None
    assert math.isnan(found.crossing)
    assert found.interval == (None, None)
    assert "limited by capacity" in found.reason
    with pytest.raises(ConfigurationError, match="out of reach of samples"):
        scaling(task(dimension=4), recall=0.5)


def test_reached_everywhere_says_so():
    found = critical(task(length=1, dimension=64, samples=100_000), solve_for="dimension", attention=0.5)
    assert found.value is None
    assert found.reason.startswith("reached at every dimension")


def test_orthonormal_embeddings_have_no_critical_dimension():
    at = task(embeddings="orthogonal", dimension=65)
    assert "nothing depends on the dimension" in critical(at, solve_for="dimension").reason
    assert critical(at, solve_for="samples", attention=0.5).value is not None


def test_an_end_of_an_interval_may_be_out_of_reach():
    at = task(length=2, dimension=47, vocabulary=128)
    best = predict(at.replace(samples=10**12)).recall
    found = critical(at, recall=best - 0.01)
    assert found.value is not None
    assert found.interval[1] is None


def test_attention_alone_agrees_with_the_whole_prediction():
    for fields in ({}, {"width": 64}, {"embeddings": "sphere"}, {"embeddings": "orthogonal", "dimension": 65}):
        at = task(**fields)
        assert attention_success(at) == pytest.approx(predict(at).attention_success)


def test_wider_is_better():
    at = task(vocabulary=128, length=8, samples=5000, dimension=64, width=32, activation="tanh")
    found = critical(at, solve_for="width", recall=0.5)
    assert found.value is not None
    assert predict(at.replace(width=2 * found.value)).recall > 0.5


ERRORS = [
    ({"solve_for": "sample"}, r"solve_for must be one of .* got 'sample' \(did you mean 'samples'\?\)"),
    ({"solve_for": "width"}, "needs a task with an MLP"),
    ({"recall": 0.0}, "recall must lie strictly between 0 and 1, got 0.0"),
    ({"recall": 1.0}, "strictly between"),
    ({"recall": math.nan}, "recall must be a finite number"),
    ({"attention": -0.1}, "attention must be a finite number"),
    ({"attention": 0.5, "recall": 0.5}, "give one target, got recall and attention"),
]


@pytest.mark.parametrize(("options", "message"), ERRORS, ids=str)
def test_wrong_calls(options, message):
    with pytest.raises(ConfigurationError, match=message):
        critical(task(), **options)


def test_more_wrong_calls():
    with pytest.raises(ConfigurationError, match="no samples"):
        critical(task(data="population"))
    with pytest.raises(ConfigurationError, match="takes no attention step"):
        critical(task(attention="oracle"), attention=0.5)
    with pytest.raises(ConfigurationError, match="factor must be"):
        scaling(task(), factor=1.0)
    with pytest.raises(ConfigurationError, match="did you mean 'length'"):
        check_solve_for("lenght")


def test_records_are_plain():
    import json

    assert json.loads(json.dumps(critical(task(), attention=0.5).to_dict()))["solve_for"] == "samples"
    assert np.isfinite(list(scaling(task(), attention=0.5).to_dict()["exponents"].values())).all()
