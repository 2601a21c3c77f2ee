"""What a report reads: columns found, misspelt names refused with the nearest one, nothing guessed about failures."""

import numpy as np
import pandas as pd
import pytest

import memcap.report
from memcap.errors import ConfigurationError, DataError
from memcap.report.cells import choose_axes, choose_outcome, determined, read_cells
from memcap.report.subject import subject


def test_a_study_frame_says_what_is_a_setting(frame):
    cells = read_cells(frame)
    assert cells.settings == ("vocabulary", "dimension", "samples", "embeddings")
    assert cells.results == ("recall", "predicted_recall")
    assert cells.axes == ("samples", "dimension")
    assert cells.fixed == {"vocabulary": 256, "embeddings": "gaussian"}
    assert len(cells.done) == int((frame["state"] == "done").sum())


def test_any_setting_name_of_a_study_is_a_setting():
    columns = {"identity": ["a", "b"], "task": "toy", "batch": [1, 2], "index": [3, 3], "seed": 0, "state": "done"}
    assert read_cells(pd.DataFrame({**columns, "score": [0.1, 0.9]})).settings == ("batch", "index")


def test_a_plain_frame_uses_known_names_or_what_it_is_told():
    plain = pd.DataFrame({"samples": [1, 2], "dimension": [3, 3], "recall": [0.1, 0.2]})
    assert read_cells(plain).settings == ("samples", "dimension")
    odd = plain.rename(columns={"samples": "crumbs", "dimension": "spoons"})
    assert read_cells(odd, settings=["crumbs", "spoons"]).results == ("recall",)
    with pytest.raises(DataError, match="cannot tell settings from results.*columns: crumbs, spoons, recall"):
        read_cells(odd)
    with pytest.raises(ConfigurationError, match="no column 'crumb' .did you mean 'crumbs'"):
        read_cells(odd, settings=["crumb"])


def test_nullable_columns_become_plain_numbers():
    frame = pd.DataFrame(
        {"samples": pd.array([1, None], "Int64"), "state": "done", "recall": pd.array([0.5, None], "Float64")}
    )
    cells = read_cells(frame)
    assert cells.frame["recall"].dtype == np.float64
    assert np.isnan(cells.frame["recall"].iloc[1])


def test_nothing_to_report_is_an_error():
    with pytest.raises(DataError, match="the study has no cells.*memcap study run GRID"):
        read_cells(pd.DataFrame({"samples": []}))
    with pytest.raises(DataError, match="needs a study or a pandas frame with one row per cell, got list"):
        read_cells([1, 2])
    failed = pd.DataFrame({"samples": [1, 2], "state": "failed", "recall": [np.nan, np.nan]})
    with pytest.raises(DataError, match=r"no cell has a numeric result to plot \(2 failed\)"):
        memcap.report.figure(failed)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outcome": "recal"}, "no result 'recal' .did you mean .recall.[?].; results: recall, predicted_recall"),
        ({"x": "dimensions"}, "no setting 'dimensions' .did you mean 'dimension'"),
        ({"x": "samples", "y": "samples"}, "x and y must be two settings, got 'samples' twice"),
        ({"target": float("nan")}, "target must be a number"),
    ],
)
def test_unknown_names_get_the_nearest(frame, options, message):
    with pytest.raises(ConfigurationError, match=message):
        memcap.report.figure(frame, "phase", **options)


def test_samples_stand_upright_and_a_derived_axis_makes_no_panel(frame):
    cells = read_cells(frame)
    assert choose_axes(cells, None, None) == ("dimension", "samples")
    assert choose_axes(cells, "samples", None) == ("samples", "dimension")
    assert choose_outcome(cells, None) == "recall"
    derived = frame.assign(vocabulary=2 * frame["dimension"])
    cells = read_cells(derived)
    assert determined(cells, "vocabulary", ["dimension"])
    assert len(subject(cells).panels) == 1
    free = pd.concat([frame, frame.assign(vocabulary=512)])
    assert [p.words for p in subject(read_cells(free)).panels] == ["V = 256", "V = 512"]


def test_the_boundary_that_a_study_states_is_the_default(frame):
    stated = frame.copy()
    stated.attrs["grids"] = [{"boundary": {"axis": "dimension", "response": "predicted_recall", "target": 0.25}}]
    found = subject(read_cells(stated))
    assert (found.x, found.y, found.outcome, found.target) == ("samples", "dimension", "predicted_recall", 0.25)
