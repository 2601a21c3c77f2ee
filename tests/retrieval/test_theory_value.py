"""The read-out against direct simulation of Gram matrices, the first step, orthonormal counts, the MLP's overlaps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memcap
from memcap.retrieval import orthogonal_law, quadrature
from memcap.retrieval.activation import activation
from memcap.retrieval.first_step_theory import first_step_recall
from memcap.retrieval.mlp_query import mlp_query
from memcap.retrieval.prediction import predict
from memcap.retrieval.value_theory import two_points


def close(predicted, values, allowed):
    """Within ``allowed`` of the mean of ``values``, beside four standard errors."""
    error = np.std(values) / np.sqrt(len(values))
    assert abs(predicted - np.mean(values)) < allowed + 4 * error, (predicted, np.mean(values), error)


def stored(v, d, counts, rng, unit=False):
    z_in, z_out = rng.standard_normal((d, v)), rng.standard_normal((d, v))
    scale = (np.linalg.norm(z_in, axis=0), np.linalg.norm(z_out, axis=0)) if unit else (np.sqrt(d), np.sqrt(d))
    z_in, z_out = z_in / scale[0], z_out / scale[1]
    table = np.diag(counts)
    logits = z_out.T @ (z_out @ (table - table.mean(axis=0)) @ z_in.T) @ z_in
    return (logits.argmax(axis=0) == np.arange(v)).mean()


@pytest.mark.parametrize(("v", "d", "embeddings"), [(128, 56, "gaussian"), (256, 48, "gaussian"), (128, 48, "sphere")])
def test_value_step_of_the_population(v, d, embeddings):
    allowed = 0.03 if embeddings == "sphere" else 0.012
    rng = np.random.default_rng(0)
    recalls = [stored(v, d, np.ones(v), rng, embeddings == "sphere") for _ in range(40)]
    task = memcap.RetrievalTask(
        vocabulary=v, length=4, samples=1, dimension=d, embeddings=embeddings, data="population", attention="oracle"
    )
    close(predict(task).clean_recall, recalls, allowed)


@pytest.mark.parametrize(("v", "d", "per_fact"), [(128, 56, 0.7), (128, 64, 3), (64, 48, 12)])
def test_value_step_of_samples(v, d, per_fact):
    rng, n = np.random.default_rng(1), round(v * per_fact)
    recalls = [stored(v, d, rng.multinomial(n, np.ones(v) / v), rng) for _ in range(40)]
    task = memcap.RetrievalTask(vocabulary=v, length=4, samples=n, dimension=d, attention="oracle")
    close(predict(task).clean_recall, recalls, 0.02)


@pytest.mark.parametrize(("v", "length", "n", "d"), [(128, 16, 4000, 64), (96, 64, 6000, 96), (64, 4, 300, 128)])
def test_first_step(v, length, n, d):
    task = memcap.RetrievalTask(vocabulary=v, length=length, samples=n, dimension=d, attention="uniform")
    recalls = [memcap.simulate(task, seed=s, test_samples=1).clean_recall for s in range(12)]
    close(first_step_recall(n, v, length, d), recalls, 0.015)


def test_first_step_with_the_trigger_in_the_values_and_with_label_noise():
    task = memcap.RetrievalTask(vocabulary=96, length=8, samples=3000, dimension=64, attention="uniform")
    for changes in ({"trigger_in_value": True}, {"label_noise": 0.3}):
        changed = task.replace(**changes)
        recalls = [memcap.simulate(changed, seed=s, test_samples=1).clean_recall for s in range(12)]
        close(predict(changed).clean_recall, recalls, 0.03)


@pytest.mark.parametrize(
    ("v", "length", "n", "ties", "strict"), [(64, 16, 256, 0.534, 0.476), (256, 8, 300, 0.350, 0.293)]
)
def test_orthonormal_first_step_is_exact(v, length, n, ties, strict):
    assert orthogonal_law.first_step_recall(n, v, length, ties_broken=True) == pytest.approx(ties, abs=0.001)
    assert orthogonal_law.first_step_recall(n, v, length) == pytest.approx(strict, abs=0.001)
    task = memcap.RetrievalTask(
        vocabulary=v, length=length, samples=n, dimension=v + 1, embeddings="orthogonal", attention="uniform"
    )
    recalls = [memcap.simulate(task, seed=s, test_samples=1).clean_recall for s in range(20)]
    close(strict, recalls, 0.005)


def test_orthonormal_first_step_by_enumeration_and_by_gaussians_agree():
    exact = orthogonal_law.first_step_recall(40_000, 32, 600)
    assert orthogonal_law._first_step_gaussian(40_000, 32, 600) == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize(
    ("v", "length", "n"), [(32, 2, 100), (128, 4, 300), (64, 8, 1500), (64, 16, 256)], ids="{}".format
)
def test_orthonormal_fresh_sequences_under_uniform_attention(v, length, n):
    task = memcap.RetrievalTask(
        vocabulary=v, length=length, samples=n, dimension=v + 1, embeddings="orthogonal", attention="uniform"
    )
    recalls = [memcap.simulate(task, seed=s, test_samples=4000).recall for s in range(12)]
    close(predict(task).recall, recalls, 0.008)
    assert np.isnan(orthogonal_law.fresh_uniform_recall(quadrature.label_count(n, v), v, 4 * v))


def test_orthonormal_value_step_is_coverage():
    counts = quadrature.label_count(100, 64)
    found = orthogonal_law.value_step_recall(
        counts, 64, amplitude=np.array([1.0, 0.0]), competitor_rate=np.array([0.0, 0.1])
    )
    assert found[0] == pytest.approx(1 - (1 - 1 / 64) ** 100, abs=1e-4)
    assert found[1] < 0.05


@pytest.mark.parametrize("name", ["relu", "tanh", "h1+h2"])
def test_mlp_overlaps_against_random_features(name):
    d, m, reps = 24, 96, 3000
    phi, rng = activation(name), np.random.default_rng(2)
    own, cross = np.zeros(reps), np.zeros(reps)
    for i in range(reps):
        w = rng.standard_normal((m, d))
        a, b = rng.standard_normal((2, d)) / np.sqrt(d)
        x, y = phi.value(w @ a) / np.sqrt(m), phi.value(w @ b) / np.sqrt(m)
        own[i], cross[i] = x @ x, x @ y
    query = mlp_query(name, m, d)
    assert query.weights.sum() == pytest.approx(1)
    constant = query.weights @ query.constant
    assert query.weights @ query.own + constant == pytest.approx(own.mean(), rel=0.03)
    assert constant == pytest.approx(cross.mean(), abs=4 * cross.std() / np.sqrt(reps) + 0.003)
    # given the query: the constant part moves with the query's own norm and is taken out
    spread = cross.var() - query.weights @ (query.constant - constant) ** 2
    assert query.weights @ query.cross == pytest.approx(spread, rel=0.15)


@pytest.mark.parametrize(
    ("name", "d", "m", "third", "fourth"),
    [
        ("relu", 32, 16, 0.25, 0.5),
        ("relu", 16, 400, 0.25, 0.3),
        ("h1+h2", 24, 400, 0.3, 0.4),
        ("h1", 24, 64, None, 0.2),
    ],
)
def test_higher_cumulants_of_overlaps_against_random_features(name, d, m, third, fourth):
    # with few neurons the fourth cumulant is rough: how neurons and cosines move together is kept only in the third
    phi, rng = activation(name), np.random.default_rng(4)
    found = []
    for _ in range(600):
        w = rng.standard_normal((m, d))
        pre = rng.standard_normal((301, d)) @ w.T / np.sqrt(d)
        features = phi.value(pre) / np.sqrt(m)
        overlap = features[1:] @ features[0]
        found += list(overlap - overlap.mean())  # what a query has in common with all keys is no noise
    query = mlp_query(name, m, d)
    away = np.array(found)
    three = query.weights @ (query.skew * query.cross**1.5)
    four = query.weights @ ((query.tail + 3) * query.cross**2)
    if third is None:
        assert abs(three) < 1e-12 + 1e-6 * four**0.75
    else:
        assert three == pytest.approx((away**3).mean(), rel=third)
    assert four == pytest.approx((away**4).mean(), rel=fourth)


@given(st.floats(-1.5, 1.5), st.floats(-0.5, 3.0))
def test_a_gaussian_plus_two_points_has_the_wanted_cumulants(skew, tail):
    (share,), (points,), (chances,) = two_points(np.array([skew]), np.array([tail]))
    assert chances.sum() == pytest.approx(1)
    assert chances @ points == pytest.approx(0, abs=1e-6)
    assert chances @ points**2 == pytest.approx(share, rel=1e-6)
    assert chances @ points**3 == pytest.approx(skew, rel=1e-3, abs=1e-4)
    if 0.0011 < share < 0.94:
        assert chances @ points**4 - 3 * share**2 == pytest.approx(tail, rel=1e-2, abs=1e-2)


@pytest.mark.parametrize(("name", "width", "d"), [("tanh", 128, 48), ("relu", 256, 48), ("h1+h2", 64, 40)])
def test_recall_with_an_mlp(name, width, d):
    task = memcap.RetrievalTask(
        vocabulary=96, length=8, samples=2000, dimension=d, width=width, activation=name, attention="oracle"
    )
    recalls = [memcap.simulate(task, seed=s, test_samples=1).clean_recall for s in range(8)]
    close(predict(task).clean_recall, recalls, 0.035)
