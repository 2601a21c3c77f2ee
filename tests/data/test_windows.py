"""Next-token windows of text in every encoding, against plain slicing."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import memcap

TEXT = "the cat sat on the mat; the cat ran. Zoë sat\r\non the dog"


def read(folder, text, **options):
    path = folder / "text.txt"
    path.write_bytes(text.encode())
    return memcap.read_sequences(path, **options)


@pytest.mark.parametrize("stride", [1, 2, 5])
@pytest.mark.parametrize("window", [2, 3, 7])
@pytest.mark.parametrize("encoding", ["words", "characters", "bytes"])
def test_windows_equal_slices(tmp_path, encoding, window, stride):
    data = read(tmp_path, TEXT, window=window, stride=stride, encoding=encoding, on_conflict="first")
    raw = {"characters": TEXT, "bytes": TEXT.encode()}.get(encoding) or data.encoding.decode(data.encoding.encode(TEXT))
    starts = list(range(0, len(raw) - window, stride))
    assert len(data) + data.duplicates + data.dropped.rows == len(starts)
    for i, start in enumerate(data.rows - 1):
        assert data.item(i) == raw[start : start + window]
        assert data.label_names[data.labels[i]] == raw[start + window]
        assert start in starts


def test_every_token_of_the_text_is_in_the_vocabulary(tmp_path):
    data = read(tmp_path, "a b c d", window=1)
    assert data.encoding.symbols == ("a", "b", "c", "d")  # d is only ever a label
    assert (data.row_unit, data.rows.tolist(), data.label_names) == ("word", [1, 2, 3], ("b", "c", "d"))


def test_integers_and_another_suffix(tmp_path):
    path = tmp_path / "ids.log"
    path.write_text("5 6\n7,5 6 7 5", encoding="utf-8")
    data = memcap.read_sequences(path, format="text", window=2, encoding="integers")
    assert [data.item(i) for i in range(len(data))] == [[5, 6], [6, 7], [7, 5]]
    assert (data.duplicates, data.row_unit) == (2, "integer")
    assert {data.label_names[c] for c in data.labels} == {5, 6, 7}


def test_multiset_windows(tmp_path):
    data = read(tmp_path, "a b c b a d b c", window=2, ordered=False, on_conflict="drop")
    assert (data.dropped.groups, data.dropped.rows) == (2, 4)
    assert [data.item(i) for i in range(len(data))] == [["a", "d"], ["d", "b"]]


@settings(max_examples=40)
@given(st.text(st.sampled_from("ab .é\n"), min_size=4, max_size=60), st.integers(1, 3), st.integers(1, 4))
def test_characters_equal_the_reference(tmp_path_factory, text, window, stride):
    text += "xyz" * 4
    following = {}
    for start in range(0, len(text) - window, stride):
        following.setdefault(text[start : start + window], set()).add(text[start + window])
    expected = {item: labels for item, labels in following.items() if len(labels) == 1}
    assume(len(set.union(set(), *expected.values())) > 1)
    data = read(
        tmp_path_factory.mktemp("w"), text, window=window, stride=stride, encoding="characters", on_conflict="drop"
    )
    assert {data.item(i): {data.label_names[data.labels[i]]} for i in range(len(data))} == expected
