"""Encodings: text to ids and back, what is refused, and what a saved memory keeps of them."""

import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcap.data.encoding import Encoding
from memcap.data.symbols import parse_integers, split_item, split_words
from memcap.errors import ConfigurationError, DataError, DomainError, FormatError, MissingExtraError

VOCABULARY = {"[UNK]": 0, "Lyon": 1, "Paris": 2, "é": 3}


@pytest.fixture(scope="module")
def tokenizer_json():
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.enable_padding(length=9)
    tokenizer.enable_truncation(1)
    return tokenizer.to_str()


def everyone(tokenizer_json):
    return [
        Encoding.of_symbols("words", ["Lyon", "Paris", "é"]),
        Encoding.of_symbols("characters", ["L", "n", "o", "y", "é"]),
        Encoding.of_bytes(),
        Encoding.of_integers(2**62),
        Encoding.of_tokenizer(tokenizer_json),
    ]


def test_words_are_split_by_the_written_pattern():
    assert split_words("Don't_stop\u2014Zoë\u00a0x2 \u4f60\u597d!?") == [
        "Don", "'", "t_stop", "\u2014", "Zoë", "x2", "\u4f60\u597d", "!", "?",
    ]  # fmt: skip
    assert split_words(" \t\n") == []
    assert split_words("e\u0301") == ["e", "\u0301"]  # text is not normalised


def test_every_kind_encodes_and_decodes(tokenizer_json):
    words, characters, octets, integers, tokenizer = everyone(tokenizer_json)
    assert words.encode("é Lyon") == words.encode(["é", "Lyon"]) == words.encode(("é", "Lyon")) == [2, 0]
    assert words.decode([2, 0, 3]) == ["é", "Lyon"]  # 3 is padding
    assert characters.encode("Lyon") == [0, 3, 2, 1]
    assert characters.decode([0, 3, 2, 1, 5]) == "Lyon"
    assert octets.encode("é") == octets.encode(b"\xc3\xa9") == [195, 169]
    assert octets.decode([195, 169, 256]) == b"\xc3\xa9"
    assert integers.encode([3, 2**62 - 1]) == [3, 2**62 - 1]
    assert integers.encode(7) == integers.encode("7") == integers.encode(np.int8(7)) == [7]
    assert tokenizer.encode("Paris é Rome") == [2, 3, 0]  # padding and truncation of the file are switched off
    assert tokenizer.decode([2, 3]) == "Paris é"
    assert [e.vocabulary_size for e in everyone(tokenizer_json)] == [3, 5, 256, 2**62, 4]
    assert [e.pad for e in everyone(tokenizer_json)] == [3, 5, 256, 2**62, 4]
    assert [e.unit for e in everyone(tokenizer_json)] == ["word", "character", "byte", "integer", "token"]
    assert [e.symbol(1) for e in everyone(tokenizer_json)] == ["Paris", "n", 1, 1, "Lyon"]
    assert [e.show([1, 2]) for e in everyone(tokenizer_json)] == ["Paris é", "no", "\x01\x02", "1 2", "Lyon Paris"]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("1 2 3", [1, 2, 3]),
        ("1,2,3", [1, 2, 3]),
        (" 1 ;2\t3 ", [1, 2, 3]),
        ("[1, 2]", [1, 2]),
        ("(1 2)", [1, 2]),
        ("007", [7]),
        ("", []),
        ("[]", []),
        (str(2**62 - 1), [2**62 - 1]),
        ("0" * 5000 + "5", [5]),
    ],
)
def test_integers_as_text(text, ids):
    assert parse_integers(text) == ids


@given(st.lists(st.integers(0, 2**62 - 1)), st.sampled_from([" ", ",", ", ", ";", "\n"]))
def test_integers_as_text_and_as_lists_agree(ids, separator):
    assert parse_integers(separator.join(map(str, ids))) == ids == parse_integers(ids)


@pytest.mark.parametrize(
    ("kind", "raw", "text"),
    [
        ("integers", "1 x", "expected whole numbers such as '1 2 3' or '1,2,3', got 'x' in '1 x'"),
        ("integers", "1,,2", "expected whole numbers such as '1 2 3' or '1,2,3', got '' in '1,,2'"),
        ("integers", "1.5", "expected whole numbers such as '1 2 3' or '1,2,3', got '1.5' in '1.5'"),
        ("integers", "1_0", "expected whole numbers such as '1 2 3' or '1,2,3', got '1_0' in '1_0'"),
        ("integers", "\u0661", "expected whole numbers such as '1 2 3' or '1,2,3', got '\u0661' in '\u0661'"),
        ("integers", "4 -3", "token ids must not be negative, got -3"),
        ("integers", [4, -3], "token ids must not be negative, got -3"),
        ("integers", "9" * 5000, "token ids must be below 2^62, got " + "9" * 59 + "…"),
        ("integers", str(2**62), f"token ids must be below 2^62, got {2**62}"),
        ("integers", [1, 2.0], "expected whole numbers, got 2.0 of type float"),
        ("integers", [1, "2"], "expected whole numbers, got '2' of type str"),
        ("integers", True, "expected whole numbers, got True of type bool"),
        ("integers", None, "expected whole numbers, got None of type NoneType"),
        ("integers", b"12", "expected whole numbers, got bytes b'12'"),
        ("words", [1, 2], "encoding 'words' expects text, got [1, 2] of type list; pass encoding='integers'"),
        ("words", 7, "encoding 'words' expects text, got 7 of type int; pass encoding='integers'"),
        ("words", ["a", 1], "encoding 'words' expects text, got ['a', 1] of type list"),
        ("words", np.array([1]), "encoding 'words' expects text, got array([1]) of type ndarray; "
         "pass encoding='integers'"),
        ("characters", ["a"], "encoding 'characters' expects text, got ['a'] of type list"),
        ("characters", None, "encoding 'characters' expects text, got None of type NoneType"),
        ("bytes", 1.5, "encoding 'bytes' expects text, got 1.5 of type float"),
        ("characters", "a\ud800", "text holds half a character (lone surrogate U+D800); repair the file"),
        ("words", ["a\udfff"], "text holds half a character (lone surrogate U+DFFF); repair the file"),
    ],
)  # fmt: skip
def test_every_complaint_about_an_item(kind, raw, text):
    with pytest.raises(DataError) as caught:
        split_item(kind, raw)
    assert str(caught.value) == text


def test_unknown_symbols_are_named(tokenizer_json):
    words, characters, _, _, _ = everyone(tokenizer_json)
    for encoding, raw, text in (
        (words, "Lyon Rome", "unknown word 'Rome': it does not occur in the data"),
        (characters, "Ly!", "unknown character '!': it does not occur in the data"),
        (Encoding.of_integers(4), "3 4", "unknown integer 4: the data holds integers up to 3"),
    ):
        with pytest.raises(DomainError) as caught:
            encoding.encode(raw)
        assert str(caught.value) == text
    with pytest.raises(DomainError, match=r"^token id 9 is outside \[0, 3\)$"):
        words.decode([9])


def test_batches_are_padded_and_complaints_are_numbered():
    words = Encoding.of_symbols("words", ["a", "b"])
    tokens, lengths = words.encode_batch(["a b", "b"])
    assert (tokens.tolist(), lengths.tolist()) == ([[0, 1], [1, 2]], [2, 1])
    assert words.encode_batch(["a"], length=3)[0].tolist() == [[0, 2, 2]]
    assert words.encode_batch([], length=3)[0].shape == (0, 3)
    for items, error, text in (
        (["a", "c"], DomainError, "item 2: unknown word 'c': it does not occur in the data"),
        (["a", " "], DomainError, "item 2: empty sequence ' '"),
        (["a a a a"], DomainError, "item 1: 4 words, longer than the longest known (3)"),
        ([5], DataError, "item 1: encoding 'words' expects text, got 5 of type int; pass encoding='integers'"),
        ("a", DataError, "expected a list of items, got one str; write ['a']"),
    ):
        with pytest.raises(error) as caught:
            words.encode_batch(items, length=3)
        assert str(caught.value) == text


def test_everything_needed_is_in_the_record(tokenizer_json):
    for encoding in everyone(tokenizer_json):
        again = Encoding.from_json(json.loads(json.dumps(encoding.to_json())))
        assert again == encoding
    assert Encoding.from_json(Encoding.of_tokenizer(tokenizer_json).to_json()).encode("Paris") == [2]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (None, "encoding: expected an object, got NoneType"),
        (
            {"kind": "wrods"},
            "encoding: unknown kind 'wrods'; known: words, characters, bytes, integers, tokenizer, vectors",
        ),
        ({"extra": 1}, "encoding: missing or unknown keys 'extra'; expected kind, symbols, vocabulary_size"),
        ({"kind": "bytes"}, "encoding: missing or unknown keys 'symbols'; expected kind, vocabulary_size"),
        ({"vocabulary_size": 0}, "encoding: vocabulary_size must be an integer in [1, 2^62], got 0"),
        ({"vocabulary_size": True}, "encoding: vocabulary_size must be an integer in [1, 2^62], got True"),
        ({"vocabulary_size": 3}, "encoding: expected 3 distinct symbols, got 2"),
        ({"symbols": ["a", "a"]}, "encoding: expected 2 distinct symbols, got 1"),
        ({"symbols": ["a", 1]}, "encoding: symbols must be a list of strings"),
    ],
)
def test_a_damaged_record_is_refused(change, text):
    record = Encoding.of_symbols("words", ["a", "b"]).to_json()
    with pytest.raises(FormatError) as caught:
        Encoding.from_json(None if change is None else record | change)
    assert str(caught.value) == text


def test_records_of_other_kinds_are_checked_too(tokenizer_json):
    with pytest.raises(FormatError, match=r"^encoding: bytes have 256 values, got vocabulary_size 255$"):
        Encoding.from_json({"kind": "bytes", "vocabulary_size": 255})
    record = Encoding.of_tokenizer(tokenizer_json).to_json()
    record["tokenizer_json"] += " "
    with pytest.raises(FormatError, match=r"^encoding: the stored tokenizer is not the one its hash names$"):
        Encoding.from_json(record)


def test_wrong_names_and_files():
    with pytest.raises(ConfigurationError) as caught:
        Encoding("wrods", 3)
    assert str(caught.value) == (
        "no encoding 'wrods' (did you mean 'words'?); known: words, characters, bytes, integers, tokenizer, vectors"
    )
    with pytest.raises(DataError, match=r"^vocabulary size must be in \[1, 2\^62\], got 0$"):
        Encoding.of_integers(0)
    pytest.importorskip("tokenizers")
    with pytest.raises(DataError, match=r"^my.json: not a tokenizer.json \("):
        Encoding.of_tokenizer("{}", "my.json")


def test_a_tokenizer_without_the_package_names_the_command(monkeypatch, tokenizer_json):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError) as caught:
        Encoding.of_tokenizer(tokenizer_json)
    assert str(caught.value) == "this needs the package 'tokenizers'; install it with: pip install 'memcap[tokenizers]'"


def test_translation_between_tables(tokenizer_json):
    left, right = Encoding.of_symbols("words", ["a", "b"]), Encoding.of_symbols("words", ["b", "c", "a"])
    assert left.translate(np.array([[0, 1], [1, 2]]), right).tolist() == [[2, 0], [0, 3]]
    assert right.translate(np.array([[0, 1], [2, 3]]), left).tolist() == [[1, -1], [0, 2]]
    one = Encoding.of_tokenizer(tokenizer_json)
    other = Encoding.of_tokenizer(tokenizer_json.replace("Paris", "Rome"))
    with pytest.raises(DomainError, match="another tokenizer.json"):
        one.translate(np.array([[0]]), other)
