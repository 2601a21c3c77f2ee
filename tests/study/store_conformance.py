"""The contract of ``memcap.study.store``, clause by clause; every backend's test class inherits it."""

import math
import threading

import pytest

from memcap.errors import ConfigurationError
from memcap.study.cell import Cell
from memcap.study.record import Outcome, State


def cell(x, seed=0):
    return Cell("toy", 1, {"x": x, "name": "é"}, seed, place="toys:toy")


def done(**result):
    return Outcome(State.DONE, result, started=1.0, finished=2.0, seconds=1.0, host="h", versions={"memcap": "0"})


def failed():
    return Outcome(State.FAILED, error_type="ValueError", error="no", trace="line 1")


class StoreConformance:
    """Subclasses define ``open_store(self, tmp_path)``."""

    @pytest.fixture
    def store(self, tmp_path):
        store = self.open_store(tmp_path)
        yield store
        store.close()

    def filled(self, store, count=5):
        cells = [cell(x) for x in range(count)]
        store.add(cells)
        return [c.identity for c in cells]

    def test_adding_twice_changes_nothing(self, store):
        ids = self.filled(store)
        store.claim(ids[:1], "me", 1e12)
        store.finish([(ids[0], done(r=1))], "me")
        assert store.add([cell(0), cell(9), cell(9)]) == 1
        assert list(store.states()) == [*ids, cell(9).identity]
        assert store.get(ids[0]).state is State.DONE
        assert store.get("absent") is None

    def test_a_row_comes_back_whole(self, store):
        store.add([cell(2**70, seed=2**62)])
        identity = cell(2**70, seed=2**62).identity
        before = store.get(identity)
        assert (before.settings, before.seed, before.place) == ({"x": 2**70, "name": "é"}, 2**62, "toys:toy")
        assert list(before.settings) == ["x", "name"]  # in the order given
        assert (before.state, before.attempts, before.outcome) == (State.PENDING, 0, None)
        store.claim([identity], "me", 5.0)
        result = {
            "nan": math.nan, "top": math.inf, "low": -math.inf, "one": 1, "one_float": 1.0, "tiny": 5e-324,
            "big": 2**80, "flag": True, "none": None, "text": "ü\n", "curve": [1.0, math.nan, [2]],
            "deep": {"a": {"b": 1}},
        }  # fmt: skip
        outcome = Outcome(
            State.DONE, result, "", "", "", 1.5, 2.5, 1.0, 0.5, 2**33, "host", "cuda:0", {"numpy": "2"}, "abc"
        )
        assert store.finish([(identity, outcome)], "me") == [identity]
        after = store.get(identity)
        assert repr(after.outcome) == repr(outcome)  # repr: NaN is not equal to itself, 1 is equal to 1.0
        assert (after.attempts, after.owner) == (1, "me")

    def test_a_claim_has_one_winner(self, store):
        ids = self.filled(store)
        assert store.claim([ids[3], ids[1], "absent"], "me", 10.0) == [ids[3], ids[1]]
        assert store.claim(ids, "you", 10.0) == [ids[0], ids[2], ids[4]]
        assert store.owners() == ["me", "you"]
        assert store.get(ids[1]).owner == "me"

    def test_threads_that_claim_at_once_share_the_cells(self, store):
        ids = self.filled(store, 60)
        got = {}

        def take(name):
            got[name] = [i for identity in ids for i in store.claim([identity], name, 1e12)]

        threads = [threading.Thread(target=take, args=(f"t{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(i for part in got.values() for i in part) == sorted(ids)

    def test_only_the_owner_finishes(self, store):
        ids = self.filled(store)
        store.claim(ids[:2], "me", 10.0)
        assert store.finish([(ids[0], done(r=1)), (ids[2], done(r=1))], "you") == []
        assert store.finish([(ids[2], done(r=1))], "me") == []  # not claimed
        assert store.finish([(ids[0], done(r=1)), (ids[1], failed())], "me") == ids[:2]
        assert store.get(ids[1]).outcome.trace == "line 1"
        assert store.counts() == {
            State.PENDING: 3, State.RUNNING: 0, State.DONE: 1, State.FAILED: 1, State.LOST: 0
        }  # fmt: skip

    def test_done_is_for_ever(self, store):
        ids = self.filled(store)
        store.claim(ids[:1], "me", 10.0)
        store.finish([(ids[0], done(r=1))], "me")
        assert store.claim(ids[:1], "me", 10.0) == []
        assert store.finish([(ids[0], done(r=2))], "me") == []
        assert store.release(ids[:1], "me") == 0
        assert store.reopen([State.FAILED, State.LOST]) == 0
        assert store.expire(1e12) == 0
        assert store.get(ids[0]).outcome.result == {"r": 1}

    def test_a_heartbeat_extends_and_silence_loses(self, store):
        ids = self.filled(store)
        store.claim(ids[:2], "me", 10.0)
        store.claim(ids[2:3], "you", 10.0)
        assert store.heartbeat("me", 20.0) == 2
        assert store.expire(15.0) == 1
        assert store.get(ids[2]).state is State.LOST
        assert store.get(ids[0]).lease == 20.0

    def test_a_late_outcome_counts_while_nobody_else_has_the_cell(self, store):
        ids = self.filled(store)
        store.claim(ids[:2], "me", 10.0)
        store.expire(11.0)
        assert store.finish([(ids[0], done(r=1))], "me") == [ids[0]]
        store.reopen([State.LOST])
        assert store.finish([(ids[1], done(r=1))], "me") == []
        store.claim(ids[1:2], "you", 1e12)
        assert store.finish([(ids[1], done(r=1))], "me") == []
        assert store.get(ids[1]).attempts == 2

    def test_abandoned_cells_are_lost(self, store):
        ids = self.filled(store)
        store.claim(ids[:2], "me", 1e12)
        store.claim(ids[2:], "you", 1e12)
        assert store.abandon("me") == 2
        assert [store.get(i).state for i in ids[:3]] == [State.LOST, State.LOST, State.RUNNING]

    def test_released_cells_are_pending_and_not_counted(self, store):
        ids = self.filled(store)
        store.claim(ids[:2], "me", 1e12)
        assert store.release(ids, "you") == 0
        assert store.release(ids, "me") == 2
        row = store.get(ids[0])
        assert (row.state, row.attempts, row.owner) == (State.PENDING, 0, "")

    def test_reopening(self, store):
        ids = self.filled(store)
        store.claim(ids, "me", 1e12)
        store.finish([(i, failed()) for i in ids[:3]], "me")
        store.abandon("me")
        assert store.reopen([State.FAILED], [ids[1], ids[3], "absent"]) == 1
        assert store.reopen([State.LOST]) == 2
        assert store.reopen([State.FAILED, State.LOST]) == 2
        assert store.counts()[State.PENDING] == 5
        with pytest.raises(ConfigurationError, match="only failed and lost cells can be tried again, not 'done' ones"):
            store.reopen([State.DONE])

    def test_a_failing_call_changes_nothing(self, store):
        ids = self.filled(store)
        store.claim(ids, "me", 1e12)
        with pytest.raises(TypeError, match="a result holds numbers"):
            store.finish([(ids[0], done(r=1)), (ids[1], done(r=object()))], "me")
        assert store.counts()[State.RUNNING] == 5

    def test_records_are_a_snapshot_in_order(self, store):
        ids = self.filled(store)
        rows = store.records()
        store.claim(ids, "me", 1e12)
        store.finish([(ids[4], done(r=1))], "me")
        assert [r.state for r in rows] == [State.PENDING] * 5
        assert [r.identity for r in store.records()] == ids
        assert [r.identity for r in store.records([State.DONE])] == [ids[4]]
        assert list(store.records([])) == []

    def test_meta(self, store):
        assert store.meta() == {}
        store.set_meta("question", "a")
        store.set_meta("question", "ü")
        assert store.meta() == {"question": "ü"}
