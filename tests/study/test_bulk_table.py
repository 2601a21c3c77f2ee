"""The table in bulk is the table row by row: same columns, same order, same values, same refusals."""

import math

import pytest
from hypothesis import given
from hypothesis import settings as options
from hypothesis import strategies as some

from memcap.errors import ConfigurationError
from memcap.study.batch import batches_of
from memcap.study.bulk_table import columns_in_bulk
from memcap.study.cell import Cell
from memcap.study.memory_store import MemoryStore
from memcap.study.record import Outcome, State
from memcap.study.sqlite_store import SqliteStore
from memcap.study.table import columns_of

NUMBER = some.sampled_from([0, 1, 1.0, 2**70, -5, 0.1, math.nan, math.inf, -math.inf, 5e-324, True, False, None])
LEAF = NUMBER | some.sampled_from(["", "é\n", "done"]) | some.lists(NUMBER, max_size=2)
NAME = some.sampled_from(["recall", "a", "seed", "state", "a.b", "snr", "x", "result.seed"])
RESULT = some.dictionaries(
    NAME, some.recursive(LEAF, lambda deep: some.dictionaries(NAME, deep, max_size=3)), max_size=4
)
SETTING = some.dictionaries(
    some.sampled_from(["x", "task", "a", "host"]), some.sampled_from([1, 2.5, "b", None]), max_size=3
)
ROW = some.tuples(some.sampled_from(["one", "two"]), SETTING, RESULT, some.sampled_from(["done", "failed", "pending"]))


def fill(store, rows):
    cells = [Cell(task, 1, settings, seed) for seed, (task, settings, _, _) in enumerate(rows)]
    store.add(cells)
    store.claim([c.identity for c in cells], "me", 1e12)
    outcomes = []
    for n, (cell, (_, _, result, state)) in enumerate(zip(cells, rows, strict=True)):
        versions = {"memcap": "0", "numpy": str(n // 3)}
        if state == "done":
            outcome = Outcome(State.DONE, result, seconds=0.5, host="h", versions=versions, data_hash="d")
        else:
            outcome = Outcome(State.FAILED, error_type="ValueError", error="no", versions=versions)
        if state != "pending":
            outcomes.append((cell.identity, outcome))
    store.finish(outcomes, "me")
    store.release([c.identity for c in cells], "me")
    store.reopen([State.FAILED], [c.identity for c in cells[::4]])
    return store


def told(table, *arguments):
    try:
        return repr(table(*arguments))  # repr: NaN is not equal to itself, 1 is equal to 1.0 and to True
    except ConfigurationError as error:
        return f"refused: {error}"


CONDITIONS = [
    None,
    "x > 1",
    "recall > 0.5",
    "a == 1",
    "state == 'done' and seed < 5",
    "2 > 1",
    "1 > 2",
    "absent > 1",
    "x == 1 and recall >= 0",
    "seed > 1 and x == 1 and a == a",
    "1 / seed > 0.1 and recall > 0",
    "recall > 0 and 1 / (seed - 2) > 0",
    "seed > 2 and absent > 1",
]


@options(max_examples=60)
@given(rows=some.lists(ROW, max_size=9), size=some.sampled_from([1, 2, 4, 100]), where=some.sampled_from(CONDITIONS))
def test_bulk_and_row_by_row_agree(rows, size, where):
    records = list(fill(MemoryStore(), rows).records())
    assert told(columns_in_bulk, batches_of(records, size), where) == told(columns_of, records, where)


@options(max_examples=25)
@given(rows=some.lists(ROW, min_size=1, max_size=9), where=some.sampled_from(CONDITIONS))
def test_the_file_hands_out_the_same_rows_in_bulk(tmp_path_factory, rows, where):
    store = fill(SqliteStore(tmp_path_factory.mktemp("bulk") / "study.db"), rows)
    for states in (None, [State.DONE], [State.PENDING, State.FAILED], []):
        by_row = told(columns_of, store.records(states), where)
        assert told(columns_in_bulk, store.batches(states), where) == by_row
    store.close()


def test_more_rows_than_one_batch(tmp_path, monkeypatch):
    rows = [
        ("one", {"x": n % 7}, {"recall": n / 50, "deep": {"a": n}}, "done" if n % 5 else "failed") for n in range(50)
    ]
    rows += [("two", {"y": n}, {"other": [n], "deep": {}}, "done") for n in range(9)]
    monkeypatch.setattr("memcap.study.sqlite_store.ROWS", 8)
    store = fill(SqliteStore(tmp_path / "study.db"), rows)
    table = columns_in_bulk(store.batches())
    assert repr(table) == repr(columns_of(store.records()))
    assert len(table["identity"]) == 59
    assert table["deep.a"][:3] == [None, 1, 2]
    assert [len(b) for b in store.batches()] == [8] * 7 + [3]
    store.close()


def test_the_batches_of_a_file_are_a_snapshot(tmp_path):
    store = fill(SqliteStore(tmp_path / "study.db"), [("one", {"x": 1}, {"recall": 1.0}, "done")])
    batches = store.batches()
    store.add([Cell("one", 1, {"x": 2}, 7)])
    assert sum(map(len, batches)) == 1
    with pytest.raises(ConfigurationError, match="where: no column 'recal'.*did you mean 'recall'"):
        columns_in_bulk(store.batches(), "recal > 1")
    store.close()
