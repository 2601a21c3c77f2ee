"""Every way a file can be wrong: one clear message with file and line.  The table holds the whole text."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import memcap
from memcap.data.windows import check_window
from memcap.errors import ConfigurationError, ConflictError, DataError, MemcapError, MissingExtraError

CSV = b"city,country\nLyon,France\nRome,Italy\n"


def complaint(tmp_path, content, name="data.csv", **options):
    """The message about a file with this content, the folder cut off."""
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    columns = (
        {} if name.endswith(".txt") or options.get("format") == "text" else {"sequence": "city", "label": "country"}
    )
    with pytest.raises(MemcapError) as caught:
        memcap.read_sequences(path, **{**columns, **options})
    return caught.value, str(caught.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "data.csv: the file is empty"),
        (b"\xef\xbb\xbf", "data.csv: the file is empty"),
        (b"\n\n", "data.csv: the file is empty"),
        (b"city,country\n", "data.csv: a header but 0 rows: nothing to learn"),
        (b"cities,country\na,b\n", "data.csv: no column 'city' (did you mean 'cities'?); columns: 'cities', 'country'"),
        (b"x,y\na,b\n", "data.csv: no column 'city'; columns: 'x', 'y'"),
        (b"city,country,city\na,b,c\n", "data.csv: column 'city' is there 2 times; rename one"),
        (
            b"city;country\na;b\n",
            "data.csv, line 1: one column 'city;country'; the separator here is ',': "
            "use format='csv' for commas, 'tsv' for tabs",
        ),
        (
            CSV + b"Bern,Switzerland,CH\n",
            "data.csv, line 4: expected 2 columns (city, country), got 3; quote fields that hold ','",
        ),
        (CSV + b"Bern\n", "data.csv, line 4: expected 2 columns (city, country), got 1; quote fields that hold ','"),
        (CSV + b'"Bern,CH\n\n', "data.csv, line 4: a quoted field that starts here is never closed"),
        (CSV + b'"Bern"x,CH\n', "data.csv, line 4: broken line (',' expected after '\"')"),
        (CSV + b"Bern,\n", "data.csv, line 4: the label is null (column 'country' is empty)"),
        (CSV + b",CH\n", "data.csv, line 4: empty sequence"),
        (CSV + b'"  ",CH\n', "data.csv, line 4: empty sequence (from '  ')"),
        (CSV + b"Z\xfcrich,CH\n", "data.csv, line 4: byte 2 of the line (0xFC) is not UTF-8; save the file as UTF-8"),
        (
            "city,country\n".encode("utf-16"),
            "data.csv, line 1: looks like UTF-16, expected UTF-8; save the file as UTF-8",
        ),
        (
            CSV + b"x" * 200_000 + b",CH\n",
            "data.csv, line 4: gigantic field, over 131072 characters; is a quote missing? "
            "JSONL and Parquet hold longer sequences",
        ),
        (b"city,country\na,1\nb,2.5\nc,3\n", "data.csv, line 3: the label is a float ('2.5' in column 'country'); "
         "map floats to classes first (whole numbers or text)"),
        (b"city,country\na,1e3\nb,nan\n", "data.csv, line 2: the label is a float ('1e3' in column 'country'); "
         "map floats to classes first (whole numbers or text)"),
        (b"city,country\na,x\nb,x\n", "data.csv: one class only ('x'): nothing to learn"),
    ],
)  # fmt: skip
def test_csv(tmp_path, content, text):
    error, got = complaint(tmp_path, content)
    assert got == text
    assert isinstance(error, DataError)
    assert error.exit_code == 2


def test_csv_options(tmp_path):
    _, text = complaint(tmp_path, CSV, label="city")
    assert text == "data.csv: column 'city' is both sequence and label; name two different columns"
    _, text = complaint(tmp_path, CSV, sequence=None)
    assert text == "data.csv: which column is the sequence? Pass sequence=...; columns: 'city', 'country'"
    _, text = complaint(tmp_path, CSV, label=None)
    assert text == "data.csv: which column is the label? Pass label=...; columns: 'city', 'country'"
    _, text = complaint(tmp_path, CSV, encoding="integers")
    assert text == "data.csv, line 2: expected whole numbers such as '1 2 3' or '1,2,3', got 'Lyon' in 'Lyon'"
    _, text = complaint(tmp_path, b"city,country\n-4 1,a\n", encoding="integers")
    assert text == "data.csv, line 2: token ids must not be negative, got -4"


def test_a_line_after_a_quoted_line_break_keeps_its_number(tmp_path):
    content = b'city,country\n"a\nb",x\nc,d,e\n'
    assert complaint(tmp_path, content)[1].startswith("data.csv, line 4: expected 2 columns")


def test_conflicts_name_lines_and_remedies(tmp_path):
    error, text = complaint(tmp_path, CSV + b"Lyon,Texas\n")
    assert isinstance(error, ConflictError)
    assert text == (
        "data.csv: 1 sequence carries more than one label:\n"
        "  'Lyon': line 2 -> 'France', 4 -> 'Texas'\n"
        "choose on_conflict='drop' (leave them out) or 'first' (keep the first label) "
        "(--on-conflict on the command line)"
    )
    error, text = complaint(tmp_path, CSV + b"a b,x\nb a,y\n", ordered=False)
    assert error.kind == "permutation"
    assert "data.csv: 1 multiset of tokens carries more than one label:\n  'a b': line 4 -> 'x', 5 -> 'y'\n" in text
    assert len(memcap.read_sequences(tmp_path / "data.csv", sequence="city", label="country")) == 4


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\n \n", "data.jsonl: 0 rows: nothing to learn"),
        (b"{}\n", "data.jsonl, line 1: no column 'city'; columns: none"),
        (b'{"cty": 1}', "data.jsonl, line 1: no column 'city' (did you mean 'cty'?); columns: 'cty'"),
        (b'{"city": "a", "country": 1}\n{"city": "b"}', "data.jsonl, line 2: no field 'country'; fields: 'city'"),
        (b'{"city": "a", "country": 1}\n{}', "data.jsonl, line 2: no field 'city'; fields: none"),
        (b'{"city": "a", "country": 1}\n{"city"', "data.jsonl, line 2, column 8: not JSON (Expecting ':' delimiter)"),
        (b'{"city": "a", "country": 1}\n[1]', "data.jsonl, line 2: expected an object {...}, got a JSON list"),
        (b'{"city": null, "country": 1}', "data.jsonl, line 1: the sequence is null (field 'city')"),
        (b'{"city": "a", "country": null}', "data.jsonl, line 1: the label is null (field 'country')"),
        (b'{"city": "a", "city": "b", "country": 1}', "data.jsonl, line 1: field 'city' is there twice"),
        (b'{"city": ' + b"[" * 100_000, "data.jsonl, line 1: not usable JSON (nested too deeply)"),
        (
            b'{"city": "a", "country": ' + b"1" * 5000 + b"}",
            "data.jsonl, line 1: not usable JSON (a number with too many digits)",
        ),
        (
            b'{"city": "a", "country": 0.5}',
            "data.jsonl, line 1: the label is a float (0.5); map floats to classes first (whole numbers or text) "
            "(column 'country')",
        ),
        (b'{"city": "a", "country": NaN}', "data.jsonl, line 1: the label is null (column 'country')"),
        (
            b'{"city": "a", "country": {"x": 1}}',
            "data.jsonl, line 1: labels must be text, whole numbers or truth values, got {'x': 1} of type dict "
            "(column 'country')",
        ),
        (
            b'{"city": "a b", "country": ["x", "y"]}\n{"city": "a b", "country": ["x"]}',
            "data.jsonl, line 2: 2 tokens but 1 labels (column 'country')",
        ),
        (
            b'{"city": "a b", "country": ["x", "y"]}\n{"city": "a b", "country": "x"}',
            "data.jsonl, line 2: label 'x' among labels of another shape (column 'country')",
        ),
        (
            b'{"city": [1, 2], "country": 1}',
            "data.jsonl, line 1: encoding 'words' expects text, got [1, 2] of type list; pass encoding='integers'",
        ),
        (
            b'{"city": "a\\ud800", "country": 1}',
            "data.jsonl, line 1: text holds half a character (lone surrogate U+D800); repair the file",
        ),
        (b'{"city": [], "country": 1}', "data.jsonl, line 1: empty sequence"),
        (b'{"city": "\xff"}', "data.jsonl, line 1: byte 11 of the line (0xFF) is not UTF-8; save the file as UTF-8"),
    ],
)
def test_jsonl(tmp_path, content, text):
    error, got = complaint(tmp_path, content, "data.jsonl")
    assert got == text
    assert isinstance(error, DataError)


def test_a_gigantic_json_line(tmp_path):
    content = b'{"city": "' + b"x" * 2**24 + b'", "country": 1}'
    _, text = complaint(tmp_path, content, "data.jsonl")
    assert text == "data.jsonl, line 1: gigantic line of 16777242 characters (limit 16777216); one object per line"


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"cities": ["a"], "country": ["b"]}, "data.parquet: no column 'city' (did you mean 'cities'?); "
         "columns: 'cities', 'country'"),
        ({"city": pa.array([], pa.string()), "country": pa.array([], pa.string())},
         "data.parquet: 0 rows: nothing to learn"),
        ({"city": ["a", None], "country": [1, 2]}, "data.parquet, row 2: the sequence is null (column 'city')"),
        ({"city": ["a", "b"], "country": [None, 2]}, "data.parquet, row 1: the label is null (column 'country')"),
        ({"city": ["a", "b"], "country": [1.0, 2.0]}, "data.parquet, row 1: the label is a float (1.0); "
         "map floats to classes first (whole numbers or text) (column 'country')"),
        ({"city": ["a", ""], "country": [1, 2]}, "data.parquet, row 2: empty sequence"),
        ({"city": [[1], [2, None]], "country": [1, 2]}, "data.parquet, row 2: expected whole numbers, got None of "
         "type NoneType"),
        ({"city": ["a", "b"], "country": [1, 1]}, "data.parquet: one class only (1): nothing to learn"),
    ],
)  # fmt: skip
def test_parquet(tmp_path, columns, text):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table(columns), path)
    encoding = "integers" if "expected whole" in text else "words"
    assert complaint(tmp_path, None, "data.parquet", encoding=encoding)[1] == text


def test_what_is_not_parquet(tmp_path):
    assert complaint(tmp_path, CSV, "data.parquet")[1].startswith("data.parquet: not a Parquet file (Parquet magic")
    pq.write_table(pa.table({"city": ["a", "b"] * 500, "country": [1, 2] * 500}), tmp_path / "data.parquet")
    content = bytearray((tmp_path / "data.parquet").read_bytes())
    content[4:40] = b"\xff" * 36
    assert complaint(tmp_path, bytes(content), "data.parquet")[1].startswith(
        "data.parquet: the Parquet file is damaged ("
    )


@pytest.mark.parametrize(
    ("content", "options", "text"),
    [
        (b"a b c", {}, "data.txt: text is read in windows; pass window=16 (command line: --window 16)"),
        (b"a b c", {"window": 3}, "data.txt: 3 words are too few for a window of 3 and the word after it"),
        (b"a b c", {"window": 0}, "window must be a whole number >= 1, got 0"),
        (b"a b c", {"window": 1, "stride": 0}, "stride must be a whole number >= 1, got 0"),
        (b"a b c", {"window": 2}, "data.txt: one class only ('c'): nothing to learn"),
        (b" \n ", {"window": 2}, "data.txt, line 1: empty sequence (from ' \\n ')"),
        (b"", {"window": 2}, "data.txt: the file is empty"),
        (b"a\nb \xe9", {"window": 2}, "data.txt, line 2: byte 3 of the line (0xE9) is not UTF-8; "
         "save the file as UTF-8"),
        (b"a b c", {"window": 1, "label": "x"}, "text has no columns: leave out sequence and label, pass window"),
        (b"1 2 x", {"window": 1, "encoding": "integers"}, "data.txt, line 1: expected whole numbers such as '1 2 3' "
         "or '1,2,3', got 'x' in '1 2 x'"),
    ],
)  # fmt: skip
def test_text(tmp_path, content, options, text):
    assert complaint(tmp_path, content, "data.txt", **options)[1] == text


def test_windows_are_whole_numbers():
    with pytest.raises(ConfigurationError, match=r"^window must be a whole number >= 1, got 2.0$"):
        check_window(2.0, 1)
    with pytest.raises(ConfigurationError, match=r"^stride must be a whole number >= 1, got True$"):
        check_window(2, True)


def test_text_conflicts_say_what_rows_are(tmp_path):
    error, text = complaint(tmp_path, b"a b c a b d", "data.txt", window=2)
    assert error.groups[0].rows == (1, 4)
    assert text == (
        "data.txt: 1 sequence carries more than one label (word = position of the window's first word):\n"
        "  'a b': word 1 -> 'c', 4 -> 'd'\n"
        "choose on_conflict='drop' (leave them out) or 'first' (keep the first label) "
        "(--on-conflict on the command line)"
    )


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("data.xlsx", {}, "data.xlsx: cannot tell the format from '.xlsx'; "
         "pass format= one of csv, tsv, jsonl, parquet, text"),
        ("data", {}, "data: cannot tell the format from 'a name without suffix'; "
         "pass format= one of csv, tsv, jsonl, parquet, text"),
        ("data.csv", {"format": "cvs"}, "no format 'cvs' (did you mean 'csv'?); known: csv, tsv, jsonl, parquet, text"),
        ("data.csv", {"window": 3}, "window and stride are for text, not for csv; pass format='text' to read windows"),
        ("data.csv", {"stride": 3}, "window and stride are for text, not for csv; pass format='text' to read windows"),
        ("data.csv", {"on_conflict": "dorp"}, "on_conflict must be one of error, drop, first, got 'dorp' "
         "(did you mean 'drop'?)"),
        ("data.csv", {"encoding": "wrods"}, "no encoding 'wrods' (did you mean 'words'?); expected words, characters, "
         "bytes, integers or the path of a tokenizer.json"),
    ],
)  # fmt: skip
def test_options(tmp_path, name, options, text):
    error, got = complaint(tmp_path, CSV, name, **options)
    assert got == text
    assert isinstance(error, ConfigurationError)


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "cities.csv").write_bytes(CSV)
    assert complaint(tmp_path, None, "citys.csv")[1] == "citys.csv: no such file (did you mean 'cities.csv'?)"
    (tmp_path / "one.csv").write_text("x")
    assert complaint(tmp_path, None, "nofile.csv")[1] == "nofile.csv: no such file"
    assert complaint(tmp_path, None, "none/x.csv")[1] == "none/x.csv: no such file"
    assert complaint(tmp_path, None, "cities.csv/x.csv")[1] == "cities.csv/x.csv: no such file"
    (tmp_path / "folder.csv").mkdir()
    assert complaint(tmp_path, None, "folder.csv")[1] == "folder.csv: is a folder, expected a file"
    with pytest.raises(DataError) as caught:
        memcap.read_sequences("a\0b.csv", sequence="a", label="b")
    assert str(caught.value) == "a\0b.csv: cannot be read (embedded null byte)"
    assert complaint(tmp_path, CSV, encoding="no.json")[1] == "no.json: no such file"


def test_a_tokenizer_needs_its_package(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    error, text = complaint(tmp_path, CSV, encoding=tmp_path / "tokenizer.json")
    assert isinstance(error, MissingExtraError)
    assert text == "this needs the package 'tokenizers'; install it with: pip install 'memcap[tokenizers]'"
