"""Messages on the command line name options, not arguments of Python; JSON is strict everywhere."""

import ast
import importlib
import json
import math
from pathlib import Path

import click
import pytest

import memcap
from memcap.cli.app import VERBS, main, print_json
from memcap.cli.study import SUBCOMMANDS
from memcap.cli.wording import in_options
from memcap.study.study import Study

TOYS = str(Path(__file__).parents[1] / "study")


def commands():
    for module, _ in VERBS.values():
        command = importlib.import_module(module).command
        if not isinstance(command, click.Group):
            yield command
    for module, name, _ in SUBCOMMANDS.values():
        yield getattr(importlib.import_module(module), name)


def long(option):
    return next(o for o in option.opts if o.startswith("--"))


@pytest.mark.parametrize("command", list(commands()), ids=lambda c: c.name)
def test_every_option_of_every_verb_is_named_as_it_is_typed(command):
    assert hasattr(command.callback, "__wrapped__"), "the verb lacks output_options"
    for option in (p for p in command.params if isinstance(p, click.Option)):
        argument = long(option)[2:].replace("-", "_")
        if "_" in argument:
            assert in_options(f"{argument} must be positive", command.params) == f"{long(option)} must be positive"
        if not option.is_flag:
            assert in_options(f"use {argument}='some'.", command.params) == f"use {long(option)} some."


TASK = ["-V", "8", "-L", "4", "-N", "20", "-d", "8"]
COLUMNS = ["--sequence", "word", "--label", "label"]
OPTIONS = [
    click.Option(["--weights"]),
    click.Option(["--reject-bits"]),
    click.Option(["--ordered/--multiset", "ordered"]),
    click.Option(["--format", "file_format"]),
    click.Option(["--batch"], metavar="B"),
    click.Argument(["data"]),
]


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("reject_bits needs weights='exact'", "--reject-bits needs --weights exact"),
        ("takes neither reject_bits nor weights", "takes neither --reject-bits nor weights"),
        ("read it with ordered=False, not ordered=True", "read it with --multiset, not --ordered"),
        ("got weights=-1.5e-3; try batch=...", "got --weights -1.5e-3; try --batch B"),
        ("no 'reject_bits' in my_reject_bits, reject_bits_2", "no 'reject_bits' in my_reject_bits, reject_bits_2"),
        ("say format='csv' or file_format", "say --format csv or --format"),
        ("data=7 and other_thing=7 stay", "data=7 and other_thing=7 stay"),
        ("a/reject_bits/b.reject_bits stays", "a/reject_bits/b.reject_bits stays"),
    ],
)
def test_wording(message, told):
    assert in_options(message, OPTIONS) == told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", *TASK, "--test-samples", "0"], "--test-samples must be"),
        (["simulate", *TASK, "--label-noise", "2"], "--label-noise must be"),
        (["critical", *TASK, "--solve-for", "dimensoin"], "--solve-for must be one of"),
        (["build", "a.csv", *COLUMNS, "--on-conflict", "frist", "--out", "m"], "--on-conflict must be one of"),
        (["build", "a.csv", *COLUMNS, "--reject-bits", "3", "--out", "m"], "--reject-bits needs --weights exact"),
        (["study", "run", "grid.yaml", "--store", "a.db", "--memory-limit", "1 GiB"], "--memory-limit needs workers"),
        (["study", "run", "grid.yaml", "--store", "a.db", "--time-limit", "-1"], "--time-limit is a positive number"),
        (["study", "check", "grid.yaml", "--time-limit", "0"], "--time-limit is a positive number"),
    ],
)
def test_errors_name_options(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(TOYS)
    Path("a.csv").write_text("word,label\na,0\nb,1\n")
    Path("grid.yaml").write_text("task: study_toys:toy\naxes: {x: [1]}\n")
    assert main(arguments) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert told.startswith("memcap: ")
    assert message in told
    main([*arguments, "--json"])
    assert message in " ".join(json.loads(capsys.readouterr().out)["error"].split())


def test_what_json_cannot_write_is_a_text_that_float_reads(tmp_path, capsys):
    print_json({"x": [math.nan, {"y": math.inf}, (-math.inf, 1.5)]})
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {
        "x": ["NaN", {"y": "Infinity"}, ["-Infinity", 1.5]]
    }
    with Study.open(tmp_path / "a.db") as study, pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TOYS)
        study.run({"task": "study_toys:toy", "axes": {"x": [1, 2], "y": [1, 64]}}, progress=False)
    assert main(["study", "fit", str(tmp_path / "a.db"), "--critical", "x", "--json"]) == 0
    lines = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["critical"]
    censored = next(line for line in lines if line["censored"] == "above")
    assert (censored["high"], censored["slope"]) == ("Infinity", "NaN")
    assert float(censored["high"]) == math.inf


def test_no_verb_writes_json_of_its_own():
    """``print_json`` is the one way out; what ``reproduce --out`` writes goes through the same ``strict``."""
    found = {}
    for path in (Path(memcap.__file__).parent / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("json.dumps", "json.dump", "dumps", "to_json"):
                found.setdefault(path.name, []).append(ast.unparse(node.args[0]))
    assert found == {"app.py": ["strict(record)"], "reproduce.py": ["strict(record)"]}
