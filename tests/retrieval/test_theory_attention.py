"""Attention success given a gap against direct sampling, and the law of the gaps."""

import numpy as np
import pytest

from memcap.retrieval import quadrature
from memcap.retrieval.attention_theory import beats, gaps, success, success_given
from memcap.retrieval.budget import AttentionBudget, attention_budget
from memcap.retrieval.end_to_end_theory import two_point


def sampled_success(z, vocabulary, length, runs, rng):
    """Chance for each sampled run (token scores) and token, exact given the scores."""
    scores = rng.standard_normal((runs, vocabulary))
    below = (scores[:, :, None] > scores[:, None, :] - z).sum(axis=2)  # tokens that score below own + z
    return (below / vocabulary) ** (length - 1)


@pytest.mark.parametrize(("vocabulary", "length", "z"), [(32, 8, 2.0), (64, 512, 3.0), (128, 16, 1.0), (64, 3, 0.5)])
def test_success_against_sampled_scores(vocabulary, length, z):
    chance = sampled_success(z, vocabulary, length, 60, np.random.default_rng(0))
    own, weight = quadrature.normal(41)
    predicted = float(success_given(np.array([z]), own, vocabulary, length)[0] @ weight)
    run_error = chance.mean(axis=1).std() / np.sqrt(60)
    assert abs(predicted - chance.mean()) < 4 * run_error + 0.01


def test_two_point_law_has_the_spread_of_sampled_chances():
    for vocabulary, length in ((64, 4), (64, 64), (64, 1000)):
        chance = sampled_success(2.0, vocabulary, length, 200, np.random.default_rng(1))
        own, weight = quadrature.normal(41)
        points, share = two_point(np.array([2.0]), own, vocabulary, length)
        total = share * weight[None, :, None]
        assert total.sum() == pytest.approx(1)
        for power in (1, 2):
            assert (total * points**power).sum() == pytest.approx((chance**power).mean(), abs=0.025)


def test_a_negative_trigger_loses_to_a_copy_of_the_informative_token():
    own = np.zeros(1)
    absent = (1 - 1 / 16) ** 7
    assert success_given(np.array([-1e-9]), own, 16, 8)[0, 0] == pytest.approx(
        success_given(np.array([1e-9]), own, 16, 8)[0, 0] * absent
    )


def test_limits_of_beats():
    assert beats(np.array([50.0]), 64, 100)[0] == pytest.approx(1)
    assert beats(np.array([-50.0]), 64, 100)[0] == pytest.approx((1 - 1 / 64) ** (99 * 63), rel=1e-6)
    assert beats(np.array([-50.0]), 64, 1)[0] == pytest.approx(1)


def test_gaps_are_a_distribution_with_the_drive_over_the_spread():
    budget = attention_budget(vocabulary=4096, length=16, samples=10**5, dimension=256)
    law = gaps(budget, 256)
    assert law.weights.sum() == pytest.approx(1)
    expected = budget.drive / np.sqrt(budget.total_variance + budget.drive**2 / 256)
    assert law.weights @ law.values == pytest.approx(expected, rel=0.05)


def test_no_noise_is_certain_success_and_no_signal_certain_chance():
    clean = gaps(AttentionBudget(drive=1.0, drive_variance=0.0, variances={}), None)
    assert clean.weights @ success(clean, 64, 8) == pytest.approx(1)
    blind = gaps(AttentionBudget(drive=0.0, drive_variance=0.0, variances={"pairs": 1.0}), None)
    assert 0.05 < blind.weights @ success(blind, 64, 8) < 0.2  # one of eight positions, repeats aside


def test_mean_bias_widens_the_spread_between_runs():
    def spread(length):
        law = gaps(attention_budget(vocabulary=128, length=length, samples=1600, dimension=56), 56)
        chance = success(law, 128, length)
        mean = law.weights @ chance
        return np.sqrt(law.weights @ (chance - mean) ** 2)

    assert spread(128) > 0.2 > spread(8)
