"""``memcap study`` from the command line: exit codes, JSON, messages, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memcap.cli.app import main

TOYS = str(Path(__file__).parents[1] / "study")

GRID = """
question: Where does the toy cross one half?
task: study_toys:toy
axes:
  x: {from: 1, to: 64, per_octave: 1}
  y: [2, 4, 8, 16, 32]
"""


@pytest.fixture(autouse=True)
def toys(monkeypatch):
    monkeypatch.syspath_prepend(TOYS)


@pytest.fixture
def grid(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.yaml").write_text(GRID)
    return "grid.yaml"


def run(capsys, *arguments):
    code = main(["study", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def run_json(capsys, *arguments):
    code, out, _ = run(capsys, *arguments, "--json")
    return code, json.loads(out, parse_constant=pytest.fail)


def test_the_whole_way(grid, capsys, tmp_path):
    code, record = run_json(capsys, "check", grid, "--workers", "2")
    assert (code, record["cells"], record["obstacles"]) == (0, 35, [])
    assert 0 < record["seconds"] < 60
    assert len(record["probes"]) == 3
    assert 0 < record["start_up"] < record["seconds"]
    code, out, _ = run(capsys, "check", grid)
    assert code == 0
    assert " s with 1 worker, " in out
    assert "for imports and compilation" in out
    code, record = run_json(capsys, "run", grid, "--store", "phase.db")
    assert (code, record["done"], record["pending"]) == (0, 35, 0)
    code, out, _ = run(capsys, "status", "phase.db")
    assert code == 0
    assert "35 done" in out
    assert "question: Where does the toy cross one half?" in out
    code, record = run_json(capsys, "resume", "phase.db")
    assert (code, record["already_done"], record["done"]) == (0, 35, 0)
    code, record = run_json(capsys, "export", "phase.db", "-o", "t.csv", "--where", "recall > 0.5", "--state", "done")
    assert (code, record["rows"]) == (0, len((tmp_path / "t.csv").read_text().splitlines()) - 1)
    code, record = run_json(capsys, "fit", "phase.db", "--critical", "x", "--law", "x ~ y^a", "--law", "x ~ 1")
    assert code == 0
    assert [round(line["value"], 3) for line in record["critical"]] == [2, 4, 8, 16, 32]
    assert record["exponents"][0]["values"][0] == pytest.approx(1.0, abs=1e-6)
    assert record["comparison"][0]["law"] == "x ~ y^a"
    code, out, _ = run(capsys, "fit", "phase.db", "--critical", "x", "--law", "x ~ y^a")
    assert "x ~ y^1.000" in out
    assert "x = 4 [" in out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["rn"], 2, "no subcommand 'rn' (did you mean 'run'?)"),
        (["run", "grid.yaml"], 2, "Missing option '--store'"),
        (["run", "absent.yaml", "--store", "a.db"], 2, "cannot read absent.yaml"),
        (["run", "grid.yaml", "--store", "grid.yaml"], 2, "is not a study store"),
        (["run", "grid.yaml", "--store", "a.db", "--workers", "-1"], 2, "workers is 0"),
        (["run", "grid.yaml", "--store", "a.db", "--wrokers", "1"], 2, "--wrokers"),
        (["status", "absent.db"], 2, "there is no study at absent.db"),
        (["resume", "absent.db"], 2, "there is no study at absent.db"),
        (["fit", "absent.db"], 2, "nothing to fit: give --critical AXIS, --law LAW or both"),
        (["check", "grid.yaml", "--memory-limit", "lots"], 2, "a size is a number of bytes"),
    ],
)
def test_wrong_calls(grid, capsys, arguments, code, message):
    got, _, err = run(capsys, *arguments)
    assert got == code
    assert message in err
    assert "Traceback" not in err
    got, record = run_json(capsys, *arguments)
    assert record["exit_code"] == code


def test_a_misspelt_key_is_told_before_anything_is_written(grid, capsys, tmp_path):
    (tmp_path / "bad.yaml").write_text(GRID.replace("question", "qestion"))
    code, _, err = run(capsys, "run", "bad.yaml", "--store", "a.db")
    assert code == 2
    assert "bad.yaml: no key 'qestion' (did you mean 'question'?)" in err
    (tmp_path / "bad.yaml").write_text(GRID + "fixed: {learning_rte: 1}\n")
    code, _, err = run(capsys, "run", "bad.yaml", "--store", "a.db")
    assert code == 2
    assert "no setting 'learning_rte'" in err
    assert not (tmp_path / "a.db").exists()


def test_failures_are_shown_live_and_make_the_exit_code_1(grid, capsys, tmp_path):
    (tmp_path / "bad.yaml").write_text("task: study_toys:some_bad\naxes: {x: [1, 3]}\nfixed: {mode: raise}\n")
    code, out, err = run(capsys, "run", "bad.yaml", "--store", "a.db")
    assert code == 1
    assert "failed: some-bad" in err
    assert "x=3.0" in err
    assert "ValueError: the toy was told to fail" in err
    assert "1 done" in out
    assert "1 failed" in out
    code, out, _ = run(capsys, "status", "a.db")
    assert "ValueError: the toy was told to fail" in out
    code, out, _ = run(capsys, "resume", "a.db")
    assert code == 0
    assert "1 failed in earlier runs and were left: --retry-failed computes them again" in out
    code, out, _ = run(capsys, "resume", "a.db", "--retry-failed", "--fail-fast")
    assert code == 1
    assert "1 failed" in out
    assert "earlier" not in out
    code, _, err = run(capsys, "fit", "a.db", "--critical", "x", "--task", "some-bda")
    assert code == 2
    assert "no task 'some-bda' in this study (did you mean 'some-bad'?); tasks: some-bad" in err
    code, _, err = run(capsys, "fit", "a.db", "--law", "x ~ y^a")
    assert code == 1
    assert "memcap: " in err


def test_check_refuses_what_cannot_fit(grid, capsys, tmp_path):
    (tmp_path / "hog.yaml").write_text("task: study_toys:toy\naxes: {x: [1, 2]}\nfixed: {mode: hog}\n")
    code, _, err = run(capsys, "check", "hog.yaml", "--memory-limit", "120 MiB")
    assert code == 1
    assert "cannot run: the cell" in err
    assert "does not fit" in err
    (tmp_path / "slow.yaml").write_text(
        "task: study_toys:toy\naxes: {x: {from: 1, to: 900, step: 1}}\nfixed: {sleep: 0.2}\n"
    )
    code, _, err = run(capsys, "check", "slow.yaml", "--time-limit", "20")
    assert code == 1
    assert "do not fit a time limit of 20 s" in err
    code, _, err = run(capsys, "check", "slow.yaml", "--patience", "0.05")
    assert code == 1
    assert "takes more than 0.05 s (--patience)" in err
    (tmp_path / "broken.yaml").write_text("task: study_toys:toy\naxes: {x: [1, 2]}\nfixed: {mode: raise}\n")
    code, _, err = run(capsys, "check", "broken.yaml")
    assert code == 1
    assert "the probe" in err
    assert "the toy was told to fail" in err


def test_ctrl_c_loses_nothing(grid, capsys, tmp_path):
    (tmp_path / "slow.yaml").write_text(
        "task: study_toys:toy\naxes: {x: {from: 1, to: 40, step: 1}}\nfixed: {sleep: 0.1}\n"
    )
    environment = {**os.environ, "PYTHONPATH": TOYS}
    starter = "import sys; from memcap.cli.app import main; sys.exit(main(sys.argv[1:]))"
    words = ["study", "run", "slow.yaml", "--store", "a.db", "--workers", "2"]
    command = [sys.executable, "-c", starter, *words]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if (tmp_path / "a.db").exists() and run_json(capsys, "status", "a.db")[1].get("done", 0) >= 5:
            break
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    _, record = run_json(capsys, "status", "a.db")
    assert record["running"] == record["lost"] == record["failed"] == 0
    assert 5 <= record["done"] < 40
    code, again = run_json(capsys, "resume", "a.db", "--workers", "2")
    assert (code, again["done"], again["pending"]) == (0, 40 - record["done"], 0)


def test_limits_of_time_and_memory(grid, capsys, tmp_path):
    (tmp_path / "slow.yaml").write_text("task: study_toys:toy\naxes: {x: [1, 2, 3, 4, 5]}\nfixed: {sleep: 0.2}\n")
    code, record = run_json(capsys, "run", "slow.yaml", "--store", "a.db", "--time-limit", "0.3")
    assert (code, record["stopped"]) == (3, "time limit")
    assert record["pending"] == 5 - record["done"] > 0
    code, out, _ = run(capsys, "resume", "a.db", "--time-limit", "0.000001")
    assert code == 3
    assert "(stopped: time limit)" in out
    assert "go on with: memcap study resume a.db" in out
    code, record = run_json(capsys, "resume", "a.db", "--time-limit", "600")
    assert (code, record["stopped"], record["pending"]) == (0, "", 0)
    code, record = run_json(capsys, "resume", "a.db", "--time-limit", "0.000001")
    assert (code, record["stopped"]) == (0, "")  # nothing was left to do
    for name in ("run", "resume"):
        assert "3 the time limit left cells to do" in " ".join(run(capsys, name, "--help")[1].split())
    (tmp_path / "hog.yaml").write_text("task: study_toys:some_bad\naxes: {x: [1, 3]}\nfixed: {mode: hog}\n")
    code, record = run_json(capsys, "run", "hog.yaml", "--store", "b.db", "--workers", "1", "--memory-limit", "150 MiB")
    assert (code, record["done"], record["failed"]) == (1, 1, 1)
    code, out, _ = run(capsys, "status", "b.db")
    assert "MemoryLimit: " in out


def test_a_memory_limit_below_a_bare_worker_is_refused_at_the_start(grid, capsys):
    code, _, err = run(capsys, "run", grid, "--store", "a.db", "--workers", "1", "--memory-limit", "5 MiB")
    assert code == 2
    assert "a memory limit of 5 MiB is less than the " in err
    assert " MiB that a worker for task 'study_toys:toy' uses before its first cell" in err
    _, record = run_json(capsys, "status", "a.db")
    assert record["failed"] == record["pending"] == 0


def test_status_groups_failures_by_reason_and_shows_what_varies(grid, capsys, tmp_path):
    (tmp_path / "bad.yaml").write_text(
        "task: study_toys:thirty\naxes: {x: [0, 1, 2, 3, 4, 9]}\nfixed: {y: 7}\nseeds: [5]\n"
    )
    assert run(capsys, "run", "bad.yaml", "--store", "a.db", "--quiet")[0] == 1
    code, out, _ = run(capsys, "status", "a.db")
    assert code == 0
    assert "5 failed: ValueError: x is 0.0\n  at x=0.0 seed=5; x=1.0 seed=5; x=2.0 seed=5, ...\n" in out
    assert out.count("ValueError") == 1
    assert "y=7" not in out
    assert "--json lists every one of these cells with all settings" in out
    _, record = run_json(capsys, "status", "a.db")
    assert len(record["failures"]) == 5
    assert all("y=7" in failure["cell"] for failure in record["failures"])


def test_a_refused_law_does_not_end_a_comparison(grid, capsys):
    assert run(capsys, "run", grid, "--store", "a.db", "--quiet")[0] == 0
    code, out, err = run(capsys, "fit", "a.db", "--law", "x ~ y^a", "--law", "x ~ y^-1")
    assert code == 0
    assert "x ~ y^-1: too uncertain: a constant describes the points better than the law" in err
    assert "x ~ y^-1: AICc" in out
    code, _, err = run(capsys, "fit", "a.db", "--law", "x ~ y^-1")
    assert code == 1
    assert "or another law" in err


@pytest.mark.parametrize("name", ["run", "resume", "check", "status", "export", "fit"])
def test_every_subcommand_shows_an_example(capsys, name):
    code, out, _ = run(capsys, name, "--help")
    assert code == 0
    assert f"memcap study {name}" in out
