"""memcap's own measurements as cells: the study gives what the library gives."""

import dataclasses

import pytest

from memcap.errors import ConfigurationError
from memcap.retrieval.prediction import predict
from memcap.retrieval.simulate import simulate
from memcap.retrieval.task import RetrievalTask
from memcap.study import measurements
from memcap.study.grid import Grid
from memcap.study.study import Study

FIXED = {"vocabulary": 32, "length": 4, "dimension": 16}


def test_simulate_is_simulate():
    study = Study.open(":memory:")
    study.run(
        {"task": "simulate", "axes": {"samples": [50, 200]}, "fixed": {**FIXED, "test_samples": 500}, "seeds": [3]}
    )
    for record in study.records():
        task = RetrievalTask(**FIXED, samples=record.settings["samples"], seed=3)
        run = simulate(task, test_samples=500)
        assert record.outcome.result["recall"] == run.recall
        assert record.outcome.result["margins"] == run.margins
        assert record.outcome.data_hash == run.data_hash


def test_predict_is_predict_and_takes_no_seed():
    study = Study.open(":memory:")
    study.run({"task": "predict", "axes": {"samples": [50, 200]}, "fixed": FIXED})
    got = study.frame()["recall"].tolist()
    assert got == [predict(RetrievalTask(**FIXED, samples=n)).recall for n in (50, 200)]
    with pytest.raises(ConfigurationError, match="takes no seed"):
        Grid(task="predict", axes={"samples": [50]}, fixed=FIXED, seeds=[1])


def test_every_field_of_a_retrieval_task_is_a_setting():
    names = {f.name for f in dataclasses.fields(RetrievalTask)}
    assert names <= set(measurements.setting_names(measurements.find("simulate").settings))
    assert names - {"seed"} <= set(measurements.setting_names(measurements.find("predict").settings))


def test_a_tasks_own_refusals_reach_the_user():
    with pytest.raises(ConfigurationError, match="vocabulary"):
        Grid(task="simulate", axes={"vocabulary": [1, 2]}, fixed={"length": 4, "dimension": 8, "samples": 9}).cells
    with pytest.raises(ConfigurationError, match="orthogonal embeddings need dimension"):
        Grid(task="simulate", axes={"samples": [9]}, fixed={**FIXED, "embeddings": "orthogonal"}).cells


def test_build_gives_sizes_and_full_recall():
    study = Study.open(":memory:")
    axes = {"samples": [64, 256], "weights": ["float64", "exact"]}
    study.run({"task": "build", "axes": axes, "fixed": {"vocabulary": 2**20}}, workers=1)
    frame = study.frame()
    assert frame["error"].tolist() == [""] * 4
    assert frame["recall"].tolist() == [1.0] * 4
    assert frame.groupby("samples")["data_hash"].nunique().tolist() == [1, 1]
    assert (frame["parameters"] > 0).all()


def test_the_checked_in_phase_diagrams_are_grids():
    from memcap.study.phase_diagrams import figure

    for scale in ("small", "full"):
        for name, (across, along) in figure.DIAGRAMS.items():
            grid = Grid(where=name, **figure.grid_keys(scale, name))
            assert set(grid.axes) == {across, along}
            assert grid.cells
    with pytest.raises(ConfigurationError, match="no diagram 'sample-dim'"):
        figure.reproduce("small", only="sample-dim")
    stored = figure.golden()
    assert set(stored) == set(figure.DIAGRAMS)


def test_reproduced_cells_match_the_stored_values():
    """Eight of the checked-in cells (the whole figure is ``memcap reproduce phase-diagrams``)."""
    from memcap.study.phase_diagrams import figure

    keys = figure.grid_keys("small", "vocabulary-dimension")
    study = Study.open(":memory:")
    study.run({**keys, "axes": {"dimension": [18, 27], "vocabulary": [32]}})
    means = study.frame().groupby("dimension")["recall"].mean()
    stored = figure.golden()["vocabulary-dimension"]["mean"]
    for dimension in (18, 27):
        assert means[dimension] == pytest.approx(stored[f"dimension={dimension} vocabulary=32"], abs=1e-9)


@pytest.mark.slow
def test_the_whole_figure_reproduces():
    from memcap.study.phase_diagrams import figure

    record = figure.reproduce("small", workers=2)
    assert all(check["passed"] for check in record["checks"]), record["checks"]
