"""A real Dask cluster of two worker processes on this machine; the same cells, the same results, the same faults."""

import json
import os
import warnings

import pytest

from memcap.cli.app import main
from memcap.errors import ConfigurationError, RunError
from memcap.study.study import Study

distributed = pytest.importorskip("distributed")
HERE = os.path.dirname(__file__)


@pytest.fixture(scope="module")
def cluster():
    import dask

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = HERE  # so that the workers can import the toys
    settings = {"distributed.scheduler.allowed-failures": 1, "distributed.worker.daemon": False}
    with warnings.catch_warnings(), dask.config.set(settings):
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster:
            yield cluster
    os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


pytestmark = pytest.mark.filterwarnings("ignore")  # Dask's own, about ports and event loops


def table(study):
    gone = ["seconds", "cpu_seconds", "peak_memory", "started", "finished", "host", "attempts"]
    return repr(study.frame().drop(columns=gone).sort_values("identity").to_dict("records"))


def test_a_cluster_gives_the_same_table_as_this_process(cluster, tmp_path):
    grid = {"task": "study_toys:toy", "axes": {"x": {"from": 1, "to": 20, "step": 1}}, "seeds": [0, 1]}
    with Study.open(tmp_path / "study.db") as study:
        summary = study.run(grid, scheduler=cluster.scheduler_address)
        assert summary.done == 40
        assert study.run(grid, scheduler=cluster.scheduler_address).already_done == 40
        alone = Study.open(":memory:")
        alone.run(grid)
        assert table(study) == table(alone)


def test_the_command_line_names_a_scheduler(cluster, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.yaml").write_text("task: study_toys:toy\naxes: {x: [1, 2, 3]}\n")
    words = ["study", "run", "grid.yaml", "--store", "a.db", "--scheduler", cluster.scheduler_address]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] == 3
    assert main([*words, "--workers", "2"]) == 2
    assert "give one of workers, scheduler and executor" in capsys.readouterr().err


def test_a_users_client_stays_open(cluster):
    with distributed.Client(cluster) as client:
        study = Study.open(":memory:")
        assert study.run({"task": "study_toys:plain", "axes": {"x": [1, 2]}}, scheduler=client).done == 2
        assert client.status == "running"


def test_only_the_cell_that_ends_its_workers_fails(cluster, tmp_path):
    grid = {
        "task": "study_toys:some_bad",
        "axes": {"x": [1, 2, 3, 4, 6, 7, 8, 9]},
        "fixed": {"mode": "exit", "sleep": 0.05},
    }
    with Study.open(tmp_path / "study.db") as study:
        summary = study.run(grid, scheduler=cluster.scheduler_address)
        assert (summary.done, summary.failed, summary.lost) == (7, 1, 0)
        row = study.frame(states=["failed"]).iloc[0]
        assert (row["x"], row["error_type"]) == (3.0, "WorkerDied")
        assert "workers died with this cell" in row["error"]


def test_a_scheduler_that_does_not_answer_is_told(monkeypatch):
    from memcap.study import dask_cluster

    monkeypatch.setattr(dask_cluster, "_PATIENCE", 0.3)
    with pytest.raises(RunError, match="no Dask scheduler answers at 'tcp://127.0.0.1:1'"):
        Study.open(":memory:").run({"task": "study_toys:plain", "axes": {"x": [1]}}, scheduler="tcp://127.0.0.1:1")
    for address in ("localhost", "tcp://host", "host:", ":8786", "tcp://a b:1"):
        with pytest.raises(ConfigurationError, match="scheduler is an address with a port, such as tcp://host:8786"):
            Study.open(":memory:").run({"task": "study_toys:plain", "axes": {"x": [1]}}, scheduler=address)
    with pytest.raises(ConfigurationError, match="scheduler is an address"):
        Study.open(":memory:").run({"task": "study_toys:plain", "axes": {"x": [1]}}, scheduler=object())
