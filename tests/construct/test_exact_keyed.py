"""The keyed network: stored keys, unknown keys, sizes, limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memcap.construct.keyed import UNKNOWN, memorise_keyed, record_cost
from memcap.errors import ConfigurationError
from memcap.exact.counts import count
from memcap.exact.evaluate import evaluate
from memcap.exact.grouped import evaluate_grouped


@settings(max_examples=25)
@given(st.sets(st.integers(0, 5000), min_size=1, max_size=60), st.integers(1, 300), st.integers(0, 10**6))
def test_stored_keys_are_recalled_and_every_other_key_is_unknown(keys, classes, seed):
    keys = np.array(sorted(keys))
    labels = np.random.default_rng(seed).integers(0, classes, len(keys))
    made = memorise_keyed(keys, labels, classes=classes)
    everything = np.arange(made.network.input_range[0][1] + 1)
    expected = np.full(len(everything), UNKNOWN)
    expected[keys] = labels + 1
    np.testing.assert_array_equal(evaluate(made.network, everything), expected)


def test_size_by_formula_and_the_published_scale():
    numbers = np.random.default_rng(3)
    keys = np.sort(numbers.choice(10**8, 10_000, replace=False))
    made = memorise_keyed(keys, numbers.integers(0, 2, 10_000), classes=2)
    facts = made.structure
    by_hand = 6 * (facts["chunks"] - 1) + facts["records"] * record_cost(facts["key_bits"], facts["label_bits"])
    assert abs(count(made.network).nonzero - by_hand) <= 4  # embedding, read-out, and biases that happen to be zero
    assert count(made.network).nonzero <= 6_900
    some = keys[::100]
    assert (evaluate(made.network, some) > 0).all()
    near = np.setdiff1d(some + 1, keys)
    assert (evaluate(made.network, near) == UNKNOWN).all()


def test_a_hundred_thousand_items_within_two_percent_of_the_published_scheme():
    numbers = np.random.default_rng(5)
    keys = np.unique(numbers.integers(0, 10**10, 200_000))
    keys = np.sort(numbers.permutation(keys)[:100_000])
    labels = numbers.integers(0, 2, 100_000)
    made = memorise_keyed(keys, labels, classes=2)
    assert abs(count(made.network).nonzero - 23_589) <= 0.02 * 23_589
    np.testing.assert_array_equal(evaluate_grouped(made.network, keys), labels + 1)
    near = np.setdiff1d(keys + 1, keys)
    assert (evaluate_grouped(made.network, near) == UNKNOWN).all()
    some = np.concatenate([keys[::2_000], near[::2_000]])
    np.testing.assert_array_equal(evaluate_grouped(made.network, some), evaluate(made.network, some))


def test_limits_trade_depth_and_bits_for_parameters():
    keys = np.arange(0, 4000, 7)
    labels = keys % 3
    free = memorise_keyed(keys, labels, classes=3)
    shallow = memorise_keyed(keys, labels, classes=3, max_depth=40)
    narrow = memorise_keyed(keys, labels, classes=3, bits=40)
    assert free.network.depth > 40 >= shallow.network.depth
    assert max(layer.largest.bit_length() for _, layer in narrow.network.maps()) <= 40
    assert count(shallow.network).nonzero > count(free.network).nonzero
    for made in (shallow, narrow):
        np.testing.assert_array_equal(evaluate(made.network, keys), labels + 1)


def test_limits_out_of_reach_name_what_is_needed():
    with pytest.raises(
        ConfigurationError, match="max_depth=5 is out of reach of the keyed network: one record of 4 bits"
    ):
        memorise_keyed(np.array([1, 3]), np.array([0, 1]), classes=2, max_depth=5)
