"""Lower bounds: the table of the specification, monotonicity, agreement with what is built, messages."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcap.capacity import bounds
from memcap.construct.memorise import memorise_exact
from memcap.errors import ConfigurationError
from memcap.exact.counts import count

# items, classes, least parameters at any depth with 1 and 3 per layer, least float64 / float32 parameters
GOLDEN = [
    (1_000, 2, 8, 15, 16, 32),
    (10_000, 2, 22, 39, 157, 313),
    (100_000, 2, 62, 111, 1563, 3125),
    (10_000, 256, 60, 105, 1250, 2500),
]


@pytest.mark.parametrize(("items", "classes", "one", "three", "double", "single"), GOLDEN)
def test_golden_table(items, classes, one, three, double, single):
    assert bounds.any_depth_parameters(items, classes) == one
    assert bounds.any_depth_parameters(items, classes, per_layer=3) == three
    assert bounds.information_parameters(items, classes, 64) == double
    assert bounds.information_parameters(items, classes, 32) == single


@given(st.integers(1, 10**7), st.integers(2, 1000), st.integers(1, 500))
def test_bounds_grow_with_items_and_shrink_with_depth(items, classes, depth):
    assert bounds.depth_parameters(items + 1, classes, depth) >= bounds.depth_parameters(items, classes, depth)
    assert bounds.depth_parameters(items, classes, depth + 1) <= bounds.depth_parameters(items, classes, depth)
    assert bounds.information_parameters(items, classes, 32) >= bounds.information_parameters(items, classes, 64)


def test_built_networks_respect_every_bound():
    numbers = np.random.default_rng(0)
    keys = numbers.choice(10**6, 1_000, replace=False)
    for classes in (2, 16):
        made = memorise_exact(keys, numbers.integers(0, classes, 1_000), classes=classes, selector="step")
        size = count(made.network)
        layers = bounds.layers_of(made.network)
        assert sum(parameters for parameters, _ in layers) == size.nonzero
        assert len(layers) - 1 == made.network.depth
        report = bounds.report(size, 1_000, classes, depth=made.network.depth, layers=layers)
        assert report.growth_items > 1_000
        assert report.times > 1
        assert report.bits_times > 1
        assert report.parameters > max(report.any_depth, report.at_depth)


def test_largest_item_count_of_the_growth_bound_is_exact():
    layers = [(30, 4), (20, 3), (5, 0)]
    most = bounds.growth_most_items(layers, 2)
    assert most <= bounds.growth_log2(layers, most, 2)
    assert most + 1 > bounds.growth_log2(layers, most + 1, 2)


def test_entropy_is_reported_beside_the_label_bits():
    size = count(memorise_exact(np.arange(50), np.arange(50) % 4, classes=4, selector="step").network)
    report = bounds.report(size, 50, 4, entropy=1.5, weight_bits=64)
    assert (report.label_bits, report.entropy_bits) == (100.0, 75.0)
    assert report.information == math.ceil(100 / 64)


def test_published_asymptotics_are_text_only():
    report = bounds.report(count(memorise_exact(np.arange(9), np.arange(9) % 2, classes=2).network), 9, 2)
    assert all((isinstance(line, str) and "arXiv" in line) or "JMLR" in line for line in report.cited)
    numbers = {f.name for f in dataclasses.fields(report)} - {"cited"}
    assert not any("asymptotic" in name for name in numbers)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bounds.information_bits(0, 2), "at least 1 item and 2 classes, got 0 items"),
        (lambda: bounds.information_bits(5, 4, 2.5), "entropy must be in"),
        (lambda: bounds.information_parameters(5, 4, 0), "weight_bits must be a positive integer"),
        (lambda: bounds.depth_parameters(5, 4, 0), "depth must be at least 1"),
        (lambda: bounds.any_depth_parameters(5, 4, 0), "per_layer must be at least 1"),
    ],
)
def test_messages(call, message):
    with pytest.raises(ConfigurationError, match=message):
        call()
