"""Grids as data: what they mean, and how wrong ones are told."""

import dataclasses
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcap.errors import ConfigurationError, MemcapError
from memcap.study import measurements
from memcap.study.axes import expand
from memcap.study.cell import Cell
from memcap.study.expression import Expression
from memcap.study.grid import Grid

TOY = "study_toys:toy"


def grid(**keys):
    return Grid(**{"task": TOY, "axes": {"x": [1, 2], "y": [3, 4]}, **keys})


def points(cells):
    return [(c.settings["x"], c.settings["y"], c.seed) for c in cells]


def test_cells_are_the_product_in_order_with_defaults_filled_in():
    cells = grid(seeds=[0, 7]).cells
    assert points(cells) == [(x, y, s) for x in (1.0, 2.0) for y in (3, 4) for s in (0, 7)]
    assert dict(cells[0].settings) == {"x": 1.0, "y": 3, "mode": "ok", "sleep": 0.0, "log": ""}
    assert cells[0].task == "toy"


def test_derived_settings_follow_in_any_order_and_exclusions_leave_out():
    made = Grid(
        task=TOY,
        axes={"x": [4, 9, 16]},
        derived={"sleep": "y / 100", "y": "round(2.5 * sqrt(x))"},
        exclude=["x > 10 and y > 1", {"x": [4, 5]}],
    )
    assert [(c.settings["y"], c.settings["sleep"]) for c in made.cells] == [(8, 0.08)]


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        ([3, 1, 2], [3, 1, 2]),
        (
            {"from": 64, "to": 4096, "per_octave": 2},
            [64, 91, 128, 181, 256, 362, 512, 724, 1024, 1448, 2048, 2896, 4096],
        ),
        ({"from": 1, "to": 8, "per_octave": 1}, [1, 2, 4, 8]),
        ({"from": 1, "to": 4, "per_octave": 4}, [1, 2, 3, 4]),  # rounded, each once
        ({"from": 1.0, "to": 100, "per_decade": 1}, [1.0, 10.0, 100.0]),
        ({"from": 0.1, "to": 0.5, "step": 0.1}, [0.1, 0.2, 0.3, 0.4, 0.5]),
        ({"from": 2, "to": 9, "step": 3}, [2, 5, 8]),
        (["a", True, None, 1.5], ["a", True, None, 1.5]),
    ],
)
def test_axes(spec, values):
    assert expand("a", spec) == values


@given(st.integers(-50, 50), st.integers(0, 60), st.integers(1, 40))
def test_decimal_ranges_hit_their_ends(start, count, step):
    low, by = start / 10, step / 100
    high = float(Decimal(str(low)) + count * Decimal(str(by)))
    values = expand("a", {"from": low, "to": high, "step": by})
    assert len(values) == count + 1
    assert (values[0], values[-1]) == (low, high)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ([], "axis 'a' has no values"),
        ([1, 2, 1], "axis 'a' names 1 twice"),
        (5, "axis 'a' is a list, .* belongs under 'fixed'"),
        ([[1]], r"a value is a number, text, true or false; got \[1\]"),
        ([math.nan], "got nan"),
        ({"from": 1, "to": 9, "stepp": 2}, "no key 'stepp'.*did you mean 'step'"),
        ({"from": 1, "to": 9}, "key 'step' is missing"),
        ({"from": 1, "to": 9, "per_octav": 2}, "no key 'per_octav'"),
        ({"from": 1, "to": 9, "per_octave": 2, "per_decade": 1}, "per_octave or per_decade, not both"),
        ({"from": 0, "to": 9, "per_octave": 2}, "from: Input should be greater than 0, got 0"),
        ({"from": 1, "to": 9, "step": 0}, "step: Input should be greater than 0"),
        ({"from": 9, "to": 1, "step": 1}, "has no values"),
        ({"from": 0, "to": 1e9, "step": 1}, "at most 100,000 values"),
        ({"from": 1, "to": "9", "step": 1}, "to.int: Input should be a valid integer, got .9."),
    ],
)
def test_wrong_axes_are_told(spec, reason):
    with pytest.raises(ConfigurationError, match=reason):
        expand("a", spec)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"axs": {}}, "no key 'axs'.*did you mean 'axes'"),
        ({"axes": {"xx": [1]}}, "task 'study_toys:toy' has no setting 'xx'.*did you mean 'x'"),
        ({"fixed": {"slep": 1}}, "no setting 'slep'.*did you mean 'sleep'"),
        ({"fixed": {"x": 1}}, "'x' is given twice, under 'axes' and 'fixed'"),
        ({"fixed": {"seed": 1}}, "'seed' belongs under 'seeds'"),
        ({"derived": {"sleep": "xx / 2"}}, "derived 'sleep' uses 'xx', which the grid does not give.*did you mean 'x'"),
        ({"derived": {"sleep": "log", "mode": "sleep"}}, "in a circle|uses 'log'"),
        ({"derived": {"sleep": "x.__class__"}}, "derived 'sleep': .*is not allowed"),
        ({"derived": {"sleep": "1 / (x - 1)"}}, "cannot be computed at x=1: division by zero|float division"),
        ({"derived": {"sleep": "1e308 * 10 * x"}}, "sleep is inf, but a setting is finite; at .*'x': 1"),
        ({"fixed": {"sleep": math.nan}}, "sleep is nan, but a setting is finite"),
        ({"exclude": ["z > 1"]}, "exclude uses 'z'"),
        ({"exclude": [{"z": 1}]}, "exclude uses 'z'"),
        ({"exclude": ["x > 0"]}, "'exclude' leaves no cell"),
        ({"seeds": 3}, r"seeds is a list such as \[0, 1, 2\]"),
        ({"seeds": [-1]}, "a seed is an integer in"),
        ({"seeds": [1.5]}, "a seed is an integer in"),
        ({"task": "simulat"}, "no measurement 'simulat'.*did you mean 'simulate'"),
        ({"task": "no_such_module:toy"}, "cannot import 'no_such_module'.*PYTHONPATH"),
        ({"task": "study_toys:tay"}, "has no measurement 'tay'.*did you mean 'toy'"),
        ({"task": "__main__:toy"}, "put it in a module of its own"),
        ({"axes": {"y": ["many"]}}, "y: Input should be a valid integer"),
        ({"axes": {"y": [1.5]}}, "y: Input should be a valid integer"),
        ({"strategy": "boundry"}, "strategy: Input should be 'full' or 'boundary'"),
        ({"strategy": "boundary"}, "comes with 'boundary:"),
        ({"strategy": "boundary", "boundary": {"axes": "x"}}, "no key 'axes'.*did you mean 'axis'"),
        ({"strategy": "boundary", "boundary": {"axis": "z"}}, "no axis 'z'"),
        ({"strategy": "boundary", "boundary": {"axis": "x"}, "axes": {"x": [1]}}, "at least two numbers"),
    ],
)
def test_wrong_grids_are_told(keys, reason):
    with pytest.raises(ConfigurationError, match=reason):
        grid(**keys).cells


def test_a_measurement_without_seed_takes_none():
    with pytest.raises(ConfigurationError, match="takes no seed; leave 'seeds' out"):
        Grid(task="study_toys:plain", axes={"x": [1]}, seeds=[1])
    with pytest.raises(ConfigurationError, match="needs the setting 'x'"):
        Grid(task="study_toys:plain").cells
    assert [c.seed for c in Grid(task="study_toys:plain", axes={"x": [1]}).cells] == [0]


def test_a_registered_name_works_and_cannot_be_taken_twice():
    measurements.register("toy-by-name", TOY)
    measurements.register("toy-by-name", TOY)
    assert Grid(task="toy-by-name", axes={"x": [1]}).cells == Grid(task=TOY, axes={"x": [1]}).cells
    with pytest.raises(ConfigurationError, match="already 'study_toys:toy'"):
        measurements.register("toy-by-name", "other:toy")


def test_files(tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text("﻿task: study_toys:toy\naxes:\n  x: {from: 1e1, to: 4e1, per_octave: 1}\nseeds: [0, 1]\n")
    assert points(Grid.read(path).cells) == [(x, 1, s) for x in (10.0, 20.0, 40.0) for s in (0, 1)]
    for text, reason in [
        ("task: a\ntask: b\n", "line 2: the key 'task' is given twice"),
        ("task: [\n", r"grid\.yaml, line \d: "),
        ("- 1\n", "expected 'key: value' lines, got list"),
        ("axes: {}\n", r"grid\.yaml: key 'task' is missing"),
        ("task: study_toys:toy\naxes: {x: []}\n", r"grid\.yaml: axis 'x' has no values"),
        ("task: !!python/object:os.system x\n", r"could not determine a constructor"),
    ]:
        path.write_text(text)
        with pytest.raises(ConfigurationError, match=reason):
            Grid.read(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="is not UTF-8 text"):
        Grid.read(path)
    with pytest.raises(ConfigurationError, match="cannot read"):
        Grid.read(tmp_path / "absent.yaml")


def test_a_grid_survives_the_store():
    made = grid(derived={"sleep": "x / 10"}, exclude=["y > 3 and x > 1"], seeds={"from": 0, "to": 2, "step": 1})
    assert Grid(**made.to_dict()).cells == made.cells


CHANGES = {
    "task": "other", "version": 2, "settings": {"x": 2}, "seed": 1, "place": "moved:toy", "group": "g"
}  # fmt: skip


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(Cell)])
def test_changing_any_field_that_defines_a_cell_changes_its_identity(field):
    """By reflection: a field added to ``Cell`` fails here until it is said whether it defines the cell."""
    cell = Cell("toy", 1, {"x": 1}, 0)
    changed = dataclasses.replace(cell, **{field: CHANGES[field]})
    assert (changed.identity != cell.identity) == (field not in ("place", "group"))


@pytest.mark.parametrize("name", ["x", "y", "mode", "sleep", "log"])
def test_changing_any_setting_changes_the_identity(name):
    value = {"x": 2.0, "y": 2, "mode": "raise", "sleep": 0.5, "log": "there"}[name]
    base = measurements.make_cell(TOY, {}).identity
    assert measurements.make_cell(TOY, {name: value}).identity != base
    assert measurements.make_cell(TOY, {}, seed=1).identity != base
    assert measurements.make_cell(TOY, {"x": 1}).identity == base  # 1 and 1.0 are one float setting


def test_the_identity_is_pinned():
    """A changed hash would orphan every stored cell: raise FORMAT and keep reading the old one instead."""
    assert Cell("toy", 1, {"x": 1.0, "y": 2}, 3).identity == "bd7b834734460bfd31c0efd385250432"


# --- expressions


@given(st.integers(1, 10**6), st.floats(0.1, 1e3))
def test_expressions_are_python_arithmetic(n, x):
    values = {"n": n, "x": x}
    for text in [
        "round(2.5 * sqrt(n))",
        "n // 3 % 7 - -x",
        "max(n, x) ** 0.5",
        "ceil(log2(n)) + floor(x)",
        "n * 2 / x",
    ]:
        expected = eval(text, {name: getattr(math, name) for name in ("sqrt", "ceil", "floor", "log2")}, values)
        assert Expression(text).evaluate(values) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 < n <= 4 and not n == 3", True),
        ("name == 'a' or n > 9", True),
        ("5 if n > 9 else 6", 6),
        ("pi", math.pi),
        ("min(n, 2, 8)", 2),
    ],
)
def test_conditions(text, value):
    assert Expression(text).evaluate({"n": 4, "name": "a"}) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')", "n.real", "n[0]", "[n]", "lambda: 1", "(n := 2)", "f'{n}'", "open('x')", "n; n", "", "n +",
        "round(n, ndigits=1)", "b'x'", "1j", "...", "n if n", "{1: 2}", "*n", "n @ n", "n << 3", "n is 1", "n in 'a'",
        "(" * 300 + "1" + ")" * 300, "1" * 2000, "\0",
    ],
)  # fmt: skip
def test_everything_else_is_refused(text):
    with pytest.raises(ConfigurationError):
        Expression(text).evaluate({"n": 1})


@pytest.mark.parametrize(
    "text", ["9 ** 9 ** 9", "2 ** 2000", "exp(1e9)", "sqrt(-1)", "(-8) ** 0.5", "1 % 0", "'a' * 9", "'a' < 1"]
)
def test_arithmetic_that_fails_is_told_at_once(text):
    with pytest.raises(ConfigurationError, match="cannot be computed"):
        Expression(text).evaluate({})


@given(st.text(max_size=40))
def test_no_text_crashes_the_reader(text):
    try:
        Expression(text).evaluate({"n": 2, "x": 0.5})
    except MemcapError:
        return
