"""Reading tables: all formats agree, types come back, and the traps of real files (BOM, CRLF, Unicode) no surprise."""

import csv
import datetime
import decimal
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memcap
from memcap.data import csvtable, jsonltable, learn
from memcap.data.encoding import Encoding
from memcap.errors import DomainError

CITIES = [
    ("Lyon", "France"),
    ("New York", "USA"),
    ("São Paulo", "Brazil"),
    ('Quote "Q", Ltd', "USA"),
    ("Lyon", "France"),
]


def write(folder, rows, format, columns=("city", "country")):
    path = folder / f"data.{format}"
    if format in ("csv", "tsv"):
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="," if format == "csv" else "\t")
            writer.writerows([columns, *rows])
    elif format == "jsonl":
        lines = [json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) for row in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        values = [[row[i] for row in rows] for i in range(len(columns))]
        pq.write_table(pa.table(dict(zip(columns, values, strict=True))), path)
    return path


def read(path, **options):
    return memcap.read_sequences(path, sequence="city", label="country", **options)


@pytest.mark.parametrize("encoding", ["words", "characters", "bytes"])
@pytest.mark.parametrize("ordered", [True, False])
def test_all_formats_give_the_same_data(tmp_path, encoding, ordered):
    found = [
        read(write(tmp_path, CITIES, format), encoding=encoding, ordered=ordered)
        for format in ("csv", "tsv", "jsonl", "parquet")
    ]
    assert {data.content_hash for data in found} == {found[0].content_hash}
    assert [(len(data), data.duplicates, data.classes) for data in found] == [(4, 1, 3)] * 4
    assert [data.rows.tolist() for data in found] == [[2, 3, 4, 5], [2, 3, 4, 5], [1, 2, 3, 4], [1, 2, 3, 4]]
    assert [data.row_unit for data in found] == ["line", "line", "line", "row"]


def test_items_decode_to_what_was_written(tmp_path):
    path = write(tmp_path, CITIES, "csv")
    assert [read(path, encoding="characters").item(i) for i in range(3)] == ["Lyon", "New York", "São Paulo"]
    assert read(path, encoding="bytes").item(2) == "São Paulo".encode()
    assert read(path).item(3) == ["Quote", '"', "Q", '"', ",", "Ltd"]
    assert read(path).label_names == ("USA", "Brazil", "France")


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "parquet"])
def test_integers(tmp_path, format):
    lists = [[3, 1, 4], [1], [5, 9]]
    rows = [(" ".join(map(str, ids)) if format in ("csv", "tsv") else ids, i) for i, ids in enumerate(lists)]
    data = read(write(tmp_path, rows, format), encoding="integers")
    assert data.content_hash == memcap.SequenceData.from_arrays(lists, [0, 1, 2]).content_hash
    assert [data.item(i) for i in range(3)] == lists


def test_integers_with_commas_and_single_ones(tmp_path):
    data = read(write(tmp_path, [("3,1,4", "a"), ("[1, 2]", "b"), ("7", "c")], "csv"), encoding="integers")
    assert [data.item(i) for i in range(3)] == [[3, 1, 4], [1, 2], [7]]
    single = read(write(tmp_path, [(5, "a"), (2**62 - 1, "b")], "jsonl"), encoding="integers")
    assert single.tokens.tolist() == [[5], [2**62 - 1]]
    assert read(write(tmp_path, [(5, "a"), (6, "b")], "parquet"), encoding="integers").tokens.tolist() == [[5], [6]]


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_lists_of_strings_are_taken_as_they_are(tmp_path, format):
    data = read(write(tmp_path, [(["New York", "x y"], 1), (["New York"], 2)], format))
    assert data.encoding.symbols == ("New York", "x y")
    assert data.item(0) == ["New York", "x y"]


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_list_of_labels_is_one_per_position(tmp_path, format):
    data = read(write(tmp_path, [("a b", ["x", "y"]), ("c", ["y"])], format))
    assert data.per_position
    assert [[data.label_names[c] for c in row if c >= 0] for row in data.labels] == [["x", "y"], ["y"]]


@pytest.mark.parametrize(
    ("written", "names"),
    [
        (["7", "-3", "0"], {7, -3, 0}),
        (["007", "7", "8"], {"007", "7", "8"}),
        (["true", "False"], {True, False}),
        (["true", "False", "maybe"], {"true", "False", "maybe"}),
        (["NA", "null", "None"], {"NA", "null", "None"}),
        (["1.5", "x"], {"1.5", "x"}),
        (["2024-02-29", "2024-03-01"], {"2024-02-29", "2024-03-01"}),
        ([" a", "a "], {" a", "a "}),
        (["+5", "-0"], {"+5", "-0"}),
        ([str(2**70), "1"], {2**70, 1}),
    ],
)
def test_types_of_csv_labels(tmp_path, written, names):
    data = read(write(tmp_path, [(f"w{i}", label) for i, label in enumerate(written)], "csv"))
    assert set(data.label_names) == names
    assert sorted(map(repr, data.label_names)) == sorted(map(repr, names))


@pytest.mark.parametrize(
    ("stored", "names"),
    [
        (pa.array([1, 2], pa.uint8()), {1, 2}),
        (pa.array([True, False]), {True, False}),
        (pa.array(["x", "y"], pa.large_string()), {"x", "y"}),
        (pa.array(["x", "y"]).dictionary_encode(), {"x", "y"}),
        (pa.array([datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)]), {"2024-02-29", "2024-03-01"}),
        (pa.array([decimal.Decimal("1.50"), decimal.Decimal("2.50")]), {"1.50", "2.50"}),
    ],
)
def test_types_of_parquet_labels(tmp_path, stored, names):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"city": ["a", "b"], "country": stored}), path)
    data = read(path)
    assert sorted(map(repr, data.label_names)) == sorted(map(repr, names))


def test_json_labels_of_mixed_types_stay_apart(tmp_path):
    data = read(write(tmp_path, [("a", 1), ("b", "1"), ("c", True), ("d", 1)], "jsonl"))
    assert [repr(name) for name in data.label_names] == ["1", "True", "'1'"]


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl"])
def test_byte_order_marks_and_line_ends_change_nothing(tmp_path, format):
    path = write(tmp_path, CITIES, format)
    plain = path.read_bytes().replace(b"\r\n", b"\n")
    expected = read(path)
    for content in (
        plain,
        plain.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + plain,
        plain.rstrip(b"\n"),
        plain + b"\n\n",
    ):
        path.write_bytes(content)
        data = read(path)
        assert data.content_hash == expected.content_hash
        assert data.rows.tolist() == expected.rows.tolist()


def test_lines_are_counted_as_an_editor_counts_them(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('city,country\n\n"two\nlines",a\nx,b\n\n\ny,c\n', encoding="utf-8")
    assert read(path).rows.tolist() == [3, 5, 8]
    path = tmp_path / "data.jsonl"
    path.write_text('\n{"city": "a\u2028b", "country": 1}\n\n{"city": "c", "country": 2}', encoding="utf-8")
    assert read(path).rows.tolist() == [2, 4]


def test_unicode_is_not_normalised(tmp_path):
    data = read(write(tmp_path, [("é", "one"), ("e\u0301", "two"), ("日本", "three")], "csv"), encoding="characters")
    assert data.encoding.symbols == ("e", "é", "\u0301", "日", "本")


def test_columns_called_sequence_and_label_need_no_name(tmp_path):
    path = write(tmp_path, [("1", "a", "x"), ("2", "b", "y")], "csv", columns=("id", "sequence", "label"))
    assert memcap.read_sequences(path).label_names == ("x", "y")


def test_the_format_can_be_said(tmp_path):
    path = write(tmp_path, CITIES, "csv").rename(tmp_path / "cities.dat")
    assert len(read(path, format="csv")) == 4
    assert len(read(str(path), format="csv")) == 4


def test_a_given_encoding_is_used_as_it_is(tmp_path):
    path = write(tmp_path, [("b", 1), ("a b", 2)], "csv")
    encoding = Encoding.of_symbols("words", ["b", "a", "z"])
    data = read(path, encoding=encoding)
    assert data.tokens.tolist() == [[0, 3], [1, 0]]
    assert data.encoding is encoding
    with pytest.raises(DomainError) as caught:
        read(path, encoding=Encoding.of_symbols("words", ["b"]))
    assert str(caught.value) == f"{path}, line 3: unknown word 'a': it does not occur in the data"


def test_a_tokenizer_file(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[U]": 0, "Lyon": 1, "New": 2}, unk_token="[U]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    path = write(tmp_path, [("New Lyon", 1), ("Lyon", 2)], "csv")
    data = read(path, encoding=tmp_path / "tokenizer.json")
    assert data.tokens.tolist() == [[2, 1], [1, 3]]
    assert read(path, encoding=str(tmp_path / "tokenizer.json")).content_hash == data.content_hash
    (tmp_path / "tokenizer.json").unlink()
    assert Encoding.from_json(data.encoding.to_json()).encode("New") == [2]


def test_progress_is_told(tmp_path, monkeypatch):
    for module in (csvtable, jsonltable, learn):
        monkeypatch.setattr(module, "EVERY", 100)
    for format in ("csv", "jsonl"):
        told = []
        path = write(tmp_path, [(f"w{i}", i % 3) for i in range(250)], format)
        read(path, progress=lambda done, total, what, told=told: told.append((done, total, what)))
        assert {what for _, _, what in told} == {"reading", "encoding"}
        assert all(0 < done <= total for done, total, _ in told)
        assert told[-1] == (250, 250, "encoding")


text = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1, max_size=6).filter(str.strip)


@settings(max_examples=25)
@given(st.lists(st.tuples(text, st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)), min_size=2, max_size=8))
def test_any_text_survives_every_format(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("any")
    rows = [*dict(rows).items(), ("first \u0085", "class \u2028"), ("second\x1c", 'other "\t')]
    for format in ("csv", "tsv", "jsonl", "parquet"):
        data = read(write(folder, rows, format), encoding="characters", on_conflict="first")
        assert {data.item(i): data.label_names[data.labels[i]] for i in range(len(data))} == dict(rows)


def test_many_rows_keep_their_lines(tmp_path):
    draw = np.random.default_rng(5)
    rows = [(f"{a} {b}", int(a + b) % 7) for a, b in draw.integers(300, size=(2_000, 2))]
    data = read(write(tmp_path, rows, "tsv"))
    for i in (0, 777, len(data) - 1):
        sequence, label = rows[data.rows[i] - 2]
        assert (" ".join(data.item(i)), data.label_names[data.labels[i]]) == (sequence, label)
