"""What options promise of the whole network: its depth, and that auto is the smallest."""

import numpy as np
import pytest

import memcap
from memcap.errors import ConfigurationError


def sequences(items=120, length=5, per_position=False):
    draw = np.random.default_rng(2)
    tokens = draw.integers(0, 20, (items, length))
    labels = draw.integers(0, 3, (items, length)) if per_position else draw.integers(0, 3, items)
    return memcap.SequenceData.from_arrays(tokens, labels.tolist())


def keys(items, labels):
    drawn = np.unique(np.random.default_rng(0).integers(0, 4_000_000, items))
    return memcap.SequenceData.from_arrays(drawn.reshape(-1, 1), [labels(i, len(drawn)) for i in range(len(drawn))])


@pytest.mark.parametrize(
    ("options", "per_position", "depth"),
    [
        ({}, False, 34),
        ({}, True, 38),
        ({"weights": "float32"}, False, 75),
        ({"weights": "exact"}, False, 60),
        ({"weights": "exact", "method": "keyed"}, False, 48),
    ],
)
def test_the_depth_limit_holds_for_tokens_attention_and_key_together(options, per_position, depth):
    data = sequences(per_position=per_position)
    memory = memcap.build(data, max_depth=depth, **options)
    assert memory.network.depth <= depth
    assert memory.recall(data).correct == memory.recall(data).total


def test_a_depth_that_tokens_alone_exceed_is_refused_with_what_would_do():
    with pytest.raises(ConfigurationError, match="tokens and attention alone take 9 layers; allow at least 11"):
        memcap.build(sequences(), max_depth=5)
    with pytest.raises(ConfigurationError, match=r"at most 3 layers deep.*of max_depth=12, tokens.* take 9"):
        memcap.build(sequences(), max_depth=12)


@pytest.mark.parametrize("weights", ["float64", "float32", "exact"])
def test_sorted_labels_of_many_keys_take_a_handful_of_parameters(weights):
    threshold = keys(6_000, lambda i, n: int(i > n // 2))
    assert memcap.build(threshold, weights=weights).parameters.nonzero <= 7
    one = keys(6_000, lambda i, n: int(i == 77))
    assert memcap.build(one, weights=weights).parameters.nonzero <= 12


def test_a_shallow_limit_takes_the_hidden_layer_of_steps():
    data = keys(300, lambda i, n: i * i % 7 % 2)
    memory = memcap.build(data, max_depth=3)
    assert memory.network.depth <= 3
    assert memory.recall(data).correct == len(data)
    with pytest.raises(ConfigurationError, match="max_depth=1 is out of reach: the interpolator has depth [23]"):
        memcap.build(data, selector="interpolator", max_depth=1)
