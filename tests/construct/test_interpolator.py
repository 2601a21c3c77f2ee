"""The one-hidden-layer interpolator is exact, takes the smaller form, and refuses what does not fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcap.construct.interpolator import memorise_interpolator
from memcap.errors import DataError, PrecisionError
from memcap.exact.counts import count
from memcap.exact.evaluate import evaluate


@given(
    st.lists(st.integers(0, 5000), min_size=1, max_size=40, unique=True),
    st.integers(1, 16),
    st.sampled_from(["float64", "float32", "int64", "exact"]),
    st.integers(0, 10**6),
)
def test_every_key_gets_its_label(keys, bits, dtype, seed):
    keys = np.array(keys)
    labels = np.random.default_rng(seed).integers(0, 2**bits, size=len(keys))
    try:
        made = memorise_interpolator(keys, labels, classes=2**bits, dtype=dtype)
    except PrecisionError:
        assert dtype == "float32"
        return
    assert evaluate(made.network, keys).tolist() == labels.tolist()
    assert count(made.network).nonzero <= 6 * len(keys)
    assert made.method == "interpolator"


def test_exact_slopes_need_three_parameters_a_key():
    rng = np.random.default_rng(0)
    keys = np.sort(rng.choice(2000, size=60, replace=False))
    made = memorise_interpolator(keys, rng.integers(0, 256, size=60), classes=256, dtype="exact")
    assert made.structure["form"] == "slopes"
    assert count(made.network).nonzero <= 3 * 60 + 3


def test_errors():
    with pytest.raises(DataError, match="a key stands twice"):
        memorise_interpolator(np.array([1, 1]), np.array([0, 1]), classes=2)
    with pytest.raises(PrecisionError, match="beyond the exact integers of float32"):
        memorise_interpolator(np.array([1, 2**25]), np.array([0, 1]), classes=2, dtype="float32")
    with pytest.raises(PrecisionError, match="two limbs"):
        memorise_interpolator(np.array([[1, 2]]), np.array([0]), classes=2, dtype="float32")
