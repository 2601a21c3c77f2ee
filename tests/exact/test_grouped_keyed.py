"""Grouped evaluation of keyed networks equals the generic evaluator, also where a stored number was changed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memcap.construct.keyed import UNKNOWN, memorise_keyed
from memcap.construct.memorise import memorise_exact
from memcap.exact.affine import Affine
from memcap.exact.evaluate import evaluate
from memcap.exact.grouped import NotGrouped, evaluate_grouped
from memcap.exact.grouped_keyed import evaluate_keyed, keeps_its_key
from memcap.exact.network import Block, Network


def keyed_items(items: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.random.default_rng([seed, items, classes])
    keys = np.unique(numbers.integers(0, items * items + 8, 2 * items + 2))
    return numbers.permutation(keys)[:items], numbers.integers(0, classes, items)


def asked(network: Network, keys: np.ndarray) -> np.ndarray:
    """Known keys, their neighbours, the ends of the range and keys at random."""
    last = network.input_range[0][1]
    some = np.random.default_rng(1).integers(0, last + 1, 200)
    return np.clip(np.concatenate([keys, keys + 1, keys - 1, [0, last], some]), 0, last)


@pytest.mark.parametrize("classes", [1, 2, 3, 16])
@pytest.mark.parametrize("items", [1, 2, 3, 5, 10, 33, 301])
def test_equals_the_generic_evaluator_on_known_and_unknown_keys(items, classes):
    keys, labels = keyed_items(items, classes)
    made = memorise_keyed(keys, labels, classes=classes)
    rows = asked(made.network, keys)
    found = evaluate_keyed(made.network, rows)
    np.testing.assert_array_equal(found[:items], labels + 1)
    np.testing.assert_array_equal(found, evaluate(made.network, rows))
    assert (found[np.isin(rows, keys, invert=True)] == UNKNOWN).all()


@pytest.mark.parametrize("limits", [{"max_depth": 60}, {"bits": 70}, {"max_depth": 16}])
def test_any_number_of_records_and_any_padding(limits):
    keys, labels = keyed_items(41, 3)
    made = memorise_keyed(keys, labels, classes=3, **limits)
    rows = asked(made.network, keys)
    np.testing.assert_array_equal(evaluate_keyed(made.network, rows), evaluate(made.network, rows))


@settings(max_examples=30)
@given(st.sets(st.integers(0, 3000), min_size=1, max_size=50), st.integers(1, 20))
def test_every_key_of_the_range(keys, classes):
    keys = np.array(sorted(keys))
    made = memorise_keyed(keys, keys % classes, classes=classes)
    everything = np.arange(made.network.input_range[0][1] + 1)
    expected = np.full(len(everything), UNKNOWN)
    expected[keys] = keys % classes + 1
    np.testing.assert_array_equal(evaluate_keyed(made.network, everything), expected)


def changed_numbers(network: Network, stride: int, change: int) -> list[Network]:
    """One network for every ``stride``-th stored number, the zero biases included, with that number changed."""
    found = []
    maps = [layer for _, layer in network.maps()]
    places = [(m, i) for m, layer in enumerate(maps) for i in range(len(layer.weight) + len(layer.bias))]
    for which, at in places[::stride]:
        layer = maps[which]
        numbers = [int(n) for n in [*layer.weight, *layer.bias]]
        numbers[at] += change
        weights, bias = numbers[: len(layer.weight)], numbers[len(layer.weight) :]
        entries = list(zip(layer.row.tolist(), layer.column.tolist(), weights, strict=True))
        changed = [*maps[:which], Affine.from_entries(layer.outputs, layer.inputs, entries, bias), *maps[which + 1 :]]
        stages = []
        for number, stage in enumerate(network.stages):
            assert isinstance(stage, Block)
            stages.append(Block(stage.name, tuple(changed[1 + 2 * number : 3 + 2 * number])))
        found.append(replace(network, embed=changed[0], stages=tuple(stages), read=changed[-1]))
    return found


@pytest.mark.parametrize(("items", "classes", "stride"), [(7, 2, 3), (60, 3, 23)])
@pytest.mark.parametrize("change", [1, -1])
def test_every_change_of_one_number_is_refused_or_evaluated_as_the_generic_evaluator_does(
    items, classes, stride, change
):
    keys, labels = keyed_items(items, classes)
    made = memorise_keyed(keys, labels, classes=classes)
    rows = asked(made.network, keys)
    right = evaluate(made.network, rows)
    evaluated = visible = 0
    others = changed_numbers(made.network, stride, change)
    for other in others:
        generic = evaluate(other, rows)
        for fast in (evaluate_keyed, evaluate_grouped):
            try:
                found = fast(other, rows)
            except NotGrouped:
                continue
            np.testing.assert_array_equal(found, generic)
            evaluated += 1
            visible += not np.array_equal(generic, right)
    assert evaluated > len(others) // 4
    assert visible > len(others) // 20


def test_a_gate_that_a_differing_key_does_not_close_is_refused():
    keys, labels = keyed_items(12, 3)
    network = memorise_keyed(keys, labels, classes=3).network
    stages = list(network.stages)
    at = next(i for i, stage in enumerate(stages) if stage.name == "copy/0")
    first, last = stages[at].layers
    weights = [-1 if w == -4 else int(w) for w in first.weight]
    entries = list(zip(first.row.tolist(), first.column.tolist(), weights, strict=True))
    weak = Affine.from_entries(first.outputs, first.inputs, entries, first.bias)
    stages[at] = Block(stages[at].name, (weak, last))
    with pytest.raises(NotGrouped, match="a gate is not closed by every key that differs"):
        evaluate_keyed(replace(network, stages=tuple(stages)), asked(network, keys))


def test_only_networks_that_keep_their_key_are_tried():
    keys, labels = keyed_items(50, 2)
    assert keeps_its_key(memorise_keyed(keys, labels, classes=2).network)
    for selector in ("step", "packed", "bucket"):
        assert not keeps_its_key(memorise_exact(keys, labels, classes=2, selector=selector).network)


def test_processes_and_progress():
    keys, labels = keyed_items(300, 2)
    network = memorise_keyed(keys, labels, classes=2).network
    calls = []
    evaluate_grouped(network, keys, progress=lambda done, total, what: calls.append((done, total)))
    assert calls[-1] == (300, 300)
    np.testing.assert_array_equal(evaluate_grouped(network, keys, workers=2), labels + 1)


@pytest.mark.slow
def test_a_million_items_are_all_recalled_and_strangers_are_unknown():
    numbers = np.random.default_rng(7)
    keys = np.unique(numbers.integers(0, 10**12, 1_000_500))[:1_000_000]
    labels = numbers.integers(0, 2, len(keys))
    network = memorise_keyed(keys, labels, classes=2).network
    np.testing.assert_array_equal(evaluate_grouped(network, keys), labels + 1)
    near = np.setdiff1d(keys + 1, keys)
    assert (evaluate_grouped(network, near) == UNKNOWN).all()
    some = np.concatenate([keys[::20_000], near[::20_000]])
    np.testing.assert_array_equal(evaluate_grouped(network, some), evaluate(network, some))
