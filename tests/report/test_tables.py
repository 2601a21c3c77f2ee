"""Plot data: plain tables checked against numbers known beforehand; no picture is involved."""

import ast
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from synthetic_study import DIMENSIONS, EXPONENT, SAMPLES

import memcap.report.tables
from memcap.report.cells import Cells, read_cells
from memcap.report.tables.axis import axis
from memcap.report.tables.boundary import clipped, crossing, measured_boundary, predicted_boundary
from memcap.report.tables.curves import agreement_points, curve_points
from memcap.report.tables.exponents import collapse_points, exponent_rows, law_at, law_points
from memcap.report.tables.failures import cell_times, censored_lines, error_groups, state_counts
from memcap.report.tables.phase import difference_cells, phase_cells
from memcap.report.tables.signal import signal_shares
from memcap.report.tables.spread import spread
from memcap.study.fits import Critical, Exponent


def test_tables_do_not_draw():
    for path in Path(memcap.report.tables.__path__[0]).glob("*.py"):
        names = {
            name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for name in (
                [a.name for a in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", "")]
            )
        }
        assert not {n for n in names if n and n.split(".")[0] in ("altair", "vl_convert")}, path.name


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=12, unique=True))
def test_bands_tile_the_axis_and_hold_their_value(values):
    found = axis("n", pd.Series(values))
    assert list(found.values) == sorted(values)
    assert list(found.high[:-1]) == list(found.low[1:])
    for at, low, high in zip(found.at, found.low, found.high, strict=True):
        assert low < at < high
    if found.kind == "log":
        assert found.low[0] > 0
        assert found.high[0] / found.low[0] > 1 + 1e-12


def test_bands_of_a_log_axis_are_half_way_in_the_logarithm():
    found = axis("d", pd.Series([8, 32, 128]))
    assert found.kind == "log"
    assert found.low == pytest.approx((4, 16, 64))
    assert found.high == pytest.approx((16, 64, 256))


def test_names_zero_and_truth_values_have_axes_too():
    assert axis("e", pd.Series(["sphere", "gaussian"])).at == (0.0, 1.0)
    assert axis("noise", pd.Series([0.0, 0.5])).kind == "linear"
    assert axis("b", pd.Series([True, False])).values == (False, True)
    assert axis("w", pd.Series([None, 64], dtype=object)).values == (64, "–")


def test_spread_is_students_interval():
    rows = pd.DataFrame({"d": [1] * 4 + [2], "y": [3.0, 5.0, 4.0, 8.0, 9.0]})
    table = spread(rows, ["d"], "y")
    half = stats.t.ppf(0.975, 3) * np.std([3, 5, 4, 8], ddof=1) / 2
    assert table["value"].tolist() == [5.0, 9.0]
    assert table["value_high"][0] == pytest.approx(5 + half)
    assert math.isnan(table["value_low"][1])
    assert spread(rows.assign(y=np.nan), ["d"], "y").empty


def test_every_row_and_column_of_the_plane_is_a_cell(frame):
    table = phase_cells(read_cells(frame), x="dimension", y="samples", outcome="recall")
    assert len(table) == len(DIMENSIONS) * len(SAMPLES)
    assert table.groupby("y")["x"].apply(list).tolist() == [list(DIMENSIONS)] * len(SAMPLES)
    state = table.set_index(["x", "y"])["state"]
    assert state[12, 64000] == "failed"
    assert state[32, 500] == "partial"
    assert state[96, 64000] == "absent"
    assert (state.drop([(12, 64000), (32, 500), (96, 64000)]) == "done").all()
    values = table.set_index(["x", "y"])["value"]
    assert math.isnan(values[12, 64000])  # never 0
    done = frame[(frame["dimension"] == 48) & (frame["samples"] == 8000)]
    assert values[48, 8000] == pytest.approx(done["recall"].mean())


def test_a_done_cell_without_a_number_is_failed_and_an_unrun_one_waits():
    rows = pd.DataFrame(
        {"samples": [1, 2], "dimension": [3, 3], "state": ["done", "pending"], "recall": [np.nan, np.nan]}
    )
    cells = Cells(rows.assign(cell=["a", "b"]), ("samples", "dimension"), ("recall",))
    assert phase_cells(cells, x="dimension", y="samples", outcome="recall")["state"].tolist() == ["failed", "waiting"]


def test_difference_is_measured_minus_predicted(frame):
    cells = read_cells(frame)
    measured = phase_cells(cells, x="dimension", y="samples", outcome="recall")
    predicted = phase_cells(cells, x="dimension", y="samples", outcome="predicted_recall")
    table = difference_cells(measured, predicted)
    assert table["value"].to_numpy() == pytest.approx((measured["value"] - predicted["value"]).to_numpy(), nan_ok=True)


@pytest.mark.parametrize(
    ("at", "value", "expected"),
    [
        ([1, 4, 16], [0.0, 0.25, 0.75], (8.0, "")),
        ([1, 4], [0.5, 0.9], (1.0, "")),
        ([1, 4], [0.9, 0.95], (1.0, "below")),
        ([1, 4], [0.1, 0.2], (4.0, "above")),
        ([1, 4], [0.95, 0.9], (4.0, "above")),  # falling and still above: it crosses further out
        ([1, 4], [0.2, 0.1], (1.0, "below")),
        ([3], [0.5], (3.0, "")),
    ],
)
def test_crossing(at, value, expected):
    place, censored = crossing(np.array(at, float), np.array(value, float), 0.5, log=True)
    assert (pytest.approx(place), censored) == (expected[0], expected[1])


def test_the_predicted_boundary_follows_the_law(frame):
    dense = [float(n) for n in np.geomspace(100, 1e5, 60)]
    rows = [
        {"samples": n, "dimension": d, "predicted_recall": 1 / (1 + (2e6 * d**EXPONENT / n) ** 2.2)}
        for d in DIMENSIONS
        for n in dense
    ]
    cells = read_cells(pd.DataFrame(rows))
    table = predicted_boundary(cells, x="dimension", y="samples", predicted="predicted_recall", target=0.5)
    assert table["censored"].tolist() == [""] * len(DIMENSIONS)
    assert table["y"].to_numpy() == pytest.approx([2e6 * d**EXPONENT for d in DIMENSIONS], rel=1e-3)
    named = read_cells(frame.assign(samples=frame["samples"].astype(str)))
    assert predicted_boundary(named, x="dimension", y="samples", predicted="predicted_recall", target=0.5).empty


def lines() -> list[Critical]:
    return [
        Critical(64000.0, 64000.0, math.inf, "above", {"dimension": 12, "vocabulary": 256}, "samples", "recall"),
        Critical(1000.0, 900.0, 1200.0, None, {"dimension": 24, "vocabulary": 256}, "samples", "recall"),
        Critical(7.0, 6.0, 8.0, None, {"dimension": 24, "vocabulary": 512}, "samples", "recall"),
        Critical(5.0, 4.0, 6.0, None, {"samples": 24, "vocabulary": 256}, "dimension", "recall"),
    ]


def test_the_measured_boundary_takes_the_lines_of_its_plane_only(frame):
    across = axis("dimension", frame["dimension"])
    table = measured_boundary(lines(), across=across, y="samples", panel={"vocabulary": 256})
    assert table[["x", "y", "censored"]].values.tolist() == [[12, 64000.0, "above"], [24, 1000.0, ""]]
    drawn = clipped(table, axis("samples", frame["samples"]))
    assert np.isfinite(drawn[["y_low", "y_high"]].to_numpy()).all()


def test_curves_keep_their_series_and_predictions(frame):
    table = curve_points(
        read_cells(frame), x="samples", outcome="recall", series="dimension", predicted="predicted_recall"
    )
    assert table["series"].drop_duplicates().tolist() == list(DIMENSIONS)
    assert table.loc[(table["series"] == 32) & (table["x"] == 500), "n"].tolist() == [2]
    row = table[(table["series"] == 48) & (table["x"] == 1000)].iloc[0]
    expected = frame[(frame["dimension"] == 48) & (frame["samples"] == 1000)]["predicted_recall"].iloc[0]
    assert row["predicted"] == pytest.approx(expected)
    single = curve_points(read_cells(frame), x="samples", outcome="recall")
    assert single["series"].unique().tolist() == [""]


def test_agreement_has_one_row_per_setting(frame):
    table = agreement_points(read_cells(frame), outcome="recall", predicted="predicted_recall")
    assert len(table) == len(DIMENSIONS) * len(SAMPLES) - 2
    assert (table["error"] - (table["value"] - table["predicted"])).abs().max() == 0


LAW = Exponent(("dimension",), (EXPONENT,), (-1.6,), (-1.4,), math.log(2e6), 1.0, (0.0,), 8, "known", "samples")


def test_the_law_collapses_curves_that_follow_it(frame):
    exact = frame.assign(
        recall=[
            1 / (1 + (2e6 * d**EXPONENT / n) ** 2.2) for d, n in zip(frame["dimension"], frame["samples"], strict=True)
        ]
    )
    table = collapse_points(read_cells(exact), LAW, along="samples", outcome="recall", series="dimension")
    assert table["value"].to_numpy() == pytest.approx(1 / (1 + table["scaled"].to_numpy() ** -2.2))
    assert law_at(LAW, pd.DataFrame({"dimension": [100.0]})) == pytest.approx([2e3])


def test_exponent_and_law_rows():
    table = exponent_rows({"measured": LAW})
    assert table[["factor", "source", "value", "low", "high"]].values.tolist() == [
        ["dimension", "measured", -1.5, -1.6, -1.4]
    ]
    drawn = law_points(lines()[:2], {"measured": LAW}, x="dimension")
    assert drawn["source"].tolist() == ["measured", "measured", "measured law", "measured law"]
    assert drawn["y"].tolist()[2:] == pytest.approx([2e6 * d**EXPONENT for d in (12, 24)])


def test_states_errors_and_censored_lines(frame):
    cells = read_cells(frame)
    counts = state_counts(cells)
    assert counts[["state", "cells"]].values.tolist() == [["done", 209], ["failed", 4]]
    groups = error_groups(cells)
    assert groups["error"].tolist() == ["MemoryError: needs 5 GiB, limit 4 GiB"]
    assert groups["cells"].tolist() == [4]
    assert "samples = 64,000, dimension = 12" in groups["example"][0]
    said = censored_lines(lines(), ["dimension"])
    assert said.values.tolist() == [["d = 12", "samples ≥ 64,000 (censored)"]]
    silent = read_cells(frame.drop(columns="error"))
    assert error_groups(silent)["error"].tolist() == ["no message"]
    assert len(cell_times(cells, x="samples")) == 209
    assert cell_times(read_cells(frame.drop(columns="seconds")), x="samples").empty


def test_noise_shares_from_cells_and_from_theory():
    rows = pd.DataFrame({"samples": [10, 20], "state": "done", "drive": [2.0, 2.0], "recall": 0.5})
    rows["variances"] = [{"pairs": 3.0, "counts": 1.0}, {"pairs": 1.0, "counts": 1.0}]
    nested = signal_shares(read_cells(rows), x="samples")
    assert nested["share"].tolist() == [0.75, 0.25, 0.5, 0.5]
    assert nested["ratio"].tolist() == [1.0, 1.0, 2.0, 2.0]
    flat = rows.drop(columns="variances").assign(**{"variances.pairs": [3.0, 1.0], "variances.counts": [1.0, 1.0]})
    pd.testing.assert_frame_equal(signal_shares(read_cells(flat), x="samples"), nested)
    task = pd.DataFrame({"vocabulary": 64, "length": 16, "dimension": 24, "samples": [500, 4000], "recall": [0.1, 0.2]})
    theory = signal_shares(read_cells(task), x="samples")
    assert theory.groupby("x")["share"].sum().tolist() == pytest.approx([1, 1])
    prediction = memcap.predict(memcap.RetrievalTask(vocabulary=64, length=16, dimension=24, samples=500))
    assert theory["variance"].max() == pytest.approx(max(prediction.variances.values()))
    assert signal_shares(read_cells(rows.drop(columns="variances")), x="samples").empty
