"""The reference evaluator against the golden table, its engines against each other, and what it refuses."""

import contextlib
import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.networks import GOLDEN

from memcap.errors import ConfigurationError, DomainError, PrecisionError
from memcap.exact.affine import Affine
from memcap.exact.engines import Audit
from memcap.exact.evaluate import NOT_A_LABEL, evaluate, trace
from memcap.exact.network import Block, Network

everyone = pytest.mark.parametrize("golden", GOLDEN.values(), ids=GOLDEN)


@everyone
@pytest.mark.parametrize("table", [True, False])
def test_golden_answers(golden, table):
    assert evaluate(golden.network, golden.rows, table=table).tolist() == golden.labels.tolist()
    assert evaluate(golden.network, golden.rows, table=table, engine="object").tolist() == golden.labels.tolist()


@everyone
def test_hand_made_counts(golden):
    assert sum(m.nonzero for _, m in golden.network.maps()) == golden.nonzero


@everyone
def test_trace_ends_in_the_label(golden):
    states = trace(golden.network, golden.rows)
    assert [name for name, _ in states] == ["embed", *(s.name for s in golden.network.stages), "output"]
    output = states[-1][1][0] // golden.network.unit
    if output.ndim > golden.labels.ndim:
        output = output[:, -1]
    assert output.tolist() == golden.labels.tolist()


@everyone
def test_order_and_batch_change_nothing(golden):
    order = np.random.Generator(np.random.Philox(1)).permutation(len(golden.rows))
    assert evaluate(golden.network, golden.rows[order]).tolist() == golden.labels[order].tolist()
    for one in (0, len(golden.rows) - 1):
        assert evaluate(golden.network, golden.rows[one : one + 1]).tolist() == [golden.labels[one].tolist()]
    assert evaluate(golden.network, golden.rows[:0]).shape == golden.labels[:0].shape


ENTRY = st.one_of(st.integers(-3, 3), st.integers(-(2**40), 2**40), st.integers(-(2**70), 2**70))


def random_network(data):
    """Small random networks, some with weights far beyond int64."""
    width, sequence = data.draw(st.integers(1, 3)), data.draw(st.booleans())

    def affine(outputs, inputs):
        values = data.draw(st.lists(ENTRY, min_size=outputs * inputs, max_size=outputs * inputs))
        bias = data.draw(st.lists(ENTRY, min_size=outputs, max_size=outputs))
        return Affine.from_entries(outputs, inputs, [(i // inputs, i % inputs, v) for i, v in enumerate(values)], bias)

    stages = []
    for n in range(data.draw(st.integers(0, 3))):
        sizes = [width, *data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=2)), width]
        stages.append(Block(f"b/{n}", tuple(affine(o, i) for i, o in itertools.pairwise(sizes))))
    return Network(
        ("token", "position") if sequence else ("key",),
        ((0, 9), (0, 1)) if sequence else ((0, 9),),
        2 if sequence else 1,
        tuple("abc"[:width]),
        affine(width, 2 if sequence else 1),
        tuple(stages),
        affine(1, width),
        data.draw(st.sampled_from([1, 2, 2**66])),
        sequence and data.draw(st.booleans()),
    )


def by_hand(network, row):
    """Plain loops over Python integers: an evaluator that shares nothing with the package's."""

    def linear(layer, x):
        y = [int(b) for b in layer.bias]
        for r, c, w in zip(layer.row, layer.column, layer.weight, strict=True):
            y[r] += int(w) * x[c]
        return y

    outs = []
    for position, token in enumerate(np.atleast_1d(row)):
        state = linear(network.embed, [int(token), position][: len(network.inputs)])
        for stage in network.stages:
            x = state
            for depth, layer in enumerate(stage.layers):
                x = linear(layer, [max(v, 0) for v in x] if depth else x)
            state = [s + v for s, v in zip(state, x, strict=True)]
        (out,) = linear(network.read, state)
        whole = out % network.unit == 0 and 0 <= out // network.unit < 2**62
        outs.append(out // network.unit if whole else NOT_A_LABEL)
    return outs if network.per_position else outs[-1]


@given(st.data())
def test_every_engine_agrees_with_plain_loops(data):
    network = random_network(data)
    rows = np.arange(10) if len(network.inputs) == 1 else np.stack([np.arange(10), 9 - np.arange(10)], axis=1)
    expected = [by_hand(network, row) for row in rows]
    assert evaluate(network, rows, engine="object").tolist() == expected
    assert evaluate(network, rows, engine="auto").tolist() == expected
    with contextlib.suppress(PrecisionError):
        assert evaluate(network, rows, engine="int64").tolist() == expected


def test_an_output_off_the_unit_is_not_a_label():
    golden = GOLDEN["next-token"]
    off = dataclasses.replace(golden.network, unit=2)
    assert set(evaluate(off, golden.rows).tolist()) == {0, NOT_A_LABEL}  # 7 is not a multiple of 2
    negative = dataclasses.replace(golden.network, read=Affine.from_entries(1, 3, [(0, 1, -1)]))
    assert set(evaluate(negative, golden.rows).tolist()) == {0, NOT_A_LABEL}


def test_a_mean_that_is_not_whole_is_not_a_label():
    golden = GOLDEN["next-token"]
    attention = golden.network.stages[1]
    off = dataclasses.replace(attention, value=Affine.from_entries(1, 3, [(0, 1, 5)]))
    stages = (golden.network.stages[0], off, *golden.network.stages[2:])
    labels = evaluate(dataclasses.replace(golden.network, stages=stages), golden.rows)
    sums = np.array([sum(t + max(t - 2, 0) for t in row) for row in golden.rows])
    assert ((labels == NOT_A_LABEL) == (sums % 4 != 0)).all()


def test_processes_change_nothing():
    golden = GOLDEN["seq2seq"]
    steps = []
    labels = evaluate(golden.network, golden.rows, workers=2, progress=lambda *step: steps.append(step))
    assert labels.tolist() == golden.labels.tolist()
    assert steps[-1] == (37, 37, "evaluating in integers (2 processes)")


def test_progress_reaches_the_total():
    golden = GOLDEN["next-token"]
    steps = []
    evaluate(golden.network, golden.rows, progress=lambda *step: steps.append(step))
    assert steps[-1] == (37, 37, "evaluating in integers (int64)")


def growing(blocks):
    """x <- 3x in every block: leaves int64 after 40 of them."""
    step = Block("grow", (Affine.from_entries(1, 1, [(0, 0, 1)]), Affine.from_entries(1, 1, [(0, 0, 2)])))
    one = Affine.from_entries(1, 1, [(0, 0, 1)])
    return Network(("key",), ((0, 100),), 1, ("x",), one, (step,) * blocks, one, 3**blocks)


def test_int64_is_refused_before_it_overflows_and_auto_goes_on():
    network = growing(60)
    assert evaluate(network, [0, 1, 5]).tolist() == [0, 1, 5]
    with pytest.raises(PrecisionError, match=r"layer 00\d\d\.grow\.1: a partial sum could leave int64"):
        evaluate(network, [0, 1, 5], engine="int64")
    assert evaluate(growing(39), [0, 1], engine="int64").tolist() == [0, 1]


def test_audit_finds_the_worst_partial_sum_of_all_rows():
    weights = [2**20, -(2**20), 3]
    cancel = Block("cancel", (Affine.from_entries(3, 1, [(i, 0, 1) for i in range(3)]),
                              Affine.from_entries(1, 3, [(0, i, w) for i, w in enumerate(weights)])))  # fmt: skip
    one = Affine.from_entries(1, 1, [(0, 0, 1)])
    network = Network(("key",), ((0, 1000),), 1, ("x",), one, (cancel,), one)
    audit = Audit(2**24)
    evaluate(network, [0, 8, 5], audit=audit)
    assert audit.bound["0000.cancel.1"] == 8 * 2**20 + 8 * 3 + 8  # positive parts of key 8, the state included
    assert audit.bound["read"] == 32
    assert list(audit.bound) == [name for name, _ in network.maps()]


def test_refusals():
    key, sequence = GOLDEN["interpolator"].network, GOLDEN["next-token"].network
    with pytest.raises(DomainError, match=r"key 13 at row 2 is outside \[0, 12\]"):
        evaluate(key, [1, 13])
    with pytest.raises(DomainError, match=r"token 6 at row 2, position 3 is outside \[0, 5\]"):
        evaluate(sequence, [[0, 0, 0, 0], [0, 0, 6, 0]])
    with pytest.raises(DomainError, match=r"padded to 4 tokens, shape \(rows, 4\); got shape \(1, 3\)"):
        evaluate(sequence, [[1, 2, 3]])
    with pytest.raises(DomainError, match=r"one integer key per row, shape \(rows,\); got shape \(1, 2\)"):
        evaluate(key, [[1, 2]])
    with pytest.raises(DomainError, match="got an array of float64"):
        evaluate(key, np.array([1.0]))
    with pytest.raises(ConfigurationError, match=r"got 'int46' \(did you mean 'int64'\?\)"):
        evaluate(key, [1], engine="int46")
    with pytest.raises(ConfigurationError, match="an audit is taken by the int64 engine"):
        evaluate(key, [1], engine="object", audit=Audit())
    with pytest.raises(ConfigurationError, match="workers must be at least 1, got 0"):
        evaluate(key, [1], workers=0)
    with pytest.raises(PrecisionError, match="wider than int64"):
        evaluate(GOLDEN["fold-chain-wide"].network, [1], engine="int64")
