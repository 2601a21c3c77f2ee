"""Whatever bytes come in, nothing but `MemcapError` comes out."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import memcap
from memcap.errors import MemcapError

ENCODINGS = st.sampled_from(["words", "characters", "bytes", "integers"])
OPTIONS = st.fixed_dictionaries(
    {"encoding": ENCODINGS, "ordered": st.booleans(), "on_conflict": st.sampled_from(["error", "drop", "first"])}
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def attempt(function, *arguments, **options):
    """What the function returns, or our error; any other exception fails the test."""
    try:
        return function(*arguments, **options)
    except MemcapError as error:
        return error


def survives(path, content, **options):
    """Read it; either data that holds together or one of our errors with a message."""
    path.write_bytes(content)
    data = attempt(memcap.read_sequences, path, **options)
    if isinstance(data, MemcapError):
        assert str(data).strip()
        return
    assert len(data) >= 2
    assert data.classes >= 2
    assert (data.lengths >= 1).all()
    assert len(data.content_hash) == 64
    for i in range(len(data)):
        data.item(i)


cells = st.one_of(
    st.binary(max_size=8),
    st.sampled_from(
        [b"1", b"2", b"-3", b"1.5", b"a b", b'"', b'"x\n"', b"", b"\xff", b"\r", b"\0", b"true", b"nan", b"1 2"]
    ),
)


def tables(separator):
    lines = st.lists(st.lists(cells, min_size=1, max_size=3).map(separator.join), max_size=8)
    newline = st.sampled_from([b"\n", b"\r\n", b"\r"])
    headed = st.tuples(lines, newline).map(lambda t: t[1].join([b"s" + separator + b"l", *t[0]]))
    return st.one_of(st.binary(max_size=80), headed, headed.map(lambda content: b"\xef\xbb\xbf" + content))


@given(tables(b","), OPTIONS)
@example(b"s,l\n" + b'"' * 7, {"encoding": "words"})
@example(b"s,l\n1,1\r2,2\r", {"encoding": "integers"})
def test_csv(folder, content, options):
    survives(folder / "a.csv", content, sequence="s", label="l", **options)


@given(tables(b"\t"), OPTIONS)
def test_tsv(folder, content, options):
    survives(folder / "a.tsv", content, sequence="s", label="l", **options)


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(['"\\ud800"', "1e999"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=2)),
    max_leaves=6,
)
json_lines = st.lists(
    st.one_of(
        st.builds(lambda s, v: b'{"s": ' + dump(s) + b', "l": ' + dump(v) + b"}", json_values, json_values),
        st.builds(lambda v: b'{"s": "x' + str(v).encode() + b'", "l": ' + str(v).encode() + b"}", st.integers(0, 5)),
        st.binary(max_size=12),
    ),
    max_size=6,
).map(b"\n".join)


def dump(value):
    import json

    return value.encode() if isinstance(value, str) and value.startswith(('"\\', "1e")) else json.dumps(value).encode()


@given(json_lines, OPTIONS)
def test_jsonl(folder, content, options):
    survives(folder / "a.jsonl", content, sequence="s", label="l", **options)


@given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda t: t.encode("utf-8", "surrogatepass"))),
       OPTIONS, st.integers(1, 3), st.integers(1, 3))  # fmt: skip
def test_text(folder, content, options, window, stride):
    survives(folder / "a.txt", content, window=window, stride=stride, **options)


@given(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(lambda b: b"PAR1" + b + b"PAR1")), OPTIONS)
def test_bytes_as_parquet(folder, content, options):
    survives(folder / "a.parquet", content, sequence="s", label="l", **options)


@given(st.data(), OPTIONS)
def test_a_cut_parquet_file(folder, data, options):
    whole = folder / "whole.parquet"
    pq.write_table(pa.table({"s": ["a b", "c", "d"], "l": [1, 2, 3]}), whole)
    content = whole.read_bytes()
    survives(
        folder / "b.parquet", content[: data.draw(st.integers(0, len(content)))], sequence="s", label="l", **options
    )


columns = st.one_of(
    st.lists(st.one_of(st.none(), st.text(max_size=4)), min_size=3, max_size=3),
    st.lists(st.one_of(st.none(), st.integers(-3, 2**63 - 1)), min_size=3, max_size=3),
    st.lists(st.floats(), min_size=3, max_size=3),
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.lists(st.binary(max_size=4), min_size=3, max_size=3),
    st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=3, max_size=3),
    st.lists(st.lists(st.text(max_size=3), max_size=3), min_size=3, max_size=3),
    st.lists(st.one_of(st.none(), st.datetimes(), st.just(None)), min_size=3, max_size=3),
    st.lists(st.fixed_dictionaries({"x": st.integers(0, 3)}), min_size=3, max_size=3),
)


@given(columns, columns, OPTIONS)
def test_parquet_columns_of_any_type(folder, sequences, labels, options):
    path = folder / "typed.parquet"
    pq.write_table(pa.table({"s": sequences, "l": labels}), path)
    survives(path, path.read_bytes(), sequence="s", label="l", **options)


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.binary(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.tuples(inner), st.dictionaries(st.text(max_size=2), inner)),
    max_leaves=12,
)


@given(anything, anything, st.booleans())
def test_anything_as_arrays(tokens, labels, ordered):
    made = attempt(memcap.SequenceData.from_arrays, tokens, labels, ordered=ordered)
    assert str(made).strip()
