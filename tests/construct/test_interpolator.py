"""The interpolator baseline: exact at every key, counts, refusals."""

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcap.construct import interpolator
from memcap.construct.interpolator import memorise_interpolator
from memcap.errors import ConfigurationError, DataError, PrecisionError
from memcap.exact.counts import count
from memcap.exact.evaluate import evaluate

key_sets = st.lists(st.integers(0, 10**6), min_size=1, max_size=40, unique=True)


def test_examples_in_docstrings():
    assert doctest.testmod(interpolator, globs={**vars(interpolator)}).failed == 0


@given(key_sets, st.integers(1, 9), st.integers(0, 2**31), st.sampled_from(["float64", "float32", "int64", "exact"]))
def test_every_key_has_its_label(keys, bits, seed, dtype):
    labels = np.random.default_rng(seed).integers(0, 2**bits, size=len(keys))
    built = memorise_interpolator(np.array(keys), labels, classes=2**bits, dtype=dtype)
    assert np.array_equal(evaluate(built.network, np.array(keys)), labels)
    changes = int(np.count_nonzero(np.diff(labels[np.argsort(keys)])))
    assert count(built.network).nonzero <= 5 * changes + 3
    assert built.method == "interpolator"


def test_the_ramp_wins_with_many_classes_and_the_steps_with_two():
    keys = np.arange(0, 400, 4)
    labels = np.random.default_rng(0).integers(0, 64, size=100)
    many = memorise_interpolator(keys, labels, classes=64)
    assert many.structure["form"] == "ramp"
    assert count(many.network).nonzero <= 3 * 99 + 8 * 6 + 4
    assert memorise_interpolator(keys, keys // 100 % 2, classes=2).structure["form"] == "steps"


def test_a_wide_ramp_falls_back_to_steps_and_wide_keys_are_refused():
    keys = np.array([0, 2**51, 2**51 + 5, 2**52 - 9])
    built = memorise_interpolator(keys, np.array([3, 1, 2, 0]), classes=4)
    assert built.structure["form"] == "steps"
    assert np.array_equal(evaluate(built.network, keys), [3, 1, 2, 0])
    with pytest.raises(PrecisionError, match="do not fit float32"):
        memorise_interpolator(keys, np.array([0, 1, 0, 1]), classes=2, dtype="float32")


def test_bad_input():
    with pytest.raises(DataError, match="5 occurs more than once"):
        memorise_interpolator(np.array([5, 1, 5]), np.array([0, 0, 0]), classes=2)
    with pytest.raises(DataError, match="no keys"):
        memorise_interpolator(np.array([], dtype=np.int64), np.array([], dtype=np.int64), classes=2)
    with pytest.raises(DataError, match=r"in \[0, 2\)"):
        memorise_interpolator(np.array([1]), np.array([2]), classes=2)
    with pytest.raises(PrecisionError, match="limbs"):
        memorise_interpolator(np.zeros((3, 2), dtype=np.int64), np.array([0, 0, 0]), classes=2)
    with pytest.raises(ConfigurationError, match="did you mean 'float32'"):
        memorise_interpolator(np.array([1]), np.array([0]), classes=2, dtype="flaot32")
