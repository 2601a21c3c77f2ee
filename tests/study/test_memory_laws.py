"""Fitted laws of memory size refuse too little, find exact coefficients, and the figures run end to end."""

import numpy as np
import pytest

from memcap.errors import ConfigurationError, FitError
from memcap.study.memory_laws.depth_tradeoff import reproduce as depth_tradeoff
from memcap.study.memory_laws.law_fit import fit_sqrt_law
from memcap.study.memory_laws.seq2seq_law import reproduce as seq2seq_law
from memcap.study.memory_laws.size import cells_of, measure, random_data
from memcap.study.memory_laws.sqrt_law import reproduce as sqrt_law

N = [100.0, 316.0, 1000.0, 3162.0, 10000.0]


def law(n, b, a=12.0, c=9.0, d=38.0):
    return [float(a * np.sqrt(x * y) + c * np.log2(x) + d) for x, y in zip(n, b, strict=True)]


def test_five_exact_points_give_the_coefficients():
    fit = fit_sqrt_law(N, [1.0] * 5, law(N, [1.0] * 5))
    assert fit.a == pytest.approx(12, rel=1e-9)
    assert fit.c == pytest.approx(9, rel=1e-7)
    assert fit.d == pytest.approx(38, rel=1e-6)
    assert fit.worst < 1e-9
    assert np.isfinite(fit.a_interval).all()
    assert fit.at(400.0, 4.0) == pytest.approx(law([400.0], [4.0])[0], rel=1e-6)


def test_intervals_cover_the_truth():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(1000):
        n = np.geomspace(100, 1e5, 8)
        noisy = np.array(law(n, np.ones(8))) * (1 + 0.01 * rng.normal(size=8))
        low, high = fit_sqrt_law(list(n), [1.0] * 8, list(noisy)).a_interval
        hits += low <= 12 <= high
    assert 930 <= hits <= 970


@pytest.mark.parametrize(
    ("n", "message"),
    [
        (N[:2], "at least 5 points for an interval, got 2"),
        ([100.0] * 5, "at least 4 different N, got 1"),
        ([1.0, *N[1:]], "N must exceed 1"),
    ],
)
def test_too_little_is_refused(n, message):
    with pytest.raises(FitError, match=message):
        fit_sqrt_law(n, [1.0] * len(n), [10.0] * len(n))


def test_cells_are_the_product_of_the_lists():
    entry = {"series": "x", "weights": "exact", "classes": [2, 16], "items": [10, 20, 30], "max_depth": [40, None]}
    cells = list(cells_of([entry]))
    assert len(cells) == 12
    assert all(not isinstance(v, list) for cell in cells for v in cell.values())


def test_random_data_is_distinct_and_repeatable():
    cell = {"items": 1000, "classes": 16}
    first, second = random_data(cell, 3), random_data(cell, 3)
    assert first.content_hash == second.content_hash
    assert len(first) == 1000
    assert random_data(cell, 4).content_hash != first.content_hash


def test_a_depth_that_cannot_be_kept_is_reported():
    found = measure({"series": "depth", "weights": "exact", "classes": 2, "items": 300, "max_depth": 1})
    assert "reason" in found
    assert "parameters" not in found


@pytest.mark.parametrize("figure", [sqrt_law, seq2seq_law, depth_tradeoff])
def test_an_unknown_series_lists_the_known_ones(figure):
    with pytest.raises(ConfigurationError, match="series: "):
        figure("small", only="nothing", workers=1)


def test_a_figure_runs_end_to_end():
    record = sqrt_law("small", workers=1, only="interpolator")
    assert record["checks"][0]["passed"]
    assert record["laws"][0]["points"] == 5
    assert [row["N"] for row in record["sizes"]] == [100, 178, 316, 562, 1000]
    assert all(row["parameters"] <= 3 * row["N"] + 3 for row in record["sizes"])


@pytest.mark.slow
@pytest.mark.parametrize("figure", [sqrt_law, seq2seq_law, depth_tradeoff])
def test_the_small_figures_pass_their_checks(figure):
    record = figure("small", workers=2)
    assert all(check["passed"] for check in record["checks"]), record["checks"]
