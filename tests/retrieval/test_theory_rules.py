"""Quadrature rules, Marchenko-Pastur moments and Hermite coefficients against what is known of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from memcap.retrieval import quadrature
from memcap.retrieval.activation import activation
from memcap.retrieval.hermite import coefficient, fourth, square
from memcap.retrieval.marchenko_pastur import moment
from memcap.retrieval.shared_mean import shared_mean


@pytest.mark.parametrize(
    ("power", "coefficients"),
    [(1, [1]), (2, [1, 1]), (3, [1, 3, 1]), (4, [1, 6, 6, 1]), (5, [1, 10, 20, 10, 1]), (6, [1, 15, 50, 50, 15, 1])],
)
def test_moments_are_narayana_polynomials(power, coefficients):
    for ratio in (0.0, 0.25, 1.0, 7.5):
        assert moment(power, ratio) == pytest.approx(sum(c * ratio**k for k, c in enumerate(coefficients)), rel=1e-14)


def test_moments_are_those_of_a_random_gram_matrix():
    rng, v, d = np.random.default_rng(0), 400, 160
    traces = np.zeros(6)
    for _ in range(6):
        z = rng.standard_normal((d, v)) / np.sqrt(d)
        eigenvalues = np.linalg.svd(z, compute_uv=False) ** 2
        traces += [np.sum(eigenvalues**p) / v / 6 for p in range(1, 7)]
    assert traces == pytest.approx([moment(p, v / d) for p in range(1, 7)], rel=0.05)


def test_a_power_below_one_is_refused():
    with pytest.raises(ValueError, match="power must be at least 1, got 0"):
        moment(0, 1.0)


@given(st.integers(1, 5000), st.integers(2, 6))
def test_chi_square_rule_has_the_right_moments(degrees, count):
    nodes, weights = quadrature.chi_square_ratio(degrees, count)
    assert weights.sum() == pytest.approx(1)
    assert (nodes > 0).all()
    assert weights @ nodes == pytest.approx(1)
    assert weights @ nodes**2 == pytest.approx(1 + 2 / degrees)
    assert weights @ nodes**3 == pytest.approx((1 + 2 / degrees) * (1 + 4 / degrees))


@given(st.integers(2, 100_000), st.integers(2, 8))
def test_cosine_rule_has_the_right_moments(dimension, count):
    nodes, weights = quadrature.cosine(dimension, count)
    assert weights.sum() == pytest.approx(1)
    assert weights @ nodes == pytest.approx(0, abs=1e-12)
    assert weights @ nodes**2 == pytest.approx(1 / dimension)
    if count > 2:
        assert weights @ nodes**4 == pytest.approx(3 / (dimension * (dimension + 2)))


def test_cosine_on_a_line_is_a_sign():
    nodes, weights = quadrature.cosine(1, 5)
    assert nodes.tolist() == [-1, 1]
    assert weights.tolist() == [0.5, 0.5]


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_merging_keeps_moments_and_mass(values, count, seed):
    nodes = np.unique(np.round(values, 3))
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(nodes)))
    merged, shares = quadrature.merge(nodes, weights, count)
    assert len(merged) <= max(count, 1)
    assert shares.sum() == pytest.approx(1)
    assert (shares >= -1e-12).all()
    for power in range(1, min(2 * count, 6)):
        assert shares @ merged**power == pytest.approx(weights @ nodes**power, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("samples", "vocabulary"), [(1, 2), (5, 64), (300, 64), (20_000, 64), (10**15, 999)])
def test_label_counts_have_the_binomial_mean_and_variance(samples, vocabulary):
    nodes, weights = quadrature.label_count(samples, vocabulary)
    mean, variance = binom.stats(samples, 1 / vocabulary)
    assert (nodes >= 0).all()
    assert weights @ nodes == pytest.approx(float(mean), rel=1e-3)
    assert weights @ nodes**2 - (weights @ nodes) ** 2 == pytest.approx(float(variance), rel=0.03)


def test_log_normal_has_its_mean_and_variance():
    nodes, weights = quadrature.log_normal(1.3, 0.8, 15)
    assert weights @ nodes == pytest.approx(1.3, rel=1e-3)
    assert weights @ nodes**2 - 1.69 == pytest.approx(0.8, rel=0.02)


def test_relu_has_its_known_coefficients():
    root = np.sqrt(2 * np.pi)
    assert coefficient("relu", 0, 1.0) == pytest.approx(1 / root, rel=1e-12)
    assert coefficient("relu", 1, 1.0) == pytest.approx(0.5, rel=1e-12)
    assert coefficient("relu", 2, 1.0) == pytest.approx(1 / (2 * np.sqrt(np.pi)), rel=1e-12)
    assert coefficient("relu", 3, 1.0) == pytest.approx(0, abs=1e-13)
    assert square("relu", 0.3) == pytest.approx(0.15, rel=1e-12)
    assert fourth("relu", 1.0) == pytest.approx(1.5, rel=1e-10)


@pytest.mark.parametrize("name", ["relu", "gelu", "tanh", "he2", "h1+h2", "0.3*h1-h3"])
def test_parseval(name):
    total = sum(coefficient(name, k, 1.0) ** 2 for k in range(60))
    assert total == pytest.approx(square(name, 1.0), rel=0.01)


@pytest.mark.parametrize("name", ["relu", "gelu", "tanh", "he2", "h1+h2", "0.3*h1-h3"])
@pytest.mark.parametrize(("spread", "mean"), [(0.2, 0.1), (0.02, 0.3)])
def test_expectations_over_a_shared_mean_against_sampling(name, spread, mean):
    rng, phi = np.random.default_rng(1), activation(name)
    mu, xi = (np.concatenate([x, -x]) for x in rng.standard_normal((2, 800)))
    mu, xi = (x / x.std() * np.sqrt(r) for x, r in ((mu, mean), (xi, spread)))
    at = mu[:, None] + xi
    value, slope = phi.value(at), phi.slope(at)
    v, s, push = value.mean(axis=1), slope.mean(axis=1), (value * slope).mean(axis=1)
    bend = (slope * xi).mean(axis=1) / spread
    mixed = s[:, None] * value + v[:, None] * slope
    found = shared_mean(name, spread, mean)
    wanted = {
        "linear": (s**2).mean(),
        "linear_square": (s**4).mean(),
        "crossed": (v * bend).mean(),
        "own_slope": (push * mu).mean() / mean,
        "own_push": (push**2).mean(),
        "mixed_push": (push * v * s).mean(),
        "pair_push": ((v * s) ** 2).mean(),
        "value_noise": (s**2 * value.var(axis=1)).mean(),
        "slope_noise": (v**2 * slope.var(axis=1)).mean(),
        "both_noise": (value.var(axis=1) * slope.var(axis=1)).mean(),
        "sum_noise": mixed.var(axis=1).mean(),
    }
    for field, value_of in wanted.items():
        assert getattr(found, field) == pytest.approx(value_of, rel=0.15, abs=0.04), field


def test_a_rectifier_has_its_known_expectations():
    for share in (0.1, 0.5, 0.9):  # of the shared mean in the variance
        found = shared_mean("relu", 0.3 * (1 - share), 0.3 * share)
        assert found.linear == pytest.approx(0.25 + np.arcsin(share) / (2 * np.pi), rel=1e-6)
        assert found.own_slope == pytest.approx(0.5, rel=1e-9)
        kernel = 0.3 / (2 * np.pi) * (np.sqrt(1 - share**2) + share * (np.pi - np.arccos(share)))
        assert found.own_push == pytest.approx(kernel, rel=1e-6)  # φφ' = φ, so it is E φ(P)φ(P') of two sequences


def test_a_straight_line_is_attention_alone():
    found = shared_mean("h1", 0.2, 0.1)
    assert found.linear == pytest.approx(1)
    assert found.linear_square == pytest.approx(1)
    assert found.own_slope == pytest.approx(1)
    assert found.crossed == pytest.approx(0, abs=1e-12)
    assert found.value_noise == pytest.approx(0.2)
    assert found.own_push == pytest.approx(0.1)
    assert found.slope_noise == pytest.approx(0, abs=1e-12)
