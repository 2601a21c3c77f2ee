"""Lower bounds and the decoders under them: limits, published values, and that no decoder beats its bound."""

import math

import numpy as np
import pytest

import memcap
from memcap.errors import ConfigurationError
from memcap.retrieval.decoders import CLASS_A, CLASS_B, MMSE, decode
from memcap.retrieval.embeddings import draw_embeddings
from memcap.retrieval.linear_decoders import assign, least_squares, matched_filter, observe, strict_argmax
from memcap.retrieval.lower_bound import information_recall, recall_bound, samples_needed
from memcap.retrieval.message_passing import message_passing
from memcap.retrieval.posterior import _sampled, log_posterior, posterior_mean


def task(**fields):
    return memcap.RetrievalTask(**{"vocabulary": 128, "length": 8, "samples": 3200, "dimension": 16, **fields})


@pytest.mark.parametrize(
    ("d", "n", "wanted"), [(16, 3200, 0.80), (32, 3200, 1.0), (32, 800, 0.97), (64, 800, 0.9998), (96, 400, 0.964)]
)
def test_published_bounds(d, n, wanted):
    assert recall_bound(task(dimension=d, samples=n)).recall == pytest.approx(wanted, abs=0.006)


def test_bounds_from_information():
    assert information_recall(0.0, 10**4) < 0.001
    log_factorial = math.lgamma(101)
    assert information_recall(log_factorial, 100) == 1
    values = [information_recall(x, 100) for x in np.linspace(0, log_factorial, 9)]
    assert values == sorted(values)


def test_coverage_bounds_every_class():
    bound = recall_bound(task(samples=64, dimension=100))
    assert bound.coverage_bound == pytest.approx(1 - (127 / 128) ** 64 + 1 / 128, abs=1e-9)
    assert bound.recall <= bound.coverage_bound
    assert recall_bound(task(samples=64), sees="samples").coverage_bound == bound.coverage_bound


def test_samples_and_length_enter_the_first_gradient_only_as_their_ratio():
    a = recall_bound(task(samples=80_000, length=9)).information
    b = recall_bound(task(samples=800_000, length=81)).information
    assert a == pytest.approx(b, rel=0.002)
    half = recall_bound(task(samples=80_000, length=9, dimension=8)).information
    assert a == pytest.approx(4 * half, rel=1e-12)


def test_stored_bits():
    bound = recall_bound(task(dimension=8), sees="weights", bits=2.0)
    assert bound.information == pytest.approx(2 * 64 * math.log(2))
    assert bound.recall < 0.6


def test_samples_needed_is_the_smallest():
    n = samples_needed(task(dimension=32), 0.9)
    assert (
        recall_bound(task(dimension=32, samples=n)).recall
        >= 0.9
        > recall_bound(task(dimension=32, samples=n - 1)).recall
    )
    assert samples_needed(task(), 1.0, sees="samples") is not None
    assert samples_needed(task(dimension=1), 0.9) is None


def test_infinite_data_is_bounded_by_nothing_here():
    assert recall_bound(task(data="population")).recall == 1


def beats(values, bound):
    """The rule of a decoder beating a bound: the lower end of its 95 % interval exceeds it."""
    half = 1.96 * np.std(values, ddof=1) / np.sqrt(len(values)) if np.std(values) > 0 else 0.0
    return np.mean(values) - max(half, 1e-3) > bound


@pytest.mark.parametrize(("d", "n"), [(16, 3200), (64, 100), (96, 400)])
def test_no_decoder_of_the_first_gradient_beats_the_bound(d, n):
    at = task(dimension=d, samples=n)
    found = [decode(at, seed=s) for s in range(3)]
    bound = recall_bound(at).recall
    assert set(found[0]) == set(CLASS_A)
    assert not any(beats([f[name] for f in found], bound) for name in CLASS_A)


@pytest.mark.parametrize(("d", "length", "n"), [(16, 32, 2484), (48, 64, 200)])
def test_no_decoder_of_the_samples_beats_the_bound(d, length, n):
    at = task(dimension=d, length=length, samples=n)
    found = [decode(at, sees="samples", seed=s) for s in range(4)]
    bound = recall_bound(at, sees="samples").recall
    assert set(found[0]) == set(CLASS_B)
    assert not any(beats([f[name] for f in found], bound) for name in CLASS_B)


def test_better_decoders_recall_more():
    found = [decode(task(dimension=32), seed=s) for s in range(4)]
    mean = {name: np.mean([f[name] for f in found]) for name in CLASS_A}
    assert mean["matched filter"] == pytest.approx(0.28, abs=0.05)
    assert mean["least squares + assignment"] == pytest.approx(0.57, abs=0.07)
    assert mean["message passing"] == pytest.approx(0.93, abs=0.07)
    samples = decode(task(length=32, samples=2484), sees="samples", seed=0)
    assert samples["likelihood + assignment"] > samples["matched filter"]


def test_the_matched_filter_is_the_first_gradient_step():
    at = task(dimension=32, samples=2000)
    run = memcap.simulate(at.replace(attention="uniform"), seed=3, steps=1, test_samples=1)
    assert decode(at, seed=3)["matched filter"] == pytest.approx(run.clean_recall, abs=1 / 128)


def test_noiseless_gradients_are_decoded_exactly():
    at = task(vocabulary=40, dimension=48)
    e = draw_embeddings(at)
    table = np.zeros((40, 40))
    table[e.permutation, np.arange(40)] = 1 / (40 * 8)
    labels = e.labels - e.labels.mean(axis=0)
    gradient = labels.T @ table @ e.tokens
    for scores in (least_squares(gradient, e), message_passing(gradient, e, 10**9, 8)):
        assert (assign(scores) == e.permutation).all()
    assert (strict_argmax(least_squares(gradient, e)) == e.permutation).all()
    assert (strict_argmax(least_squares(gradient, e, ridge=1e-3)) == e.permutation).mean() > 0.9
    assert matched_filter(gradient, e).shape == (40, 40)


def observed(at):
    e = draw_embeddings(at)
    rng = np.random.default_rng(at.seed)
    table = np.zeros((at.vocabulary, at.vocabulary))
    table[e.permutation, np.arange(at.vocabulary)] = 1
    noise = rng.standard_normal(table.shape) * np.sqrt((at.length - 1) / at.samples)
    scale = at.length * at.vocabulary
    gradient = (e.labels - e.labels.mean(axis=0)).T @ (table + noise) @ e.tokens / scale
    return e, gradient, observe(gradient, e, at.samples, at.length)


def test_the_posterior_is_that_of_gaussian_noise_on_the_gradient_itself():
    """Written a second time: Gaussian likelihood of the d x d gradient with the covariance that white noise gets."""
    at = task(vocabulary=5, dimension=3, samples=40, length=4)
    e, gradient, view = observed(at)
    centred = e.labels - e.labels.mean(axis=0)
    mixing = np.kron(centred.T, e.tokens.T) / (at.length * 5)
    precision = np.linalg.inv(view.noise * mixing @ mixing.T)
    rng = np.random.default_rng(0)
    permutations = np.array([rng.permutation(5) for _ in range(6)])
    expected = []
    for labels in permutations:
        x = np.zeros((5, 5))
        x[labels, np.arange(5)] = 1
        gap = gradient.ravel() - mixing @ x.ravel()
        expected.append(-0.5 * gap @ precision @ gap)
    found = log_posterior(view, permutations)
    np.testing.assert_allclose(found - found[0], np.array(expected) - expected[0], rtol=1e-8, atol=1e-8)


def test_sampling_agrees_with_enumeration():
    _, _, view = observed(task(vocabulary=6, dimension=4, samples=30, length=4))
    exact = posterior_mean(view)
    np.testing.assert_allclose(exact.sum(axis=0), 1, atol=1e-12)
    np.testing.assert_allclose(exact.sum(axis=1), 1, atol=1e-12)
    sampled = _sampled(view, 400_000, 0)
    np.testing.assert_allclose(sampled.sum(axis=0), 1, atol=1e-12)
    np.testing.assert_allclose(sampled, exact, atol=0.02)
    assert 0.2 < exact.max(axis=0).mean() < 0.99  # neither certain nor blind


def test_the_sampled_posterior_mean_recalls_more_than_linear_decoders():
    at = task(vocabulary=40, dimension=16, samples=1200)
    found = [decode(at, seed=s, proposals=200_000) for s in range(3)]
    mean = {name: np.mean([f[name] for f in found]) for name in (*CLASS_A, MMSE)}
    assert mean[MMSE] > mean["least squares + assignment"] + 0.1
    assert not any(beats([f[MMSE] for f in found], recall_bound(at).recall) for _ in [0])
    assert MMSE not in decode(at)
    assert MMSE in decode(at.replace(vocabulary=7, dimension=5))


def test_a_tie_is_no_answer():
    assert strict_argmax(np.array([[1.0, 2.0], [1.0, 0.0]])).tolist() == [-1, 0]


ERRORS = [
    (lambda: recall_bound(task(), sees="first gradeint"), "did you mean 'first gradient'"),
    (lambda: recall_bound(task(), sees="weights"), "bits belongs to sees='weights'"),
    (lambda: recall_bound(task(), bits=2.0), "bits belongs to sees='weights'"),
    (lambda: recall_bound(task(width=8)), "derived for attention only"),
    (lambda: recall_bound(task(frequencies="zipf")), "derived for attention only"),
    (lambda: recall_bound(task(), sees="weights", bits=-1.0), "bits must be a finite number"),
    (lambda: samples_needed(task(), 1.5), "recall must be a finite number"),
    (lambda: samples_needed(task(), 0.5, sees="weights"), "does not depend on the samples"),
    (lambda: decode(task(), sees="sample"), "did you mean 'samples'"),
    (lambda: decode(task(width=8)), "decoders need length >= 2, attention only"),
    (lambda: decode(task(length=1)), "decoders need length >= 2"),
    (lambda: decode(task(vocabulary=9), proposals=1), "proposals must be at least 2, got 1"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_wrong_calls(call, message):
    with pytest.raises(ConfigurationError, match=message):
        call()
