"""Exact keyless networks at the edges: few items, many classes, adversarial keys, limits, fingerprints, relabelling."""

import numpy as np
import pytest

from memcap.construct.memorise import memorise_exact
from memcap.exact.evaluate import evaluate

SELECTORS = ("packed", "bucket", "ramp", "step")


def recalled(made, keys, labels):
    np.testing.assert_array_equal(evaluate(made.network, keys), labels)


@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("items", [1, 2, 3, 5, 10, 33])
def test_few_items(selector, items):
    numbers = np.random.default_rng(items)
    for bits in (1, 2, 5, 16):
        keys = np.sort(numbers.choice(1 << 12, items, replace=False))
        labels = numbers.integers(0, 1 << bits, items)
        made = memorise_exact(keys, labels, classes=1 << bits, selector=selector)
        recalled(made, keys, labels)
        unknown = evaluate(made.network, np.arange(0, int(keys.max()) + 1, 7))
        assert unknown.min() >= 0
        assert unknown.max() < 1 << bits
