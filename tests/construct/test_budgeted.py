"""Budgeted memories: recall, counts, refusals."""

import numpy as np
import pytest

from memcap.construct.budgeted import memorise_budgeted
from memcap.exact.counts import count
from memcap.exact.evaluate import evaluate


def random_keys(items, classes, seed=0):
    draw = np.random.default_rng(seed)
    keys = draw.permutation(np.unique(draw.integers(0, items * items, size=items + items // 10 + 40)))[:items]
    return keys, draw.integers(0, classes, size=items)


@pytest.mark.parametrize(
    ("items", "classes", "dtype", "most"),
    [
        (1_000, 2, "float64", 470),
        (10_000, 2, "float64", 1_040),
        (1_000, 16, "float64", 1_200),
        (1_000, 2, "float32", 520),
        (1_000, 256, "int64", 2_300),
    ],
)
def test_recall_and_golden_counts(items, classes, dtype, most):
    keys, labels = random_keys(items, classes)
    built = memorise_budgeted(keys, labels, classes=classes, dtype=dtype)
    assert np.array_equal(evaluate(built.network, keys), labels)
    total = count(built.network).nonzero
    assert total == built.structure["parameters_by_formula"]
    assert total <= most
