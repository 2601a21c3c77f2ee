"""``memcap simulate``: options, one task, several seeds, curves, and every wrong call."""

import json

import pytest

from memcap.cli.app import main
from memcap.cli.retrieval_curve import curve_points, picture
from memcap.errors import ConfigurationError
from memcap.retrieval.simulate import simulate
from memcap.retrieval.task import RetrievalTask

TASK = ["-V", "24", "-L", "4", "-N", "400", "-d", "16", "--test-samples", "300"]


def run(capsys, *arguments):
    code = main(["simulate", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_json_is_one_object_with_the_run(capsys):
    code, out, err = run(capsys, *TASK, "--seeds", "2", "--seed", "3", "--json")
    assert code == 0
    assert err == ""
    record = json.loads(out)
    task = RetrievalTask(vocabulary=24, length=4, samples=400, dimension=16, seed=3)
    assert [r["recall"] for r in record["runs"]] == [simulate(task, seed=s, test_samples=300).recall for s in (3, 4)]
    assert record["recall"] == pytest.approx(sum(r["recall"] for r in record["runs"]) / 2)
    assert record["recall_interval"][0] <= record["recall"] <= record["recall_interval"][1]
    assert (record["interval_over"], record["seeds"]) == ("seeds", 2)


def test_people_read_units_and_the_data_hash(capsys):
    code, out, _ = run(capsys, *TASK, "--attention", "soft", "--sharpness", "2", "--quiet")
    assert code == 0
    for text in (
        "recall, fresh sequences",
        "over test sequences",
        "attention success",
        "data hash, seed 0",
        "small-step",
    ):
        assert text in out


def test_every_option_reaches_the_task(capsys, tmp_path):
    file = tmp_path / "task.yaml"
    file.write_text("vocabulary: 24\nlength: 4\nsamples: 300\ndimension: 12\nfrequencies: zipf\nseed: 9\n")
    arguments = ["--task", str(file), "-m", "8", "--activation", "tanh", "--embeddings", "sphere", "--trigger-in-value"]
    arguments += ["--label-noise", "0.25", "--attention", "soft", "-d", "1_0", "-N", "4e2", "--test-samples", "50"]
    code, out, _ = run(capsys, *arguments, "--first-step", "2", "--attention-step", "5", "--second-step", "3", "--json")
    assert code == 0
    (record,) = json.loads(out)["runs"]
    assert record["task"] == {
        "vocabulary": 24,
        "length": 4,
        "samples": 400,
        "dimension": 10,
        "width": 8,
        "activation": "tanh",
        "embeddings": "sphere",
        "trigger_in_value": True,
        "frequencies": 1.0,
        "facts": 1,
        "label_noise": 0.25,
        "attention": "soft",
        "data": "empirical",
        "seed": 9,
    }
    assert record["settings"] == {"first": 2.0, "attention": 5.0, "second": 3.0, "sharpness": 4.0}
    assert record["engine"] == "closed-form"


def test_training_options(capsys):
    options = ["--train", "sgd", "--train-steps", "6", "--batch", "64", "--learning-rate", "3", "--heads", "2"]
    code, out, _ = run(capsys, *TASK, *options, "--until-loss", "0.1", "--learned-embeddings", "--json")
    assert code == 0
    (record,) = json.loads(out)["runs"]
    assert record["engine"] == "training"
    assert record["settings"]["heads"] == 2
    assert record["settings"]["learned_embeddings"] is True
    assert record["trace"][0][0] == 0


def test_population_needs_no_samples(capsys):
    code, out, _ = run(capsys, "-V", "24", "-L", "4", "-d", "16", "--data", "population", "--json")
    assert code == 0
    assert json.loads(out)["runs"][0]["engine"] == "population"


def test_curve_prints_a_table_and_a_picture(capsys, tmp_path):
    options = ["-V", "24", "-L", "4", "-d", "16", "--test-samples", "300", "--seeds", "2"]
    code, out, _ = run(capsys, *options, "--curve", "samples=30..3000:3")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split()[:3] == ["samples", "predicted", "simulated"]
    assert [line.split()[0] for line in lines[1:4]] == ["30", "300", "3,000"]
    assert out.count("●") == 3 + 1  # points, and the legend
    code, out, _ = run(capsys, *options, "--curve", "samples=30..3000:3", "--json")
    record = json.loads(out)
    assert [row["samples"] for row in record["curve"]] == [30, 300, 3000]
    assert record["curve"][0]["recall"] < record["curve"][-1]["recall"]
    assert all(0 <= row["predicted"] <= 1 for row in record["curve"])
    drawing = tmp_path / "curve.svg"
    code, out, _ = run(capsys, *options, "--curve", "samples=30..3000:2", "--out", str(drawing), "--json")
    assert json.loads(out)["drawn"] == str(drawing)
    assert "<svg" in drawing.read_text()
    code, out, _ = run(capsys, *options, "--curve", "samples=30..3000:3", "--first-step", "1", "--json")
    assert json.loads(out)["notes"] == ["no prediction: the theory covers infinitesimal steps only"]
    assert all(row["predicted"] is None for row in json.loads(out)["curve"])


WRONG = [
    (["-V", "24"], "missing --length, --samples, --dimension (or a --task file that has them)"),
    ([*TASK, "--lenght", "3"], "No such option '--lenght'"),
    ([*TASK, "--embeddings", "gausian"], "did you mean 'gaussian'?"),
    ([*TASK, "--engine", "fast"], "engine must be one of auto, small-step, closed-form, multinomial, population"),
    ([*TASK, "-N", "2.5"], "'2.5' is not a whole number (20000, 20_000 or 2e4)"),
    ([*TASK, "-N", "many"], "'many' is not a whole number"),
    ([*TASK, "-N", "1e999"], "'1e999' is not a whole number"),
    ([*TASK, "-N", "0"], "samples must be an integer in [1, "),
    ([*TASK, "-V", "1"], "vocabulary must be an integer in [2, "),
    ([*TASK, "-L", "0"], "length must be an integer in [1, "),
    ([*TASK, "-d", "0"], "dimension must be an integer in [1, "),
    ([*TASK, "--label-noise", "nan"], "--label-noise must be a finite number in [0, 1], got nan"),
    ([*TASK, "--first-step", "nan"], "step size 'first' must be a finite number in [0, 1e+30], got nan"),
    ([*TASK, "--facts", "5"], "facts must be <= length = 4, got 5"),
    ([*TASK, "--seeds", "0"], "seeds must be an integer in [1, 1000000], got 0"),
    ([*TASK, "--first-step", "-1"], "step size 'first' must be a finite number in [0, 1e+30], got -1.0"),
    ([*TASK, "--second-step", "1"], "step sizes 'attention' and 'second' need 'first'"),
    ([*TASK, "--heads", "2"], "--heads needs --train gd, sgd or adam"),
    ([*TASK, "--train", "adamw"], "optimiser must be one of gd, sgd, adam, got 'adamw' (did you mean 'adam'?)"),
    ([*TASK, "--out", "x.svg"], "--out belongs to --curve"),
    ([*TASK, "--curve", "samples=1..9", "--out", "x.gif"], "cannot draw a curve as 'x.gif'"),
    ([*TASK, "--curve", "samples"], "--curve takes field=low..high or field=low..high:points"),
    ([*TASK, "--curve", "smaples=1..9"], "got 'smaples' (did you mean 'samples'?)"),
    ([*TASK, "--curve", "samples=9..3"], "--curve needs 1 <= low < high and 2 to 1000 points"),
    ([*TASK, "--task", "no-such-file.yaml"], "cannot read the task file no-such-file.yaml: No such file or directory"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=lambda value: str(value)[-40:])
def test_wrong_calls_are_one_message_and_exit_code_2(capsys, arguments, message):
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learning_rte: 3\n", "no field 'learning_rte'; fields: vocabulary, length"),
        ("lenght: 3\n", "no field 'lenght' (did you mean 'length'?)"),
        ("- 3\n", "must hold fields such as 'vocabulary: 256', got list"),
        ("a: [\n", "is not YAML: "),
    ],
)
def test_wrong_task_files(capsys, tmp_path, text, message):
    file = tmp_path / "task.yaml"
    file.write_text(text)
    code, _, err = run(capsys, *TASK, "--task", str(file))
    assert code == 2
    assert message in err


def test_curve_points_are_distinct_and_include_both_ends():
    assert curve_points("samples=1..4:9") == ("samples", [1, 2, 3, 4])
    assert curve_points("length = 10..1_000:3")[1] == [10, 100, 1000]
    with pytest.raises(ConfigurationError, match="--curve sweeps vocabulary, length, samples, dimension, width"):
        curve_points("seed=1..3")


def test_seeds_and_test_samples_of_a_curve_have_their_own_defaults(capsys):
    _, out, _ = run(capsys, "-V", "16", "-L", "3", "-d", "12", "--curve", "samples=30..300:2", "--json")
    assert [row["seeds"] for row in json.loads(out)["curve"]] == [3, 3]
    _, out, _ = run(capsys, "-V", "16", "-L", "3", "-d", "12", "-N", "100", "--facts", "2", "--json")
    record = json.loads(out)
    assert (record["seeds"], record["runs"][0]["test_samples"], record["runs"][0]["task"]["facts"]) == (1, 8192, 2)


def test_picture_of_sizes_has_a_logarithmic_axis():
    drawn = picture("length", [1, 10, 100], [10.0, 100.0, 1000.0], [None, (100.0, 10.0, 1000.0), None], sizes=True)
    lines = drawn.splitlines()
    assert lines[0].split()[0] == "1e+03"
    assert lines[8].split()[0] == "100"
    assert lines[16].split()[0] == "10"
    assert lines[8].index("●") - lines[8].index("┤") - 1 == 32  # the middle of 64 columns
    assert sum("│" in line for line in lines[:17]) == 16


def test_picture_puts_points_where_they_belong():
    drawn = picture("samples", [1, 10, 100], [0.0, None, 1.0], [(0.0, 0.0, 0.0), None, (0.5, 0.25, 0.75)]).splitlines()
    assert drawn[16].startswith(" 0.00 ┤●")
    assert drawn[8].endswith("●")
    assert [line[-1] for line in drawn[4:13]] == ["│"] * 4 + ["●"] + ["│"] * 4
    assert drawn[0].endswith("·")
