"""The MLP's terms of the budget against Monte Carlo, one at a time: sources are switched off in the data."""

import numpy as np
import pytest

from memcap.retrieval.activation import activation
from memcap.retrieval.attention_theory import run_totals
from memcap.retrieval.budget import attention_budget
from memcap.retrieval.mlp_budget import with_mlp

NOISE = ("pairs", "counts", "mean bias", "echo", "norm echo", "MLP pairs", "MLP mean")  # what is left without signal


def scores(v, length, n, d, m, phi, seed, *, balanced=False, signal=True, centred=False, own_only=False):
    """Token scores z_tᵀ Z α, the drive β and |u|²/d of one run, from the definition; position 0 is informative."""
    rng = np.random.default_rng(seed)
    z, labels_of = (rng.standard_normal((v, d)) / np.sqrt(d) for _ in range(2))
    if centred:
        z = z - z.mean(axis=0)
    labels = np.arange(n) % v if balanced else rng.integers(v, size=n)
    tokens = rng.integers(v, size=(n, length))
    if signal:
        tokens[:, 0] = labels
    hidden = z[tokens].mean(axis=1)
    c = (labels_of - labels_of.mean(axis=0))[labels]
    if m:
        w = rng.standard_normal((m, d))
        pre = hidden @ w.T
        features, slope = phi.value(pre) / np.sqrt(m), phi.slope(pre)
    else:
        features = hidden
    back = (c * c).sum(axis=1, keepdims=True) * features / n if own_only else c @ (c.T @ features / n)
    if m:
        back = (back * slope) @ w / np.sqrt(m)
    gain = np.take_along_axis(back @ z.T, tokens, axis=1)
    gain = gain - gain.mean(axis=1, keepdims=True)
    alpha = np.bincount(tokens.ravel(), weights=gain.ravel(), minlength=v) / (n * length)
    u = z.T @ alpha
    return z @ u, gain[:, 0].sum() / (n * length), u @ u / d


def measured(v, length, n, d, m, name, seeds, **switches):
    runs = [scores(v, length, n, d, m, activation(name), seed, **switches) for seed in range(seeds)]
    return float(np.mean([run[0].var() for run in runs]))


def budget(v, length, n, d, m, name, signal=True):
    noisy = 0.0 if signal else 1.0
    plain = attention_budget(vocabulary=v, length=length, samples=n, dimension=d, label_noise=noisy)
    return with_mlp(
        plain, activation=name, width=m, vocabulary=v, length=length, samples=n, dimension=d, gaussian_ratio=v / d
    )


def noise_at(b, x):
    """Variance without signal in a run whose label energy is 1 + x."""
    return sum(b.variances[k] for k in NOISE) + b.tilt * x + b.bend * x * x


@pytest.mark.parametrize(("v", "length", "n"), [(64, 64, 2000), (32, 64, 1500), (128, 32, 1000)])
def test_the_drive_of_sequences_that_share_a_mean(v, length, n):
    betas = [scores(v, length, n, 24, 96, activation("relu"), seed)[1] for seed in range(30)]
    found, error = np.mean(betas), np.std(betas) / np.sqrt(30)
    b = budget(v, length, n, 24, 96, "relu")
    assert abs(found - b.drive) < 4 * error
    if length >= v:  # uncorrelated sequences, as if the mean embedding were zero, are far off
        assert found > 1.15 * attention_budget(vocabulary=v, length=length, samples=n, dimension=24).drive / 4


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu"])
def test_mean_bias_and_mlp_mean_alone(name):
    for v, length, n, d, m in ((64, 64, 2000, 24, 96), (128, 64, 1500, 24, 48)):
        b = budget(v, length, n, d, m, name, signal=False)
        found = measured(v, length, n, d, m, name, 40, signal=False, own_only=True)
        found -= b.variances["echo"] + b.variances["norm echo"]
        assert b.run_variance > 5 * b.variances["norm echo"]
        assert 0.65 < found / b.run_variance < 1.4


def test_mlp_mean_alone():
    for v, length, n, d, m in ((64, 16, 1000, 24, 24), (128, 16, 1000, 32, 16)):
        b = budget(v, length, n, d, m, "relu", signal=False)
        found = measured(v, length, n, d, m, "relu", 40, signal=False, own_only=True, centred=True)
        found -= b.variances["echo"] + b.variances["norm echo"]
        assert b.variances["MLP mean"] > 3 * b.variances["mean bias"]
        assert 0.65 < found / b.variances["MLP mean"] < 1.35


@pytest.mark.parametrize(("m", "name"), [(48, "relu"), (1000, "relu"), (48, "tanh")])
def test_pairs_and_what_balanced_labels_leave_of_the_means(m, name):
    for v, length, n, d in ((64, 32, 640, 24), (128, 16, 640, 24)):
        b = budget(v, length, n, d, m, name, signal=False)
        found = measured(v, length, n, d, m, name, 40, signal=False, balanced=True)
        assert 0.65 < found / noise_at(b, -1.0) < 1.5


def test_counts_alone():
    v, length, n, d, m = 256, 32, 1500, 8, 600
    b = budget(v, length, n, d, m, "relu", signal=False)
    found = measured(v, length, n, d, m, "relu", 60, signal=False, centred=True)
    rest = sum(b.variances[k] for k in ("pairs", "echo", "norm echo", "MLP pairs", "MLP mean"))
    assert b.variances["counts"] > 2 * rest
    assert 0.65 < (found - rest) / b.variances["counts"] < 1.35


@pytest.mark.parametrize("setting", [(64, 32, 500, 24, 96, "relu"), (128, 64, 2800, 24, 96, "relu")], ids=str)
def test_whole_budget(setting):
    b = budget(*setting)
    assert 0.65 < measured(*setting, 60) / b.total_variance < 1.5


def test_what_facts_have_in_common_pushes_along_the_mean():
    for v, length, n, d, m in ((32, 64, 6000, 24, 96), (64, 64, 5400, 12, 96)):
        with_signal, without = (budget(v, length, n, d, m, "relu", signal=signal) for signal in (True, False))
        balanced = [measured(v, length, n, d, m, "relu", 40, balanced=True, signal=signal) for signal in (True, False)]
        rest = sum(with_signal.variances[k] for k in ("signal x noise", "interference"))
        wanted = noise_at(with_signal, -1.0) - noise_at(without, -1.0)
        assert wanted > rest
        assert 0.6 < (balanced[0] - balanced[1] - rest) / wanted < 1.9


@pytest.mark.parametrize(("m", "name"), [(0, "relu"), (96, "relu")])
def test_spread_between_runs_and_what_a_trigger_sees(m, name):
    v, length, n, d = 64, 32, 400, 24
    b = budget(v, length, n, d, m, name) if m else attention_budget(vocabulary=v, length=length, samples=n, dimension=d)
    runs = [scores(v, length, n, d, m, activation(name), seed) for seed in range(150)]
    variances = np.array([run[0].var() for run in runs])
    total, weight = run_totals(b)
    assert weight @ total == pytest.approx(b.total_variance, rel=1e-6)
    predicted = np.sqrt(weight @ np.log(total) ** 2 - (weight @ np.log(total)) ** 2)
    assert np.log(variances).std() == pytest.approx(predicted, rel=0.25)
    assert np.mean([run[2] for run in runs]) / variances.mean() == pytest.approx(b.trigger_share, rel=0.15)
    betas = np.array([run[1] for run in runs])
    assert betas.std() / b.drive == pytest.approx(np.sqrt(b.drive_variance) / b.drive, rel=0.35)


def test_a_linear_activation_of_many_neurons_is_attention_alone():
    plain = attention_budget(vocabulary=64, length=16, samples=500, dimension=24)
    wide = budget(64, 16, 500, 24, 10**9, "h1")
    for source, variance in plain.variances.items():
        assert wide.variances[source] == pytest.approx(variance, rel=1e-6)
    assert wide.variances["MLP mean"] < 1e-6 * wide.variances["mean bias"]
    assert (wide.drive, wide.tilt, wide.bend) == pytest.approx((plain.drive, plain.tilt, plain.bend), rel=1e-6)
    assert wide.drive_variance == pytest.approx(plain.drive_variance, rel=1e-6)
    assert wide.form_spread == pytest.approx(plain.form_spread, rel=1e-6)
