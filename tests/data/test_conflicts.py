"""Duplicates and contradictions: every kind, every remedy, the whole message, and a reference without NumPy."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcap import SequenceData
from memcap.data.conflicts import Dropped
from memcap.errors import ConfigurationError, ConflictError, ConflictGroup, DataError


def conflict(tokens, labels, **options):
    with pytest.raises(ConflictError) as caught:
        SequenceData.from_arrays(tokens, labels, **options)
    return caught.value


def test_identical_rows_with_different_labels():
    error = conflict([[1, 2], [3], [1, 2], [1, 2], [1, 2]], ["a", "a", "b", "a", "c"])
    assert error.kind == "duplicate-sequence"
    assert error.groups == (ConflictGroup((1, 3, 5), ("a", "b", "c")),)
    assert str(error) == (
        "1 sequence carries more than one label:\n"
        "  '1 2': row 1 -> 'a', 3 -> 'b', 5 -> 'c'\n"
        "choose on_conflict='drop' (leave them out) or 'first' (keep the first label) "
        "(--on-conflict on the command line)"
    )


def test_permutations_with_different_labels():
    error = conflict([[1, 2], [3, 3], [2, 1]], [0, 0, 1], ordered=False)
    assert error.kind == "permutation"
    assert error.groups == (ConflictGroup((1, 3), (0, 1)),)
    assert str(error) == (
        "1 multiset of tokens carries more than one label:\n"
        "  '1 2': row 1 -> 0, 3 -> 1\n"
        "pass ordered=True to tell permutations apart (--ordered), or "
        "choose on_conflict='drop' (leave them out) or 'first' (keep the first label) "
        "(--on-conflict on the command line)"
    )
    assert len(SequenceData.from_arrays([[1, 2], [3, 3], [2, 1]], [0, 0, 1], ordered=True)) == 3


def test_permutations_and_identical_rows_together():
    error = conflict([[1, 2], [2, 1], [5, 5], [5, 5]], [0, 1, 0, 1], ordered=False)
    assert error.kind == "duplicate-sequence"
    assert "2 multisets of tokens carry more than one label" in str(error)
    assert "pass ordered=True to tell permutations apart (1 of them)" in str(error)
    assert "ordered=True" not in str(conflict([[5, 5], [5, 5], [1, 1]], [0, 1, 0], ordered=False))


def test_equal_tokens_of_a_multiset_with_different_labels():
    error = conflict([[7, 7, 8], [1, 2, 3]], [["x", "y", "x"], ["x", "x", "x"]], ordered=False)
    assert error.kind == "token"
    assert error.groups == (ConflictGroup((1, 1), ("x", "y")),)
    assert str(error) == (
        "1 token of one sequence with more than one label, read as multisets:\n"
        "  row 1: token '7' -> 'x', 'y'\n"
        "pass ordered=True to tell positions apart, or on_conflict='drop' or 'first' "
        "(--ordered and --on-conflict on the command line)"
    )


def test_equal_tokens_may_differ_where_position_matters():
    data = SequenceData.from_arrays([[7, 7, 8]], [["x", "y", "x"]])
    assert data.labels.tolist() == [[0, 1, 0]]


@pytest.mark.parametrize(("choice", "kept"), [("drop", 1), ("first", 2)])
def test_remedies_for_token_conflicts(choice, kept):
    data = SequenceData.from_arrays(
        [[7, 9, 7, 7], [1, 2]], [["x", "y", "y", "x"], ["x", "y"]], ordered=False, on_conflict=choice
    )
    assert len(data) == kept
    assert data.dropped == Dropped(groups=1, rows=1)
    if choice == "first":
        assert [data.label_names[c] for c in data.labels[0]] == ["x", "y", "x", "x"]
    else:
        assert data.length == 2  # no column that only the left-out row needed


def test_at_most_five_groups_and_five_labels_are_shown():
    tokens = [[i] for i in range(7) for _ in range(8)]
    error = conflict(tokens, [str(j) for _ in range(7) for j in range(8)])
    assert len(error.groups) == 7
    assert all(len(group.labels) == 8 for group in error.groups)
    lines = str(error).splitlines()
    assert len(lines) == 8
    assert lines[1] == "  '0': row 1 -> '0', 2 -> '1', 3 -> '2', 4 -> '3', 5 -> '4', and 3 more labels"
    assert lines[6] == "  … and 2 more"


def test_labels_per_position_conflict_as_a_whole():
    error = conflict([[1, 2], [1, 2]], [["a", "b"], ["a", "c"]])
    assert error.groups == (ConflictGroup((1, 2), (("a", "b"), ("a", "c"))),)


def test_a_misspelt_choice_and_nothing_left():
    with pytest.raises(ConfigurationError) as caught:
        SequenceData.from_arrays([1, 2], [0, 1], on_conflict="frist")
    assert str(caught.value) == "on_conflict must be one of error, drop, first, got 'frist' (did you mean 'first'?)"
    with pytest.raises(DataError, match=r"^every item is ambiguous: nothing is left after on_conflict='drop'$"):
        SequenceData.from_arrays([1, 1], [0, 1], on_conflict="drop")


rows = st.lists(
    st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=3), st.integers(0, 2)), min_size=1, max_size=25
)


def reference(data, ordered):
    """Item -> [(row, label)], by dictionaries."""
    found = defaultdict(list)
    for number, (tokens, label) in enumerate(data, 1):
        found[tuple(tokens if ordered else sorted(tokens))].append((number, label))
    return found


def attempt(tokens, labels, **options):
    """The data, or the error that came instead."""
    try:
        return SequenceData.from_arrays(tokens, labels, **options)
    except DataError as error:
        return error


@given(rows, st.booleans())
def test_settling_equals_the_reference(data, ordered):
    tokens, labels = [row for row, _ in data], [label for _, label in data]
    items = reference(data, ordered)
    bad = {item: seen for item, seen in items.items() if len({label for _, label in seen}) > 1}
    for choice in ("error", "drop", "first"):
        kept = {item: seen[0] for item, seen in items.items() if choice == "first" or item not in bad}
        made = attempt(tokens, labels, ordered=ordered, on_conflict=choice)
        if choice == "error" and bad:
            assert isinstance(made, ConflictError)
            expected = sorted(bad.values())
            assert [group.rows[0] for group in made.groups] == [seen[0][0] for seen in expected]
            for group, seen in zip(made.groups, expected, strict=True):
                first = {label: number for number, label in reversed(seen)}
                assert dict(zip(group.labels, group.rows, strict=True)) == first
                assert sorted(group.rows) == list(group.rows)
            continue
        if len({label for _, label in kept.values()}) <= 1:
            assert isinstance(made, DataError)
            continue
        got = {}
        for i in range(len(made)):
            item = made.item(i)
            got[tuple(item if ordered else sorted(item))] = (int(made.rows[i]), made.label_names[made.labels[i]])
        assert got == kept
        assert made.rows.tolist() == sorted(made.rows.tolist())
        used = sum(
            1
            for item, seen in items.items()
            for _, label in seen
            if item in kept and (item not in bad or label == seen[0][1])
        )
        assert made.duplicates == used - len(kept)
        assert made.dropped == (Dropped(len(bad), len(data) - used) if choice != "error" else Dropped())
