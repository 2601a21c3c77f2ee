"""Fits: exact where the data are exact, honest where they are not, and refused where they cannot be."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from memcap.errors import ConfigurationError, FitError
from memcap.random import stream
from memcap.study.critical_fit import critical
from memcap.study.law import read_law
from memcap.study.law_comparison import compare
from memcap.study.power_law import fit_power_law
from memcap.study.tobit import Tobit

D = [8, 16, 32, 64, 128]


def plane(rng, noise, a=-1.5, b=2.0):
    d, length = map(np.ravel, np.meshgrid(np.array(D, float), [4.0, 8.0, 16.0, 32.0]))
    return {"n": 5 * d**a * length**b * np.exp(noise * rng.normal(size=d.size)), "d": d, "length": length}


@given(st.floats(-4, 4), st.floats(1e-6, 1e6))
def test_five_exact_points_give_the_exponent_to_1e_12(exponent, constant):
    fit = fit_power_law({"n": [constant * d**exponent for d in D], "d": D}, "n ~ d^a")
    assert abs(fit.values[0] - exponent) < 1e-12
    assert abs(fit.intercept - math.log(constant)) < 1e-11
    assert fit.lows[0] <= fit.values[0] <= fit.highs[0]
    assert 0 <= fit.highs[0] - fit.lows[0] < 1e-10
    assert len(fit.residuals) == fit.n_points == 5


@pytest.mark.parametrize(
    ("points", "law", "options", "reason"),
    [
        ({"n": [1, 2], "d": [1, 2]}, "n ~ d^a", {}, "2 uncensored points cannot give 1 exponents with intervals"),
        ({"n": [1, 2, 3], "d": [4, 4, 4]}, "n ~ d^a", {}, "every point has d = 4; its exponent cannot be seen"),
        (
            {"n": [1, 2, 3, 4], "d": [1, 2, 3, 4], "m": [3, 6, 9, 12]},
            "n ~ d^a * m^b",
            {},
            "d and m vary only together",
        ),
        ({"n": [1, 2, 3], "d": [1, 2, 3]}, "n ~ d^a", {"censored": ["above"] * 3}, "all 3 points are censored"),
        ({"n": [1, 2, math.nan], "d": [1, 2, 3]}, "n ~ d^a", {}, "n = nan at point 2; a power law needs positive"),
        ({"n": [1, 0, 2], "d": [1, 2, 3]}, "n ~ d^a", {}, "n = 0.0 at point 1"),
        ({"n": ["x", "y", "z"], "d": [1, 2, 3]}, "n ~ d^a", {}, "'n' is not a column of numbers"),
        ({"n": [1, 2, 4], "d": [1, 2, 4]}, "n ~ d^a", {"spread": [1, 0, 1]}, "every spread must be positive"),
        ({"n": [1, 2, 4, 9], "d": [1, 2, 4, 9]}, "n ~ d^a", {"method": "bootstrap"}, "4 points are too few"),
        (
            {"n": [1, 2, 4, 8, 4], "d": [1, 2, 4, 8, 2]},
            "n ~ d^a",
            {"censored": [None] * 4 + ["above"]},
            "lie exactly on a law that 1 censored points contradict",
        ),
    ],
)
def test_what_cannot_be_supported_is_refused_with_the_reason(points, law, options, reason):
    with pytest.raises(FitError, match=reason):
        fit_power_law(points, law, **options)


@pytest.mark.parametrize(
    ("law", "reason"),
    [
        ("n = d^a", "is no law; write it as"),
        ("n ~ d^a + 1", "is no factor"),
        ("n ~ d^a * d^b", "names 'd' twice"),
        ("n ~ d^a * m^a", "uses the exponent 'a' twice"),
        ("n ~ n^a", "names 'n' twice"),
        ("n ~ dd^a", "no column 'dd'.*did you mean 'd'"),
    ],
)
def test_a_wrong_law_is_told(law, reason):
    with pytest.raises(ConfigurationError, match=reason):
        fit_power_law({"n": [1, 2, 3], "d": [1, 2, 3], "m": [1, 2, 3]}, law)


def test_laws_are_read_in_every_notation():
    law = read_law("samples ~ dimension^a · length**2 * vocabulary^(1/2) * width")
    assert (law.free, law.labels) == (("dimension",), ("a",))
    assert law.fixed == (("length", 2.0), ("vocabulary", 0.5), ("width", 1.0))
    assert read_law("samples ~ 1").free == ()


def test_fixed_exponents_are_kept_and_the_rest_is_fitted():
    fit = fit_power_law(plane(stream(1, "t"), 0.0), "n ~ d^a * length^2")
    assert fit.names == ("d",)
    assert fit.values[0] == pytest.approx(-1.5, abs=1e-12)
    assert fit.r_squared == pytest.approx(1.0)


def test_spreads_weigh_and_only_their_ratios_matter():
    points = {"n": [1.0, 2.0, 4.0, 80.0], "d": [1, 2, 4, 8]}
    light = fit_power_law(points, "n ~ d^a", spread=[1, 1, 1, 1e4])
    assert light.values[0] == pytest.approx(1.0, abs=1e-4)
    assert light == fit_power_law(points, "n ~ d^a", spread=[7, 7, 7, 7e4]) or light.values[0] == pytest.approx(
        fit_power_law(points, "n ~ d^a", spread=[7, 7, 7, 7e4]).values[0]
    )


def test_intervals_cover_over_a_thousand_sweeps():
    """95 % intervals of both exponents contain the truth in 93 to 97 % of 1,000 synthetic sweeps."""
    hits = np.zeros(2)
    for i in range(1000):
        fit = fit_power_law(plane(stream(0, "coverage", i), 0.2), "n ~ d^a * length^b")
        hits += [low <= true <= high for low, true, high in zip(fit.lows, (-1.5, 2.0), fit.highs, strict=True)]
    assert all(930 <= h <= 970 for h in hits), hits


def censored_sweep(i):
    points = plane(stream(0, "censored coverage", i), 0.6)
    top = 5.0  # about half of the plane lies above
    marks = ["above" if n > top else None for n in points["n"]]
    return {**points, "n": np.minimum(points["n"], top)}, marks


@pytest.mark.slow
def test_intervals_with_censored_points_cover_too():
    hits = np.zeros(2)
    for i in range(1000):
        points, marks = censored_sweep(i)
        fit = fit_power_law(points, "n ~ d^a * length^b", censored=marks)
        hits += [low <= true <= high for low, true, high in zip(fit.lows, (-1.5, 2.0), fit.highs, strict=True)]
    assert all(930 <= h <= 970 for h in hits), hits


def test_censored_points_are_used_and_dropping_them_would_be_biased():
    used, dropped = [], []
    for i in range(40):
        points, marks = censored_sweep(i)
        used.append(fit_power_law(points, "n ~ d^a * length^b", censored=marks).values[1])
        keep = [m is None for m in marks]
        dropped.append(fit_power_law({k: v[keep] for k, v in points.items()}, "n ~ d^a * length^b").values[1])
    assert abs(np.mean(used) - 2.0) < 0.13  # three standard errors; dropping them errs by 0.2
    assert np.mean(dropped) < 1.87


def test_without_censored_points_the_profile_is_students_interval():
    points = plane(stream(3, "t"), 0.3)
    fit = fit_power_law(points, "n ~ d^a * length^b")
    design = np.column_stack([np.ones(20), np.log(points["d"]), np.log(points["length"])])
    tobit = Tobit(design, np.log(points["n"]), np.ones(20), np.zeros(20, dtype=int))
    for j in (1, 2):
        low, high = tobit.interval(j, stats.f.ppf(0.95, 1, 17), 17)
        assert (low, high) == pytest.approx((fit.lows[j - 1], fit.highs[j - 1]), rel=1e-5)


def test_the_bootstrap_agrees_roughly_and_is_repeatable():
    points = plane(stream(4, "t"), 0.2)
    profile = fit_power_law(points, "n ~ d^a * length^b")
    boot = fit_power_law(points, "n ~ d^a * length^b", method="bootstrap", seed=1)
    assert boot == fit_power_law(points, "n ~ d^a * length^b", method="bootstrap", seed=1)
    assert boot.values == profile.values
    for low, high, boot_low, boot_high in zip(profile.lows, profile.highs, boot.lows, boot.highs, strict=True):
        assert 0.5 < (boot_high - boot_low) / (high - low) < 1.5


def test_the_true_law_wins_a_comparison():
    scores = compare(plane(stream(5, "t"), 0.2), ["n ~ d^a", "n ~ d^a * length^b", "n ~ d^-1 * length^b"])
    assert scores[0].law == "n ~ d^a * length^b"
    assert scores[0].weight > 0.99
    assert sum(s.weight for s in scores) == pytest.approx(1.0)
    assert scores[0].parameters == 4
    with pytest.raises(FitError, match="too few to compare"):
        compare({"n": [1, 2, 5, 7], "d": [1, 2, 3, 4]}, ["n ~ d^a", "n ~ 1"])
    with pytest.raises(ConfigurationError, match="at least two laws for one response"):
        compare({"n": [1, 2, 5, 7], "d": [1, 2, 3, 4]}, ["n ~ d^a"])


# --- where a line crosses a target


@given(st.floats(20, 200), st.floats(0.5, 6), st.booleans())
def test_an_exact_logistic_line_crosses_where_it_does(center, slope, rising):
    x = 10.0 * 2.0 ** np.arange(6)
    y = 1 / (1 + np.exp(-(slope if rising else -slope) * np.log(x / center)))
    found = critical(x, y)
    assert found.value == pytest.approx(center, rel=1e-6)
    assert found.low <= center * (1 + 1e-6)
    assert found.high >= center * (1 - 1e-6)
    assert found.censored is None


@pytest.mark.parametrize(("sweeps", "slack"), [(60, 0.085), pytest.param(1000, 0.02, marks=pytest.mark.slow)])
@pytest.mark.parametrize("trials", [True, False])
def test_intervals_of_critical_values_cover(trials, sweeps, slack):
    """93 to 97 % of a thousand sweeps; of a few, within three standard errors."""
    x = np.repeat([8.0, 16, 32, 64, 128, 256], 3)
    p = 1 / (1 + np.exp(-2 * np.log(x / 40)))
    hits = 0
    for i in range(sweeps):
        y = stream(0, "critical coverage", i).binomial(100, p) / 100
        found = critical(x, y, trials=np.full(len(x), 100.0) if trials else None)
        hits += found.low <= 40 <= found.high
    assert abs(hits - 0.95 * sweeps) <= slack * sweeps, hits


def test_censored_lines_are_bounds():
    above = critical([10, 20, 40], [0.1, 0.2, 0.3], axis="samples")
    assert (above.censored, above.value, above.low, above.high) == ("above", 40.0, 40.0, math.inf)
    assert above.describe() == "samples >= 40 (censored)"
    below = critical([10, 20, 40], [0.6, 0.7, 0.9], axis="samples")
    assert (below.censored, below.value, below.low, below.high) == ("below", 10.0, 0.0, 10.0)
    assert below.describe() == "samples < 10 (censored)"
    falling = critical([10, 20, 40], [0.9, 0.8, 0.7], rising=False)
    assert falling.censored == "above"


def test_a_step_is_known_only_to_its_bracket():
    for y in ([0, 0, 1, 1], [0, 0.2, 1, 1], [0, 0, 0.9, 1]):
        found = critical([1, 2, 4, 8], y)
        assert (found.low, found.high) == (2.0, 4.0)
        assert 2 <= found.value <= 4
    two = critical([1, 8], [0.2, 0.7])
    assert (two.low, two.high) == (1.0, 8.0)


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "reason"),
    [
        ([], [], {}, FitError, "no finished cells on this line"),
        ([10, 10], [0.2, 0.7], {"settings": {"d": 4}}, FitError, "critical x d=4: y stays|one value of x"),
        ([10, 20], [0.2, math.nan], {}, FitError, "a NaN is no measurement"),
        ([10, 20], [0.2, 1.5], {}, FitError, "1.5 is no fraction; use scale='linear'"),
        ([10, 20], [0.2, 0.2], {}, FitError, "shows no direction; say rising=True"),
        ([10, 20], [0.2, 0.7], {"target": 1.0}, ConfigurationError, "cannot be crossed"),
        ([10, 20], [0.2, 0.7], {"scale": "cubic"}, ConfigurationError, "'logit' or 'linear'"),
        ([10, 20], [0.2, 0.7], {"confidence": 95.0}, ConfigurationError, "between 0 and 1"),
        ([10, 20], [0.2], {}, ConfigurationError, "equal lengths"),
    ],
)
def test_lines_that_cannot_be_used_are_refused(x, y, options, error, reason):
    with pytest.raises(error, match=reason):
        critical(x, y, **options)


def test_a_linear_response_of_any_size_has_a_crossing():
    x = np.array([1.0, 2, 4, 8, 16])
    found = critical(x, 3 + 2 * np.log(x), target=5.0, scale="linear")
    assert found.value == pytest.approx(math.e)


def test_seeds_that_err_together_widen_the_interval_to_what_they_know():
    """Each seed shifts its whole line; intervals that ignore this would cover far too rarely."""
    x = np.array([16.0, 32, 64])
    hits = ignoring = 0
    for i in range(80):
        rng = stream(0, "shared shifts", i)
        shift = 0.4 * rng.normal(size=6)
        y = 1 / (1 + np.exp(-2 * (np.log(x[:, None] / 32) + shift[None, :]) + 0.02 * rng.normal(size=(3, 6))))
        seeds = np.tile(np.arange(6), 3)
        aware = critical(np.repeat(x, 6), y.ravel(), groups=seeds)
        naive = critical(np.repeat(x, 6), y.ravel())
        hits += aware.low <= 32 <= aware.high
        ignoring += naive.low <= 32 <= naive.high
    assert hits >= 0.87 * 80, hits  # 95 % less three standard errors
    assert ignoring < hits - 10
