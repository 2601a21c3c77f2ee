"""Key sets that crowd, in every number format: every item recalled, every sum proved to fit."""

import re

import numpy as np
import pytest

import memcap
from memcap.construct.budgeted import memorise_budgeted
from memcap.construct.memorise import memorise_exact
from memcap.errors import HashUnlucky, PrecisionError
from memcap.exact.counts import count
from memcap.exact.evaluate import evaluate
from memcap.exact.ranges import prove

GOLDEN_RATIO = 0.6180339887498949
KEY_SETS = {
    "uniform": lambda n: np.random.default_rng(n).integers(0, 2**41, n),
    "arange": lambda n: np.arange(n),
    "far arange": lambda n: 2**40 + np.arange(n),
    "spaced": lambda n: 2**20 * np.arange(n),
    "far spaced": lambda n: np.arange(n) << 42 - n.bit_length(),
    "squares": lambda n: np.arange(n) ** 2,
    "two clusters": lambda n: np.concatenate([np.arange(n // 2), 2**41 + 7 + np.arange(n - n // 2)]),
    "fibonacci": lambda n: (2**41 * (np.arange(n) * GOLDEN_RATIO % 1)).astype(np.int64),
    "exponential": lambda n: np.round(np.exp2(np.linspace(0, 41.5, n))).astype(np.int64),
}


def items(name: str, size: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    keys = np.unique(KEY_SETS[name](size))
    return keys, np.random.default_rng(size).integers(0, classes, len(keys))


@pytest.mark.parametrize("name", [name for name in KEY_SETS if name != "far spaced"])
def test_float32_recalls_crowded_keys(name):
    keys, labels = items(name, 2_000)
    made = memorise_budgeted(keys, labels, classes=2, dtype="float32")
    np.testing.assert_array_equal(evaluate(made.network, keys), labels)
    assert prove(made.network, "float32")
    assert count(made.network).nonzero <= made.structure["parameters_by_formula"]
    assert count(made.network).nonzero >= made.structure["parameters_by_formula"] - 8  # zeros by chance


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("name", ["far arange", "exponential"])
def test_wider_formats_recall_crowded_keys(name, dtype):
    keys, labels = items(name, 2_000)
    made = memorise_budgeted(keys, labels, classes=2, dtype=dtype)
    np.testing.assert_array_equal(evaluate(made.network, keys), labels)
    assert prove(made.network, dtype)


@pytest.mark.parametrize("size", [1, 2, 33, 300])
@pytest.mark.parametrize("name", ["far arange", "far spaced", "two clusters", "exponential"])
def test_few_crowded_keys_in_float32(name, size):
    keys, labels = items(name, size, classes=3)
    made = memorise_budgeted(keys, labels, classes=3, dtype="float32")
    np.testing.assert_array_equal(evaluate(made.network, keys), labels)
    assert prove(made.network, "float32")
    strangers = np.random.default_rng(0).integers(0, int(keys.max()) + 1, 200)
    assert (evaluate(made.network, strangers) < 4).all()


def test_the_depth_of_joined_limbs_is_as_counted():
    keys, labels = items("far arange", 700)
    made = memorise_budgeted(keys, labels, classes=2, dtype="float32")
    assert any(stage.name == "hash/join" for stage in made.network.stages)
    shallower = memorise_budgeted(keys, labels, classes=2, dtype="float32", max_depth=made.network.depth)
    assert shallower.network.depth <= made.network.depth


@pytest.mark.parametrize("key", [2**41, 2**50, 2**55, 2**60 - 1, 2**60, 2**61, 2**62 - 2**54])
def test_what_an_error_advises_works(key):
    keys = key - (key // 50) * np.arange(40)
    labels = np.arange(40) * 7 % 3
    advised = set()
    for dtype in ("float32", "float64"):
        try:
            memorise_budgeted(keys, labels, classes=3, dtype=dtype)
        except PrecisionError as error:
            advised |= set(re.findall(r"weights='(\w+)'", str(error)))
    for weights in advised - {"exact"}:
        made = memorise_budgeted(keys, labels, classes=3, dtype=weights)
        np.testing.assert_array_equal(evaluate(made.network, keys), labels)
    assert ("exact" in advised) == (2**53 < key < 2**60)
    if "exact" in advised:
        made = memorise_exact(keys, labels, classes=3)
        np.testing.assert_array_equal(evaluate(made.network, keys), labels)


def test_keys_that_crowd_at_the_end_of_int64_are_to_be_renumbered():
    with pytest.raises(HashUnlucky, match="or number the keys anew from 0$"):
        memorise_budgeted(2**61 + np.arange(40), np.arange(40) * 7 % 3, classes=3, dtype="int64")


@pytest.mark.parametrize("method", ["keyless", "keyed"])
def test_exact_memories_take_a_few_keys_of_any_size(method):
    keys = 2**62 - 1 - 5 * np.arange(30)
    data = memcap.SequenceData.from_arrays(keys, np.arange(30) % 2)
    memory = memcap.build(data, weights="exact", method=method)
    assert memory.recall(data).correct == 30
    assert memcap.certify(memory, data)


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["float32", "float64", "int64", "exact"])
@pytest.mark.parametrize("name", KEY_SETS)
def test_memories_of_crowded_keys_are_certified(name, weights):
    for size in (2_000, 20_000):
        keys, labels = items(name, size)
        data = memcap.SequenceData.from_arrays(keys, labels)
        memory = memcap.build(data, weights=weights)
        assert memory.recall(data).correct == len(keys)
        assert memcap.certify(memory, data)
