"""`SequenceData.from_arrays`, identity by content, and what else the class offers."""

import datetime
import decimal
import hashlib
import json
import struct

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memcap import SequenceData
from memcap.data.encoding import Encoding
from memcap.errors import DataError, DomainError

T = [[1, 2, 3], [4], [2, 2]]
L = ["a", "b", "a"]


def message(tokens, labels, **options):
    with pytest.raises(DataError) as caught:
        SequenceData.from_arrays(tokens, labels, **options)
    return str(caught.value)


def test_ragged_rows_are_padded_with_the_vocabulary_size():
    data = SequenceData.from_arrays(T, L)
    assert data.tokens.tolist() == [[1, 2, 3], [4, 5, 5], [2, 2, 5]]
    assert data.lengths.tolist() == [3, 1, 2]
    assert (data.vocabulary_size, data.length, data.classes, len(data)) == (5, 3, 2, 3)
    assert (data.labels.tolist(), data.label_names) == ([0, 1, 0], ("a", "b"))
    assert data.rows.tolist() == [1, 2, 3]
    assert not data.per_position
    assert [data.item(i) for i in range(3)] == T
    assert repr(data) == "SequenceData(3 items, length 3, ordered, 5 integer ids, 2 classes, 0 duplicates)"


@pytest.mark.parametrize(
    "tokens",
    [
        [5, 6, 7],
        (5, 6, 7),
        np.array([5, 6, 7], dtype=np.uint8),
        np.array([[5], [6], [7]]),
        [[5], (6,), np.array([7], dtype=np.int32)],
        torch.tensor([5, 6, 7]),
        [torch.tensor([5]), torch.tensor([6]), torch.tensor([7])],
        np.array([5, 6, 7], dtype=object),
    ],
)
def test_every_way_to_say_the_same(tokens):
    data = SequenceData.from_arrays(tokens, [0, 1, 0])
    assert data.content_hash == SequenceData.from_arrays([[5], [6], [7]], [0, 1, 0]).content_hash
    assert data.tokens.shape == (3, 1)


def test_duplicates_are_counted_once():
    data = SequenceData.from_arrays([[1], [2], [1], [1]], [0, 1, 0, 0])
    assert (len(data), data.duplicates, data.rows.tolist()) == (2, 2, [1, 2])
    multisets = SequenceData.from_arrays([[1, 2], [2, 1], [3, 3]], [0, 0, 1], ordered=False)
    assert (len(multisets), multisets.duplicates) == (2, 1)
    assert multisets.item(0) == [1, 2]


def test_labels_per_position():
    data = SequenceData.from_arrays(T, [["x", "y", "x"], ["x"], ["y", "x"]])
    assert data.per_position
    assert data.labels.tolist() == [[0, 1, 0], [0, -1, -1], [1, 0, -1]]
    square = SequenceData.from_arrays(np.array([[1, 2], [3, 4]]), np.array([[7, 8], [8, 8]]))
    assert square.label_names == (8, 7)
    assert "2 classes per position" in repr(square)


def test_common_classes_come_first_and_ties_go_by_value():
    assert SequenceData.from_arrays(range_rows(6), ["c", "a", "b", "b", "c", "b"]).label_names == ("b", "c", "a")
    mixed = SequenceData.from_arrays(range_rows(5), ["1", 1, True, -3, False])
    assert [repr(name) for name in mixed.label_names] == ["False", "True", "-3", "1", "'1'"]
    assert [repr(mixed.label_names[c]) for c in mixed.labels] == ["'1'", "1", "True", "-3", "False"]


def range_rows(count):
    return [[i] for i in range(count)]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["é", "e\u0301"], {"é", "e\u0301"}),  # not normalised
        ([2**70, -1], {2**70, -1}),
        (np.array([True, False]), {True, False}),
        (np.array(["x", "y"]), {"x", "y"}),
        (np.array([3, 200], dtype=np.uint8), {3, 200}),
        ([datetime.date(2024, 2, 29), datetime.datetime(2024, 1, 1, 5)], {"2024-02-29", "2024-01-01 05:00:00"}),
        (np.array(["2024-02-29", "2025-01-01"], dtype="datetime64[D]"), {"2024-02-29", "2025-01-01"}),
        (np.array([-128, 127], dtype=np.int8), {-128, 127}),
        (np.array([2**64 - 1, 2**64 - 3], dtype=np.uint64), {2**64 - 1, 2**64 - 3}),
        (np.array([-(2**63), 2**63 - 1]), {-(2**63), 2**63 - 1}),
        ([decimal.Decimal("1.50"), decimal.Decimal("1.5")], {"1.50", "1.5"}),
        (torch.tensor([4, 9]), {4, 9}),
    ],
)
def test_labels_come_back_with_their_type(labels, names):
    data = SequenceData.from_arrays([1, 2], labels)
    assert set(data.label_names) == names
    assert {type(name) for name in data.label_names} == {type(name) for name in names}
    assert data.label_names[data.labels[0]] == type(next(iter(names)))(data.label_names[data.labels[0]])


@pytest.mark.parametrize(
    ("tokens", "labels", "text"),
    [
        ([], [], "0 rows: nothing to learn"),
        (np.zeros((0, 3), dtype=int), [], "0 rows: nothing to learn"),
        ([[1], []], [0, 1], "row 2: empty sequence"),
        (np.zeros((2, 0), dtype=int), [0, 1], "row 1: empty sequence"),
        ([[1], [1, -2]], [0, 1], "row 2: token ids must not be negative, got -2"),
        (np.array([[1, 2], [3, -4]]), [0, 1], "row 2: token ids must not be negative, got -4"),
        ([[1], [2**62]], [0, 1], f"row 2: token ids must be below 2^62, got {2**62}"),
        ([[1], [2**64]], [0, 1], f"row 2: token ids must be below 2^62, got {2**64}"),
        ([[1], [10**5000]], [0, 1], "row 2: token ids must be below 2^62, got <int too large to print>"),
        ([1, 2], [0, 10**5000], "row 2: whole-number labels have at most 4096 bits, got one of 16610"),
        (np.array([1, 2**63], dtype=np.uint64), [0, 1], f"row 2: token ids must be below 2^62, got {2**63}"),
        ([[1], [2, 3.5]], [0, 1], "row 2: expected whole numbers, got 3.5 of type float"),
        ([[1], [True]], [0, 1], "row 2: expected whole numbers, got True of type bool"),
        (np.array([1.0, 2.0]), [0, 1], "row 1: expected whole numbers, got 1.0 of type float"),
        (
            ["ab", "cd"],
            [0, 1],
            "row 1: expected whole numbers, got 'ab' of type str; for text use memcap.read_sequences",
        ),
        ([[1], None], [0, 1], "row 2: None among rows of another shape"),
        ([1, [2]], [0, 1], "row 2: [2] among rows of another shape"),
        (np.zeros((2, 2, 2), dtype=int), [0, 1], "expected tokens of shape (rows,) or (rows, length), got (2, 2, 2)"),
        (np.array(3), [0, 1], "expected tokens of shape (rows,) or (rows, length), got ()"),
        ("abc", [0, 1], "expected an array or a list of rows, got 'abc'"),
        (7, [0, 1], "expected an array or a list of rows, got 7"),
        ([1, 2], [0], "expected one label per row: 2 rows but 1 labels"),
        ([1, 2], np.zeros((2, 1, 1)), "expected labels of shape (rows,) or (rows, length), got (2, 1, 1)"),
        ([[1, 2], [3]], [[0, 1], [0, 1]], "row 2: 1 tokens but 2 labels"),
        ([1, 2], [[0], 1], "row 2: label 1 among labels of another shape"),
        ([1, 2], [0, None], "row 2: the label is null"),
        ([1, 2], [0, float("nan")], "row 2: the label is null"),
        (
            [1, 2],
            np.array([0.0, 1.0]),
            "row 1: the label is a float (0.0); map floats to classes first (whole numbers or text)",
        ),
        (
            [[1], [2]],
            [[0], [1.5]],
            "row 2: the label is a float (1.5); map floats to classes first (whole numbers or text)",
        ),
        ([1, 2], ["a", "\ud800"], "row 2: the label '\\ud800' holds half a character (lone surrogate)"),
        (
            [1, 2],
            ["a", {"b": 1}],
            "row 2: labels must be text, whole numbers or truth values, got {'b': 1} of type dict",
        ),
        (
            [1, 2],
            [b"a", b"b"],
            "row 1: labels must be text, whole numbers or truth values, got b'a' of type bytes",
        ),
        ([1, 2], np.array(["NaT", "NaT"], dtype="datetime64[D]"), "row 1: the label is null"),
        ([1, 2], ["France", "France"], "one class only ('France'): nothing to learn"),
        ([1], [0], "one class only (0): nothing to learn"),
    ],
)
def test_every_complaint(tokens, labels, text):
    assert message(tokens, labels) == text


def test_one_endless_row_among_many_is_refused_before_memory_is_taken():
    tokens = [[1]] * 20_000 + [[0] * 60_000]
    assert message(tokens, [0] * 20_000 + [1]) == (
        "padding 20001 rows to 60000 tokens takes 9 GiB; the longest is row 20001 with 60000 tokens (median 1): "
        "cut or split long rows"
    )


def test_the_largest_id():
    data = SequenceData.from_arrays([[2**62 - 1], [0, 1]], [0, 1])
    assert data.vocabulary_size == 2**62
    assert data.tokens.tolist() == [[2**62 - 1, 2**62], [0, 1]]


def test_arrays_are_read_only_and_the_callers_own_are_not_touched():
    tokens = np.array([[1, 2], [3, 4]])
    data = SequenceData.from_arrays(tokens, [0, 1])
    with pytest.raises(ValueError, match="read-only"):
        data.tokens[0, 0] = 9
    tokens[0, 0] = 9
    assert data.tokens[0, 0] == 1


items = st.lists(
    st.tuples(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.sampled_from(["a", "b", 1, True])),
    min_size=2,
    max_size=12,
    unique_by=lambda row: tuple(row[0]),
)


def made(rows, **options):
    return SequenceData.from_arrays([row for row, _ in rows], [label for _, label in rows], **options)


@settings(max_examples=40)
@given(items, st.randoms(use_true_random=False))
def test_the_hash_names_the_set_of_items(rows, random):
    rows = [*rows, ([9], "a"), ([9, 9], "b")]
    data = made(rows)
    shuffled = random.sample(rows, len(rows))
    other = made([*shuffled, *shuffled[:3]])
    assert other.content_hash == data.content_hash
    assert (other.label_names, other.encoding) == (data.label_names, data.encoding)
    known = {tuple(data.item(i)): data.labels[i] for i in range(len(data))}
    assert known == {tuple(other.item(i)): other.labels[i] for i in range(len(other))}


@settings(max_examples=40)
@given(items)
def test_any_change_gives_another_hash(rows):
    rows = [*rows, ([9], "a"), ([9, 9], "b")]
    data = made(rows)
    hashes = [data.content_hash, made(rows[1:]).content_hash]
    tokens, label = rows[0]
    hashes.append(made([([*tokens, 8], label), *rows[1:]]).content_hash)
    hashes.append(made([(tokens, "zz"), *rows[1:]]).content_hash)
    hashes.append(made([*rows, ([10], "a")]).content_hash)
    assert len(set(hashes)) == len(hashes)


def test_the_hash_tells_order_label_types_and_padding_apart():
    base = [([1, 2], "1"), ([3], "2")]
    variants = [
        made(base),
        made(base, ordered=False),
        made([([2, 1], "1"), ([3], "2")]),
        made([([1, 2], 1), ([3], 2)]),
        made([([1, 2], "1"), ([3, 3], "2")]),
        SequenceData.from_arrays([[1, 2], [3]], [["1", "1"], ["2"]]),
    ]
    assert len({data.content_hash for data in variants}) == len(variants)
    assert made([([2, 1], "1"), ([3], "2")], ordered=False).content_hash == variants[1].content_hash


def canonical(header, lengths, tokens, labels):
    """Format 1 of memcap/data/identity.py, spelt out by hand."""
    content = json.dumps(header, sort_keys=True, ensure_ascii=False).encode() + b"\n"
    for numbers in (lengths, tokens, labels):
        content += b"".join(struct.pack("<q", number) for number in numbers)
    return hashlib.sha256(content).hexdigest()


def test_the_hash_is_that_of_the_written_format():
    header = {"format": 1, "encoding": {"kind": "integers", "vocabulary_size": 4}, "items": 2, "ordered": True}
    header |= {"per_position": False, "label_names": [["str", "a"], ["str", "é"]]}
    data = SequenceData.from_arrays([[3], [1, 2]], ["é", "a"])
    assert data.content_hash == canonical(header, [2, 1], [1, 2, 3], [0, 1])
    header |= {"per_position": True, "ordered": False, "label_names": [["int", 5], ["bool", True]]}
    data = SequenceData.from_arrays([[3], [2, 1]], [[5], [5, True]], ordered=False)
    assert data.content_hash == canonical(header, [2, 1], [1, 2, 3], [1, 0, 0])


def test_multisets_with_labels_per_position_hash_alike_in_any_order():
    one = SequenceData.from_arrays([[1, 2], [3, 3]], [["x", "y"], ["x", "x"]], ordered=False)
    two = SequenceData.from_arrays([[3, 3], [2, 1]], [["x", "x"], ["y", "x"]], ordered=False)
    assert one.content_hash == two.content_hash
    assert one.content_hash != SequenceData.from_arrays([[1, 2], [3, 3]], [["y", "x"], ["x", "x"]]).content_hash


def test_encode_pads_and_names_what_is_wrong():
    data = SequenceData.from_arrays(T, L)
    tokens, lengths = data.encode([[1], "2 3", np.array([4, 4, 4])])
    assert tokens.tolist() == [[1, 5, 5], [2, 3, 5], [4, 4, 4]]
    assert lengths.tolist() == [1, 2, 3]
    for items, text in (
        ([[1], [5]], "item 2: unknown integer 5: the data holds integers up to 4"),
        ([[]], "item 1: empty sequence []"),
        ([[1, 1, 1, 1]], "item 1: 4 integers, longer than the longest known (3)"),
    ):
        with pytest.raises(DomainError) as caught:
            data.encode(items)
        assert str(caught.value) == text


def test_other_labels_on_the_same_items():
    data = SequenceData.from_arrays([*T, T[0]], [*L, "a"])
    other = data.with_labels([1, 2, 2])
    assert np.array_equal(other.tokens, data.tokens)
    assert (other.labels.tolist(), other.label_names, other.duplicates) == ([1, 0, 0], (2, 1), 1)
    assert other.with_labels(L).content_hash == data.content_hash
    assert data.with_labels([[0, 1, 0], [0], [1, 1]]).per_position
    with pytest.raises(DataError, match=r"^item 2: the label is null$"):
        data.with_labels([1, None, 2])
    with pytest.raises(DataError, match=r"^expected one label per row: 3 rows but 2 labels$"):
        data.with_labels([1, 2])


def test_translate_to_another_vocabulary():
    small, large = SequenceData.from_arrays([[0], [1, 0]], [0, 1]), Encoding.of_integers(9)
    assert small.translate(large).tolist() == [[0, 9], [1, 0]]
    assert SequenceData.from_arrays([[8], [1, 0]], [0, 1]).translate(small.encoding).tolist() == [[-1, 2], [1, 0]]
    with pytest.raises(DomainError, match=r"^the data is encoded as integers, expected bytes$"):
        small.translate(Encoding.of_bytes())
