"""The manual text that every Python ships, as windows of 16 words: the figures the demo builds on."""

from pydoc_data.topics import topics

import numpy as np
import pytest

import memcap
from memcap.data.symbols import split_words
from memcap.errors import ConflictError


@pytest.fixture(scope="module")
def manual(tmp_path_factory):
    path = tmp_path_factory.mktemp("manual") / "manual.txt"
    path.write_text("\n".join(topics.values()), encoding="utf-8")
    return path


def reference(text, window):
    """Every distinct window and the set of words that follow it, without NumPy."""
    words = split_words(text)
    following = {}
    for i in range(len(words) - window):
        following.setdefault(tuple(words[i : i + window]), set()).add(words[i + window])
    return words, following


def test_windows_of_the_manual(manual):
    words, following = reference("\n".join(topics.values()), 16)
    ambiguous = {window for window, labels in following.items() if len(labels) > 1}
    data = memcap.read_sequences(manual, window=16, on_conflict="drop")
    assert (len(words), len(set(words))) == (len(data) + data.duplicates + data.dropped.rows + 16, data.vocabulary_size)
    assert (len(following), len(ambiguous)) == (len(data) + data.dropped.groups, data.dropped.groups)
    symbols = np.array(data.encoding.symbols)
    found = zip(symbols[data.tokens].tolist(), data.labels.tolist(), strict=True)
    assert {tuple(window): {data.label_names[label]} for window, label in found} == {
        window: labels for window, labels in following.items() if window not in ambiguous
    }
    for i in (0, 1, 50_000, len(data) - 1):  # rows are positions of the first word
        assert data.item(i) == words[data.rows[i] - 1 : data.rows[i] + 15]


@pytest.mark.skipif(
    len(split_words("\n".join(topics.values()))) != 114_029, reason="another Python ships another manual"
)
def test_figures_of_python_3_11(manual):
    data = memcap.read_sequences(manual, window=16, on_conflict="drop")
    assert (len(data) + data.dropped.groups, data.dropped.groups, data.vocabulary_size) == (81_983, 226, 4_194)


def test_the_ambiguous_windows_are_refused_by_default(manual):
    with pytest.raises(ConflictError) as caught:
        memcap.read_sequences(manual, window=16)
    data = memcap.read_sequences(manual, window=16, on_conflict="drop")
    assert len(caught.value.groups) == data.dropped.groups
    assert f"… and {data.dropped.groups - 5} more" in str(caught.value)
    assert "position of the window's first word" in str(caught.value)
    assert "(--on-conflict on the command line)" in str(caught.value)
