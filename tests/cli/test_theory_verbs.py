"""``memcap predict``, ``memcap critical`` and ``memcap reproduce``: what they print, draw, refuse and exit with."""

import importlib

import pytest

SIZES = ("-V", 128, "-L", 16, "-N", 3000, "-d", 64)


def test_predict_prints_recall_and_the_budget(memcap_cli):
    found = memcap_cli("predict", *SIZES)
    assert found.code == 0
    for words in (
        "recall, fresh sequences",
        "attention success",
        "mean bias",
        "limited by",
        "bound from first gradient",
    ):
        assert words in found.out
    assert "between seeds ± 0.03" in found.out
    assert "between seeds" not in memcap_cli("predict", *SIZES, "--attention", "uniform").out
    record = memcap_cli("predict", *SIZES, "--json").json
    assert 0.8 < record["recall"] < 1
    assert record["snr_by_group"]["MLP noise"] == "Infinity"
    assert record["task"]["vocabulary"] == 128


def test_predict_says_where_the_theory_errs(memcap_cli):
    assert "note: fewer neurons than twice the dimensions" in memcap_cli("predict", *SIZES, "-m", 64).out


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!DOCTYPE html>")])
def test_a_curve_is_printed_and_drawn(memcap_cli, tmp_path, suffix, start):
    path = tmp_path / f"curve.{suffix}"
    found = memcap_cli(
        "predict", "-V", 32, "-L", 4, "-d", 24, "--curve", "samples=50..2000:3", "--seeds", 2, "--out", path
    )
    assert found.code == 0, found.err
    assert "predicted" in found.out
    assert "● simulated" in found.out
    assert path.read_bytes().lstrip()[:20].startswith(start)


def test_a_curve_of_theory_alone_has_no_legend_for_points(memcap_cli):
    found = memcap_cli("predict", "-V", 32, "-L", 4, "-d", 24, "--curve", "samples=50..2000:3", "--seeds", 0)
    assert "· predicted" in found.out
    assert "simulated" not in found.out


def test_help_says_what_only_simulate_runs(memcap_cli):
    for verb in ("predict", "critical"):
        text = " ".join(memcap_cli(verb, "--help").out.split())
        assert "(above 1: only simulate)" in text
        assert "(only simulate)" in text


def test_a_curve_in_json_has_intervals_around_its_points(memcap_cli):
    rows = memcap_cli(
        "predict", "-V", 32, "-L", 4, "-d", 24, "--curve", "samples=50..2000:3", "--seeds", 3, "--json"
    ).json["curve"]
    assert [row["samples"] for row in rows] == [50, 316, 2000]
    assert all(row["low"] <= row["simulated"] <= row["high"] for row in rows)
    assert rows[0]["predicted"] < rows[-1]["predicted"]
    alone = memcap_cli(
        "predict", "-V", 32, "-L", 4, "-d", 24, "--curve", "samples=50..2000:3", "--seeds", 0, "--json"
    ).json["curve"]
    assert "simulated" not in alone[0]
    assert [r["predicted"] for r in alone] == [r["predicted"] for r in rows]


def test_critical_prints_the_size_and_exponents(memcap_cli):
    found = memcap_cli("critical", "-V", 256, "-L", 16, "-N", 8000, "--solve-for", "dimension", "--recall", 0.99)
    assert found.code == 0
    assert found.out.startswith("dimension = 13")
    law = memcap_cli(
        "critical", "-V", 64, "-L", 128, "-d", 24, "--attention-success", 0.5, "--exponents", "--json"
    ).json
    assert law["scaling"]["exponents"]["length"] == pytest.approx(2.0, abs=0.1)
    text = memcap_cli("critical", "-V", 64, "-L", 128, "-d", 24, "--attention-success", 0.5, "--exponents").out
    assert "d ln samples / d ln length" in text


def test_a_curve_of_critical_sizes_is_printed_and_drawn(memcap_cli, tmp_path):
    path = tmp_path / "critical.svg"
    arguments = ("critical", "-V", 48, "-d", 32, "--curve", "length=32..64:2", "--attention-success", 0.5)
    arguments = (*arguments, "--seeds", 4, "--test-samples", 300)
    found = memcap_cli(*arguments, "--out", path, "--quiet")
    assert found.code == 0, found.err
    lines = found.out.splitlines()
    assert lines[0] == "samples for attention success 0.5"
    assert lines[1].split()[:3] == ["length", "predicted", "simulated"]
    assert [line.split()[0] for line in lines[2:4]] == ["32", "64"]
    assert found.out.count("●") == 2 + 1
    assert f"drawn: {path}" in found.out
    assert "critical samples" in path.read_text()
    record = memcap_cli(*arguments, "--json").json
    assert (record["field"], record["solve_for"], record["level"]) == ("length", "samples", 0.5)
    for row in record["curve"]:
        assert row["low"] <= row["simulated"] <= row["high"]
        assert row["simulated"] == pytest.approx(row["predicted"], rel=0.6)
    assert record["curve"][0]["predicted"] < record["curve"][-1]["predicted"]


def test_a_curve_of_critical_sizes_says_where_there_is_none(memcap_cli):
    arguments = ("critical", "-V", 64, "-L", 16, "--seeds", 0, "--attention-success", 0.9)
    rows = memcap_cli(*arguments, "--curve", "dimension=2..48:2", "--json").json["curve"]
    assert rows[0]["predicted"] is None
    assert "the most samples can do is" in rows[0]["reason"]
    assert (rows[1]["predicted"] > 10, rows[1]["simulated"]) == (True, None)
    found = memcap_cli(*arguments, "--curve", "dimension=2..3:2")
    assert (found.code, "┤" in found.out) == (1, False)
    assert "the most samples can do is" in found.out


def test_critical_out_of_reach_exits_with_1(memcap_cli):
    found = memcap_cli("critical", "-V", 64, "-L", 16, "-d", 4)
    assert found.code == 1
    assert "no samples reaches recall 0.5" in found.out
    assert "(however many)" in found.out
    assert memcap_cli("critical", "-V", 64, "-L", 16, "-d", 4, "--json").json["value"] is None


ERRORS = [
    (("predict", "-V", 128), "missing --length, --samples, --dimension"),
    (("predict", *SIZES, "--seeds", 3), "--seeds, --test-samples and --out belong to --curve"),
    (("predict", *SIZES, "--facts", 2), "the theory does not cover several facts a sequence"),
    (("critical", *SIZES, "--out", "x.svg"), "--seeds, --test-samples and --out belong to --curve"),
    (("critical", *SIZES, "--curve", "samples=9..99"), "--curve sweeps samples, which is solved for"),
    (("critical", *SIZES, "--curve", "length=9..99", "--exponents"), "--exponents belongs to one task"),
    (("critical", *SIZES, "--curve", "length=9..99", "--out", "x.gif"), "cannot draw a curve as 'x.gif'"),
    (
        ("critical", *SIZES, "--curve", "length=9..99", "--seeds", -1),
        "seeds must be an integer in [0, 1000000], got -1",
    ),
    (("critical", *SIZES, "--curve", "lenght=9..99"), "did you mean 'length'"),
    (("predict", *SIZES, "--curve", "sample=1..9"), "did you mean 'samples'"),
    (("predict", *SIZES, "--curve", "samples=10..90", "--out", "x.svgg"), "did you mean 'svg'"),
    (("predict", *SIZES, "--curve", "samples=10..90", "--out", "nowhere/x.svg"), "folder does not exist"),
    (("predict", *SIZES, "--frequencies", "zipf"), "does not cover token frequencies"),
    (("predict", *SIZES, "-N", 0), "samples must be an integer"),
    (("critical", "-V", 64, "-L", 16, "-d", 4, "--solve-for", "sample"), "did you mean 'samples'"),
    (("critical", "-V", 64, "-L", 16, "-d", 4, "--recall", 1.5), "recall must be a finite number"),
    (("critical", "-V", 64, "-L", 16, "-d", 24, "--recall", 0.5, "--clean-recall", 0.5), "give one target"),
    (("reproduce", "early-fase"), "did you mean 'early-phase'"),
    (("reproduce", "early-phase", "--scale", "smal"), "did you mean 'small'"),
    (("reproduce", "early-phase", "--out", "nowhere/x.json"), "folder does not exist"),
    (("reproduce", "early-phase", "--draw", "."), "--draw draws lower-bound, not early-phase"),
    (("reproduce", "lower-bound", "--draw", "nowhere/new"), "nowhere/new: the folder does not exist"),
    (("reproduce", "lower-bound", "--only", "nothing"), "no part of scale 'small' has 'nothing' in its name"),
    (("reproduce", "early-phase", "--only", "nothing"), "no grid or line of scale 'small' has 'nothing'"),
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS, ids=str)
def test_wrong_calls_exit_with_2(memcap_cli, arguments, message):
    found = memcap_cli(*arguments)
    assert found.code == 2
    assert message in found.err
    assert "Traceback" not in found.err


def test_reproduce_lists_its_figures(memcap_cli):
    from memcap.cli.reproduce import FIGURES

    assert "early-phase" in memcap_cli("reproduce").out
    assert set(memcap_cli("reproduce", "--json").json["figures"]) == set(FIGURES)
    for module in FIGURES.values():
        figure = importlib.import_module(module)
        assert figure.SUMMARY
        assert callable(figure.reproduce)


@pytest.fixture
def made_up_figure(monkeypatch):
    def install(passed):
        def reproduce(scale, *, seed=0, workers=2, progress=None, only=None):
            return {
                "figure": "made-up",
                "scale": scale,
                "seed": seed,
                "seconds": 1.0,
                "configuration": "abc",
                "tables": [{"title": "a [b] c", "columns": ["x", "y"], "rows": [["[1, 2]", 0.5], [3, None]]}],
                "checks": [{"what": "slope [1, 2]", "measured": 1.5, "bound": 2.0, "noise": 0.1, "passed": passed}],
            }

        module = importlib.import_module("memcap.retrieval.early_phase.figure")
        monkeypatch.setattr(module, "reproduce", reproduce)

    return install


def test_reproduce_draws_decoders_under_their_bound(memcap_cli, tmp_path):
    arguments = ("reproduce", "lower-bound", "--only", "samples, d", "--workers", 1, "--draw", tmp_path / "new")
    found = memcap_cli(*arguments)
    assert found.code == 0, found.out + found.err
    (path,) = (tmp_path / "new").iterdir()
    assert f"drawn: {path}" in found.out
    assert "likelihood + assignment" in path.read_text()
    record = memcap_cli(*arguments, "--json").json
    assert record["drawn"] == [str(path)]
    assert len(record["curves"]) == 8


def test_reproduce_prints_tables_and_checks_and_fails_with_1(memcap_cli, made_up_figure, tmp_path):
    made_up_figure(True)
    path = tmp_path / "record.json"
    found = memcap_cli("reproduce", "early-phase", "--out", path)
    assert found.code == 0
    for words in ("a [b] c", "[1, 2]", "slope [1, 2]", "passed", "all checks passed"):
        assert words in found.out
    assert '"made-up"' in path.read_text()
    assert "a [b] c" not in memcap_cli("reproduce", "early-phase", "--quiet").out
    made_up_figure(False)
    failed = memcap_cli("reproduce", "early-phase")
    assert failed.code == 1
    assert "1 of 1 checks failed" in failed.out
    assert memcap_cli("reproduce", "early-phase", "--json").json["checks"][0]["passed"] is False
