"""Each source of variance against Monte Carlo on its own: sources are switched off in the data, not in the formulas."""

import numpy as np
import pytest

import memcap
from memcap.retrieval.budget import SOURCES, attention_budget
from memcap.retrieval.marchenko_pastur import unit_mean_bias, unit_moment


def alpha_of(tokens, labels, z_in, z_out, own_only=False):
    """α of the attention step and the drive β, from the definition; position 0 is informative."""
    n, length = tokens.shape
    v = z_in.shape[1]
    gram_in, gram_out = z_in.T @ z_in, z_out.T @ z_out
    if own_only:  # only what a sample's own contribution to the table gives back to it
        gain = np.einsum("ijk->ij", gram_in[tokens[:, :, None], tokens[:, None, :]]) / (n * length)
        gain = gain * (gram_out[labels, labels] - gram_out.mean(axis=0)[labels])[:, None]
    else:
        table = np.bincount((labels[:, None] * v + tokens).ravel(), minlength=v * v).reshape(v, v) / (n * length)
        logits = gram_out @ (table - table.mean(axis=0)) @ gram_in
        gain = (logits - logits.mean(axis=0))[labels[:, None], tokens]
    gain = gain - gain.mean(axis=1, keepdims=True)
    alpha = np.bincount(tokens.ravel(), weights=gain.ravel(), minlength=v) / (n * length)
    return alpha, gain[:, 0].sum() / (n * length)


def population_alpha(v, length, z_in, z_out):
    """α of the expected loss: table (Π - 1/V)/(LV), expectation over sequences."""
    table = (np.eye(v) - 1 / v) / (length * v)
    logits = z_out.T @ z_out @ table @ (z_in.T @ z_in)
    logits = logits - logits.mean(axis=0)
    own = np.diag(logits)
    rest = logits.mean(axis=1)
    # informative position: token t with gain own - mean over the sequence; other positions: averages over labels
    alpha = own / (v * length) * (1 - 1 / length) - (length - 1) / length**2 * rest / v
    uniform = (length - 1) / (length * v) * logits.mean(axis=0)
    return alpha + uniform - (own / length).mean() * (length - 1) / (length * v) - uniform.mean()


def measured(v, length, n, d, seeds, *, balanced, signal, centred, own_only=False, minus_population=False):
    """Mean over seeds of the variance over tokens of K_in α."""
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        z_in, z_out = rng.standard_normal((d, v)) / np.sqrt(d), rng.standard_normal((d, v)) / np.sqrt(d)
        if centred:
            z_in = z_in - z_in.mean(axis=1, keepdims=True)
        labels = np.arange(n) % v if balanced else rng.integers(v, size=n)
        tokens = rng.integers(v, size=(n, length))
        if signal:
            tokens[:, 0] = labels
        alpha, _ = alpha_of(tokens, labels, z_in, z_out, own_only)
        if minus_population:
            alpha = alpha - population_alpha(v, length, z_in, z_out)
        found.append((z_in.T @ (z_in @ alpha)).var())
    return float(np.mean(found))


def budget(v, length, n, d):
    return attention_budget(vocabulary=v, length=length, samples=n, dimension=d).variances


def test_pairs_alone():
    for v, length, n, d in ((32, 8, 640, 8), (24, 24, 480, 48)):
        b = budget(v, length, n, d)
        rest = measured(v, length, n, d, 40, balanced=True, signal=False, centred=True)
        rest -= b["echo"] + b["norm echo"]
        assert 0.65 < rest / b["pairs"] < 1.35


def test_echo_alone():
    for v, length, n, d in ((48, 8, 12, 48), (64, 8, 16, 32)):
        b = budget(v, length, n, d)
        echo = measured(v, length, n, d, 60, balanced=False, signal=False, centred=True, own_only=True)
        assert b["echo"] > 3 * b["norm echo"]
        assert 0.65 < (echo - b["norm echo"]) / b["echo"] < 1.7  # rough: it matters only at N << V


def test_norm_echo_alone():
    for v, length, n, d in ((64, 8, 1280, 32), (96, 8, 1920, 192)):
        b = budget(v, length, n, d)
        own = measured(v, length, n, d, 30, balanced=True, signal=False, centred=True, own_only=True)
        assert b["norm echo"] > 3 * b["echo"]
        assert 0.65 < (own - b["echo"]) / b["norm echo"] < 1.35
    sphere = attention_budget(vocabulary=64, length=8, samples=1280, dimension=32, fixed_norm=True)
    assert sphere.variances["norm echo"] == 0


def test_counts_alone():
    for v, length, n, d in ((32, 128, 640, 8), (24, 128, 480, 24)):
        b = budget(v, length, n, d)
        rest = measured(v, length, n, d, 60, balanced=False, signal=False, centred=True)
        rest -= b["echo"] + b["norm echo"] + b["pairs"]
        assert b["counts"] > b["pairs"]
        assert 0.65 < rest / b["counts"] < 1.35


def test_mean_bias_alone():
    for v, length, n, d in ((32, 256, 640, 8), (48, 256, 480, 24)):
        b = budget(v, length, n, d)
        energy = attention_budget(vocabulary=v, length=length, samples=n, dimension=d).mean_energy
        total = measured(v, length, n, d, 60, balanced=False, signal=False, centred=False)
        rest = total - b["echo"] - b["norm echo"] - b["pairs"] - b["counts"]
        assert b["mean bias"] > 3 * b["counts"]
        assert 0.65 < rest / (b["mean bias"] * energy) < 1.35


def test_interference_alone():
    for v, length, d in ((256, 4, 16), (96, 8, 96)):
        wanted = attention_budget(vocabulary=v, length=length, samples=np.inf, dimension=d).variances
        found = []
        for seed in range(30):
            rng = np.random.default_rng(seed)
            z_in, z_out = rng.standard_normal((d, v)) / np.sqrt(d), rng.standard_normal((d, v)) / np.sqrt(d)
            found.append((z_in.T @ (z_in @ population_alpha(v, length, z_in, z_out))).var())
        assert {k for k, x in wanted.items() if x > 0} == {"interference"}
        assert 0.65 < np.mean(found) / wanted["interference"] < 1.35


def test_signal_times_noise_alone():
    for v, length, n, d in ((64, 4, 12_800, 16), (64, 8, 12_800, 32)):
        b = budget(v, length, n, d)
        total = measured(v, length, n, d, 25, balanced=True, signal=True, centred=True, minus_population=True)
        rest = total - b["echo"] - b["norm echo"] - b["pairs"]
        assert b["signal x noise"] > 3 * b["pairs"]
        assert 0.65 < rest / b["signal x noise"] < 1.35


def test_signal_times_counts_alone():
    for v, length, n, d in ((64, 3, 6400, 128), (48, 2, 4800, 48)):
        b = budget(v, length, n, d)
        total = measured(v, length, n, d, 60, balanced=False, signal=True, centred=True, minus_population=True)
        rest = total - b["echo"] - b["norm echo"] - b["pairs"] - b["counts"] - b["signal x noise"]
        assert b["signal x counts"] > b["signal x noise"]
        assert 0.65 < rest / b["signal x counts"] < 1.35


def test_drive():
    v, length, n, d = 32, 8, 1600, 48
    betas = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        z_in, z_out = rng.standard_normal((d, v)) / np.sqrt(d), rng.standard_normal((d, v)) / np.sqrt(d)
        tokens = rng.integers(v, size=(n, length))
        betas.append(alpha_of(tokens, tokens[:, 0], z_in, z_out)[1])
    wanted = attention_budget(vocabulary=v, length=length, samples=n, dimension=d).drive
    assert abs(np.mean(betas) / wanted - 1) < 4 * np.std(betas) / wanted / np.sqrt(30) + 2 / v


def test_every_source_is_described():
    assert set(budget(32, 4, 100, 8)) <= set(SOURCES)


SETTINGS = [
    (64, 16, 500, 8, "gaussian"),
    (64, 128, 2000, 16, "gaussian"),
    (64, 8, 5000, 256, "gaussian"),
    (128, 32, 1000, 64, "gaussian"),
    (256, 8, 3000, 16, "gaussian"),
    (64, 64, 2000, 65, "orthogonal"),
]
MORE_SETTINGS = [
    (1024, 8, 8000, 8, "gaussian"),
    (512, 16, 6000, 32, "gaussian"),
    (32, 512, 5000, 16, "gaussian"),
    (128, 4, 30_000, 512, "gaussian"),
    (128, 64, 100_000, 32, "gaussian"),
    (256, 64, 2000, 256, "gaussian"),
    (128, 16, 4000, 129, "orthogonal"),
    (32, 256, 2000, 33, "orthogonal"),
]


def ratio(v, length, n, d, embeddings, seeds):
    task = memcap.RetrievalTask(vocabulary=v, length=length, samples=n, dimension=d, embeddings=embeddings)
    runs = [memcap.simulate(task, seed=s, steps=2, test_samples=1) for s in range(seeds)]
    b = attention_budget(vocabulary=v, length=length, samples=n, dimension=None if embeddings == "orthogonal" else d)
    return b.total_variance / np.mean([r.attention["alpha_variance"] for r in runs])


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_whole_budget_against_simulation(setting):
    assert 0.65 < ratio(*setting, seeds=16) < 1.35


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS + MORE_SETTINGS, ids=str)
def test_whole_budget_against_many_simulations(setting):
    assert 0.65 < ratio(*setting, seeds=60) < 1.35


@pytest.mark.parametrize(("v", "d"), [(22, 23), (64, 24)])
def test_gram_moments_of_unit_vectors(v, d):
    rng, found = np.random.default_rng(3), []
    for _ in range(3000):
        z = rng.standard_normal((d, v))
        z /= np.linalg.norm(z, axis=0)
        gram = z.T @ z
        square, pushed = gram @ gram, gram.sum(axis=1)
        score = gram @ (pushed - pushed.mean())
        found.append([np.trace(square) / v, (square * gram).sum() / v, (square * square).sum() / v, score.var()])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(3000)
    for power in (2, 3, 4):
        assert unit_moment(power, v, d) == pytest.approx(mean[power - 2], abs=5 * error[power - 2])
    assert unit_mean_bias(v, d) == pytest.approx(mean[3], rel=0.04)  # the next order in 1/V is left out
