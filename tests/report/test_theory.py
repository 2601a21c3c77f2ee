"""Predictions beside measurements: joined from prediction cells, computed for retrieval tasks, or a reason."""

import numpy as np
import pandas as pd
import pytest

import memcap
from memcap.report import theory
from memcap.report.cells import read_cells
from memcap.report.tables.failures import error_groups
from memcap.report.theory import join_predictions, with_predictions

TASK = {"vocabulary": 64, "length": 8, "dimension": 16}


def simulated() -> pd.DataFrame:
    rows = [
        {"identity": f"s{n}{seed}", "task": "simulate", **TASK, "samples": n, "steps": 3, "seed": seed, "state": "done"}
        for n in (100, 1000)
        for seed in (0, 1)
    ]
    return pd.DataFrame(rows).assign(recall=[0.1, 0.2, 0.5, 0.6])


def test_the_theory_is_asked_once_per_setting():
    cells, problem = with_predictions(read_cells(simulated()), "recall")
    assert problem == ""
    expected = [memcap.predict(memcap.RetrievalTask(**TASK, samples=n)).recall for n in (100, 100, 1000, 1000)]
    assert cells.frame["predicted_recall"].tolist() == pytest.approx(expected)
    assert "predicted_recall" in cells.results


@pytest.mark.parametrize(
    ("change", "outcome", "reason"),
    [
        ({}, "margin", "the theory predicts recall, clean_recall, attention_success of retrieval tasks only"),
        ({"task": "build"}, "recall", "the cells are not simulated retrieval tasks"),
        ({"steps": 1}, "recall", "the theory predicts three steps only"),
        ({"frequencies": "zipf"}, "recall", "the theory does not cover these cells: "),
    ],
)
def test_a_missing_prediction_has_a_reason(change, outcome, reason):
    frame = simulated()
    for name, value in change.items():
        frame.insert(3, name, value) if name not in frame else frame.__setitem__(name, value)
    cells, problem = with_predictions(read_cells(frame.assign(margin=1.0)), outcome)
    assert reason in problem
    assert f"predicted_{outcome}" not in cells.frame


def test_many_settings_bring_their_own_predictions(monkeypatch):
    monkeypatch.setattr(theory, "MOST_PREDICTED", 1)
    _, problem = with_predictions(read_cells(simulated()), "recall")
    assert "2 settings are more than the 1 that a report predicts itself: add cells of the task 'predict'" in problem


def test_prediction_cells_are_joined_by_their_settings_and_their_failures_kept():
    predicted = pd.DataFrame(
        [
            {
                "identity": "p1",
                "task": "predict",
                **TASK,
                "samples": 100,
                "state": "done",
                "recall": 0.15,
                "drive": 2.0,
            },
            {
                "identity": "p2",
                "task": "predict",
                **TASK,
                "samples": 1000,
                "state": "failed",
                "error": "no theory here",
            },
        ]
    )
    both = pd.concat([simulated(), predicted], ignore_index=True)
    cells = join_predictions(read_cells(both))
    assert len(cells.frame) == 4
    assert cells.settings == ("vocabulary", "length", "dimension", "samples", "steps")
    np.testing.assert_allclose(cells.frame["predicted_recall"], [0.15, 0.15, np.nan, np.nan])
    np.testing.assert_allclose(cells.frame["drive"], [2.0, 2.0, np.nan, np.nan])
    assert error_groups(cells)["error"].tolist() == ["no theory here"]
    alone = read_cells(predicted)
    assert join_predictions(alone) is alone
