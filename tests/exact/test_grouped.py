"""Grouped evaluation equals the generic evaluator, reads only stored weights, and refuses what it cannot take."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.networks import GOLDEN

from memcap.construct.memorise import memorise_exact
from memcap.errors import DomainError
from memcap.exact.affine import Affine
from memcap.exact.evaluate import evaluate
from memcap.exact.grouped import NotGrouped, evaluate_grouped
from memcap.exact.grouped_codes import Code, add, affine, relu
from memcap.exact.network import Block, Network


def random_items(items: int, bits: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.random.default_rng(seed + items)
    keys = np.unique(numbers.integers(0, items * items + 8, 2 * items))
    return numbers.permutation(keys)[:items], numbers.integers(0, 1 << bits, items)


@pytest.mark.parametrize("selector", ["packed", "bucket", "step"])
@pytest.mark.parametrize(("items", "bits"), [(1, 1), (63, 2), (400, 4), (1_500, 1)])
def test_equals_the_generic_evaluator_on_known_and_unknown_keys(selector, items, bits):
    keys, labels = random_items(items, bits)
    made = memorise_exact(keys, labels, classes=1 << bits, selector=selector)
    np.testing.assert_array_equal(evaluate_grouped(made.network, keys), labels)
    some = np.random.default_rng(1).integers(0, int(keys.max()) + 1, 500)
    np.testing.assert_array_equal(evaluate_grouped(made.network, some), evaluate(made.network, some))


def with_one_number_changed(network: Network, number: int, change: int) -> Network:
    """The ``number``-th stored non-zero number (of all of them, in order) changed by ``change``."""
    at = 0

    def changed(layer: Affine) -> Affine:
        nonlocal at
        weights, bias = [int(w) for w in layer.weight], [int(b) for b in layer.bias]
        for i in range(len(weights)):
            weights[i] += change if at == number else 0
            at += 1
        for i in range(len(bias)):
            if bias[i]:
                bias[i] += change if at == number else 0
                at += 1
        entries = list(zip(layer.row.tolist(), layer.column.tolist(), weights, strict=True))
        return Affine.from_entries(layer.outputs, layer.inputs, entries, bias)

    embed = changed(network.embed)
    stages = tuple(Block(s.name, tuple(changed(m) for m in s.layers)) for s in network.stages if isinstance(s, Block))
    return replace(network, embed=embed, stages=stages, read=changed(network.read))


def test_neighbouring_keys_on_both_sides_of_a_step_are_constant_there():
    keys = np.arange(7, 407)
    made = memorise_exact(keys, keys % 2, classes=2, selector="step")
    np.testing.assert_array_equal(evaluate_grouped(made.network, keys), keys % 2)


@pytest.mark.parametrize("selector", ["packed", "step"])
def test_every_change_of_one_number_is_evaluated_as_the_generic_evaluator_does(selector):
    keys, labels = random_items(100, 1)
    made = memorise_exact(keys, labels, classes=2, selector=selector)
    total = sum(layer.nonzero for _, layer in made.network.maps())
    seen = 0
    for number in range(0, total, 29):
        for change in (1, -1):
            other = with_one_number_changed(made.network, number, change)
            generic = evaluate(other, keys)
            try:
                grouped = evaluate_grouped(other, keys)
            except NotGrouped:
                continue
            np.testing.assert_array_equal(grouped, generic)
            seen += not np.array_equal(generic, labels)
    assert seen > total // 58, "a unit is far below the scale of the network: most changes must be visible"


def test_processes_give_the_same_labels():
    keys, labels = random_items(500, 1)
    made = memorise_exact(keys, labels, classes=2, selector="step")
    np.testing.assert_array_equal(evaluate_grouped(made.network, keys, workers=2), labels)


def test_progress_counts_every_item():
    keys, labels = random_items(300, 1)
    made = memorise_exact(keys, labels, classes=2, selector="step")
    calls = []
    evaluate_grouped(made.network, keys, progress=lambda done, total, what: calls.append((done, total)))
    assert calls[-1] == (300, 300)


def test_refusals_are_messages():
    keys, labels = random_items(60, 1)
    first = Affine.from_entries(20, 3, [(i, 0, 1) for i in range(20)], [-i for i in range(20)])
    last = Affine.from_entries(3, 20, [(1 + i % 2, i, i + 1) for i in range(20)])
    embed, read = Affine.from_entries(3, 1, [(0, 0, 1)]), Affine.from_entries(1, 3, [(0, 1, 1), (0, 2, 2)])
    two = Network(("key",), ((0, 99),), 1, ("x", "y", "z"), embed, (Block("two", (first, last)),), read)
    with pytest.raises(NotGrouped, match="block 'two' with 20 neurons does not write words into one fresh channel"):
        evaluate_grouped(two, keys[keys < 99])
    with pytest.raises(NotGrouped, match="takes networks of one integer key"):
        evaluate_grouped(GOLDEN["next-token"].network, GOLDEN["next-token"].rows)
    made = memorise_exact(keys, labels, classes=2, selector="step")
    wide = replace(made.network, input_range=((0, 2**63 - 1),))
    with pytest.raises(NotGrouped, match=r"keys below 2\^62"):
        evaluate_grouped(wide, np.array([2**62]))
    with pytest.raises(DomainError, match="outside"):
        evaluate_grouped(made.network, [int(keys.max()) + 1])


@settings(max_examples=200)
@given(
    st.integers(-(2**80), 2**80),
    st.integers(1, 2**70),
    st.lists(st.integers(-(2**30), 2**30), min_size=1, max_size=5),
    st.integers(-(2**70), 2**70),
    st.integers(-(2**90), 2**90),
)
def test_code_arithmetic_is_exact_or_refused(base, scale, small, weight, bias):
    code = Code(base, scale, np.array(small, dtype=np.int64))
    values = [base + scale * s for s in small]

    def decoded(c):
        return [c.base + c.scale * int(s) for s in c.small]

    moved = affine(code, weight, bias) if weight else code
    if weight:
        assert decoded(moved) == [weight * v + bias for v in values]
    try:
        assert decoded(relu(moved)) == [max(0, v) for v in decoded(moved)]
        assert decoded(add(code, moved, weight)) == [
            v + weight * m for v, m in zip(values, decoded(moved), strict=True)
        ]
    except NotGrouped:
        pass
