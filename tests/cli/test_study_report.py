"""``memcap study report``: a stored study becomes a page and figures; wrong calls are one message and exit code 2."""

import json
from pathlib import Path

import pandas as pd
import pytest

from memcap.cli.app import main
from memcap.study.study import Study

TOYS = str(Path(__file__).parents[1] / "study")

GRID = {
    "task": "study_toys:toy",
    "question": "Where does the toy cross one half?",
    "axes": {"y": [2, 4, 8, 16], "x": [1, 2, 4, 8, 16, 32, 64]},
    "seeds": [0, 1],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "phase.db"
    with pytest.MonkeyPatch.context() as patch, Study.open(path) as study:
        patch.syspath_prepend(TOYS)
        study.run(GRID, progress=False)
    return path


def test_a_study_becomes_a_page_and_figures(store, tmp_path, capsys):
    page, figures = tmp_path / "phase.html", tmp_path / "figures"
    code = main(["study", "report", str(store), "-o", str(page), "--figures", str(figures), "--format", "svg,json"])
    said = capsys.readouterr().out
    assert code == 0
    assert "MB, opens without a network" in said
    text = page.read_text(encoding="utf-8")
    assert "Where does the toy cross one half?" in text
    assert "56 / 56" in text
    names = {p.name for p in figures.iterdir()}
    exponent = pd.read_csv(figures / "exponents-exponents.csv")["value"]
    assert exponent.tolist() == pytest.approx([1.0], abs=1e-6)
    assert {"phase.svg", "phase.json", "phase-cells.csv", "exponents.svg", "collapse.svg", "captions.md"} <= names


def test_simulated_retrieval_becomes_a_page(tmp_path, capsys, monkeypatch):
    """The measurement people start with, from a grid file to a page."""
    monkeypatch.chdir(tmp_path)
    Path("grid.yaml").write_text(
        "task: simulate\naxes: {dimension: [8, 16], samples: [16, 64, 512]}\n"
        "fixed: {vocabulary: 16, length: 4, test_samples: 400}\nseeds: [0, 1]\n",
        encoding="utf-8",
    )
    assert main(["study", "run", "grid.yaml", "--store", "phase.db"]) == 0
    assert main(["study", "report", "phase.db", "-o", "phase.html", "--target", "0.7"]) == 0, capsys.readouterr().err
    text = Path("phase.html").read_text(encoding="utf-8")
    assert "12 / 12" in text
    assert "cross recall 0.7" in text


def test_json_says_what_was_written(store, tmp_path, capsys):
    page = tmp_path / "phase.html"
    assert main(["study", "report", str(store), "-o", str(page), "--outcome", "noise", "--target", "0", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["bytes"] == page.stat().st_size < 2_000_000
    assert record["out"] == str(page)
    assert "Noise over" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "pgn"], "--format pgn: no such format (did you mean 'png'?); formats: svg, pdf, png, json"),
        (["--outcome", "recal"], "the study has no result 'recal' (did you mean 'recall'?)"),
        (["--x", "moed"], "the study has no setting 'moed' (did you mean 'mode'?)"),
    ],
)
def test_wrong_calls(store, tmp_path, capsys, arguments, message):
    code = main(["study", "report", str(store), "-o", str(tmp_path / "r.html"), *arguments])
    assert code == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_nothing_makes_folders_on_the_way(store, tmp_path, capsys):
    calls = (
        ["study", "report", str(store), "-o", "no/r.html"],
        ["study", "report", str(store), "-o", str(tmp_path / "r.html"), "--figures", "no/figures"],
        ["study", "export", str(store), "-o", "no/t.csv"],
        ["study", "run", str(store), "--store", "no/a.db"],
        ["predict", "-V", "8", "-L", "4", "-d", "8", "--curve", "samples=10..90", "--out", "no/c.svg"],
    )
    (tmp_path / "grid.yaml").write_text("task: study_toys:toy\naxes: {x: [1]}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        patch.syspath_prepend(TOYS)
        for call in calls:
            call = ["grid.yaml" if word == str(store) and "run" in call else word for word in call]
            assert main(call) == 2
            told = " ".join(capsys.readouterr().err.split())
            folder = tmp_path / Path(call[-1]).parent
            assert f"memcap: {call[-1]}: the folder does not exist; create {folder} first" in told
    assert [p.name for p in tmp_path.iterdir()] == ["grid.yaml"]


def test_a_page_is_html_and_a_study_must_exist(store, tmp_path, capsys):
    assert main(["study", "report", str(store), "-o", str(tmp_path / "r.pdf")]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"name it *.html, got '{tmp_path / 'r.pdf'}'; --figures DIR writes images" in told
    assert main(["study", "report", str(tmp_path / "none.db"), "-o", str(tmp_path / "r.html")]) == 2
    assert "there is no study at" in capsys.readouterr().err


def test_the_page_and_the_fits_of_the_study_say_the_same(tmp_path, monkeypatch):
    from memcap import report

    monkeypatch.syspath_prepend(TOYS)
    with Study.open(":memory:") as study:
        axes = {"dimension": [1, 2, 4, 8], "samples": {"from": 0.25, "to": 16.0, "per_octave": 1}}
        study.run({"task": "study_toys:law", "axes": axes, "seeds": [0, 1, 2, 3]}, progress=False)
        law = study.fit_exponent("samples ~ dimension^a", response="rough")
        row = report.figure(study, "exponents", outcome="rough").tables["exponents"].iloc[0]
        assert (row["value"], row["low"], row["high"]) == pytest.approx((law.values[0], law.lows[0], law.highs[0]))
        lines = {line.settings["dimension"]: line for line in study.critical("samples", "rough")}
        drawn = report.figure(study, "critical", outcome="rough").tables["points"]
        assert len(drawn) == 4
        for _, point in drawn.iterrows():
            line = lines[point["x"]]
            assert (point["y"], point["y_low"], point["y_high"]) == pytest.approx((line.value, line.low, line.high))


def test_the_study_of_the_face_reports_itself(store, tmp_path):
    import memcap

    with memcap.Study.open(store) as study:
        assert study.report(tmp_path / "own.html", target=0.9) == tmp_path / "own.html"
    assert "cross recall 0.9" in (tmp_path / "own.html").read_text(encoding="utf-8")
