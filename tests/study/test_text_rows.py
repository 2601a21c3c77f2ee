"""Files of text are those that the ``csv`` and ``json`` modules write, byte for byte."""

import csv
import io
import json
import math

import pytest
from hypothesis import given
from hypothesis import settings as options
from hypothesis import strategies as some

from memcap.study import text_rows
from memcap.study.record import plain
from memcap.study.text_rows import csv_lines, json_lines


def word(value):
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {k: word(v) for k, v in value.items()}
    return [word(v) for v in value] if isinstance(value, list) else value


def csv_by_the_module(columns):
    def cell(value):
        if isinstance(value, bool):
            return "true" if value else "false"
        return json.dumps(plain(value), ensure_ascii=False) if isinstance(value, list | dict) else word(value)

    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([cell(v) for v in row] for row in zip(*columns.values(), strict=True))
    return file.getvalue()


def json_by_the_module(columns):
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    kept = [{k: word(v) for k, v in row.items() if v is not None} for row in rows]
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in kept)


def check(columns):
    assert "".join(csv_lines(columns)) == csv_by_the_module(columns)
    assert "".join(json_lines(columns)) == json_by_the_module(columns)


TEXT = some.text(some.sampled_from('a,"\\\n\x00\x7fé%\u2028🙂 '), max_size=4)
KINDS = [
    some.floats(),
    some.floats(allow_nan=False, width=32),
    some.integers(-(2**70), 2**70),
    some.booleans(),
    some.none(),
    TEXT,
    some.lists(some.floats() | some.none() | TEXT, max_size=2),
    some.dictionaries(TEXT, some.floats(), max_size=2),
]
COLUMN = some.one_of(
    *[some.just(kind) for kind in KINDS], some.just(some.one_of(*KINDS)), some.just(KINDS[0] | some.none())
)


@options(max_examples=150)
@given(data=some.data(), names=some.lists(TEXT, unique=True, min_size=2, max_size=5), rows=some.integers(0, 9))
def test_any_table(data, names, rows):
    columns = {}
    for name in names:
        kind = data.draw(COLUMN)
        columns[name] = data.draw(some.lists(kind, min_size=rows, max_size=rows))
    text_rows_block = data.draw(some.sampled_from([1, 3, 5000]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_rows, "_BLOCK", text_rows_block)
        check(columns)


@pytest.mark.parametrize("sign", [1, -1])
def test_floats_of_every_size_are_written_as_repr_does(sign):
    steps = [sign * m * 10.0**e for e in range(-323, 309) for m in (1, 1.7, 9.999999999999998)]
    values = [v for v in steps if math.isfinite(v)] + [5e-324, 1e15, 1e16, 9007199254740993.0, 0.0, -0.0, 123456.0]
    check({"x": values, "y": values})


def test_awkward_floats_among_others():
    check({"x": [math.nan, 1e-5, None, math.inf, -math.inf, 10.00001, 1e22], "y": [None] * 7})


def test_values_that_are_equal_but_are_not_written_alike():
    check({"x": [0.0, -0.0, 0.0], "y": [[1], [1.0], [1]], "z": [[0.0], [-0.0], [0.0]], "w": [True, 1, True]})


def test_a_carriage_return_is_quoted():
    """The module leaves it bare before Python 3.13, and then cannot read its own file."""
    table = {"x\r": ["a\rb", "c\r\n"], "y": [1, 2]}
    read = csv.reader(io.StringIO("".join(csv_lines(table)), newline=""))
    assert list(read) == [["x\r", "y"], ["a\rb", "1"], ["c\r\n", "2"]]
