"""Golden sizes of exact networks, packed and baselines: every item recalled, by which evaluator is said."""

import numpy as np
import pytest

from memcap.construct.memorise import memorise_exact
from memcap.construct.packed import memorise_packed
from memcap.exact.counts import count
from memcap.exact.evaluate import evaluate
from memcap.exact.grouped import evaluate_grouped


def random_items(items: int, label_bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct random keys of 2 log2 N bits and uniform labels, the sets of the golden table."""
    numbers = np.random.default_rng(items)
    keys = np.unique(numbers.integers(0, items * items, 2 * items))
    numbers.shuffle(keys)
    return keys[:items], numbers.integers(0, 2**label_bits, items)


GOLDEN = {(1_000, 1): 343, (10_000, 1): 782, (10_000, 4): 1_380}
LARGE = {(100_000, 1): 2_050, (100_000, 8): 4_990, (1_000_000, 1): 5_770}


@pytest.mark.parametrize(("items", "label_bits"), [(1_000, 1), (10_000, 1)])
def test_golden_sizes_with_every_item_recalled(items, label_bits):
    keys, labels = random_items(items, label_bits)
    made = memorise_packed(keys, labels, label_bits=label_bits)
    assert count(made.network).nonzero <= GOLDEN[items, label_bits]
    np.testing.assert_array_equal(evaluate(made.network, keys), labels)


def test_golden_size_of_sixteen_classes_with_every_item_recalled():
    keys, labels = random_items(10_000, 4)
    made = memorise_packed(keys, labels, label_bits=4)
    assert count(made.network).nonzero <= GOLDEN[10_000, 4]
    np.testing.assert_array_equal(evaluate_grouped(made.network, keys), labels)
    np.testing.assert_array_equal(evaluate(made.network, keys[:1_000]), labels[:1_000])


@pytest.mark.slow
@pytest.mark.parametrize(("items", "label_bits"), sorted(LARGE))
def test_golden_sizes_of_large_sets(items, label_bits):
    keys, labels = random_items(items, label_bits)
    made = memorise_packed(keys, labels, label_bits=label_bits)
    assert count(made.network).nonzero <= LARGE[items, label_bits]
    np.testing.assert_array_equal(evaluate_grouped(made.network, keys), labels)
    np.testing.assert_array_equal(evaluate(made.network, keys[:100]), labels[:100])


BASELINES = {"step": 4_140, "ramp": 3_790, "bucket": 3_245}


@pytest.mark.slow
@pytest.mark.parametrize("selector", BASELINES)
def test_golden_sizes_of_the_baselines(selector):
    keys, labels = random_items(100_000, 1)
    made = memorise_exact(keys, labels, classes=2, selector=selector)
    assert count(made.network).nonzero <= BASELINES[selector]
    np.testing.assert_array_equal(evaluate(made.network, keys[:1_000]), labels[:1_000])
    if selector != "ramp":  # its words are slopes: no two items of a chunk share a number
        np.testing.assert_array_equal(evaluate_grouped(made.network, keys), labels)
