"""Packed buckets: every item recalled by the generic evaluator, sizes in the golden table, parts as counted."""

import numpy as np
import pytest

from memcap.construct.packed import memorise_packed
from memcap.exact.counts import count
from memcap.exact.evaluate import evaluate


def random_items(items: int, label_bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct random keys of 2 log2 N bits and uniform labels, the sets of the golden table."""
    numbers = np.random.default_rng(items)
    keys = np.unique(numbers.integers(0, items * items, 2 * items))
    numbers.shuffle(keys)
    return keys[:items], numbers.integers(0, 2**label_bits, items)


@pytest.mark.parametrize(("items", "label_bits", "most"), [(1_000, 1, 360), (10_000, 1, 800), (10_000, 4, 1_450)])
def test_golden_sizes_with_every_item_recalled(items, label_bits, most):
    keys, labels = random_items(items, label_bits)
    made = memorise_packed(keys, labels, label_bits=label_bits)
    assert count(made.network).nonzero <= most
    np.testing.assert_array_equal(evaluate(made.network, keys), labels)
