"""Budgeted memories: recall, counts, every state exact in its number format, refusals."""

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memcap.construct import budgeted, budgeted_plan
from memcap.construct.budgeted import memorise_budgeted
from memcap.construct.fused import Fused
from memcap.construct.word_format import EXACT_BITS
from memcap.errors import ConfigurationError, DataError, PrecisionError
from memcap.exact.affine import Affine
from memcap.exact.counts import count
from memcap.exact.evaluate import evaluate
from memcap.exact.inputs import split
from memcap.exact.network import Block
from memcap.exact.static_range import static_bounds


def random_keys(items, classes, seed=0):
    draw = np.random.default_rng(seed)
    keys = draw.permutation(np.unique(draw.integers(0, items * items, size=items + items // 10 + 40)))[:items]
    return keys, draw.integers(0, classes, size=items)


def test_examples_in_docstrings():
    assert doctest.testmod(budgeted, globs={**vars(budgeted)}).failed == 0
    assert doctest.testmod(budgeted_plan).failed == 0


GOLDEN = [  # items, classes, dtype, most parameters
    (1_000, 2, "float64", 470),
    (10_000, 2, "float64", 1_050),
    (10_000, 16, "float64", 2_950),
    (1_000, 2, "float32", 520),
    (10_000, 2, "int64", 1_050),
]


@pytest.mark.parametrize(("items", "classes", "dtype", "most"), GOLDEN)
def test_recall_and_golden_counts(items, classes, dtype, most):
    keys, labels = random_keys(items, classes)
    built = memorise_budgeted(keys, labels, classes=classes, dtype=dtype)
    assert np.array_equal(evaluate(built.network, keys), labels)
    total = count(built.network).nonzero
    assert total <= built.structure["parameters_by_formula"]
    assert built.structure["parameters_by_formula"] - total <= built.structure["words"]  # only a word can be zero
    assert total <= most


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classes", "dtype", "most"),
    [
        (2, "float64", 3_600),
        (16, "float64", 12_000),
        (256, "float64", 23_000),
        (2, "float32", 7_100),
        (16, "float32", 26_000),
        (256, "float32", 50_000),
    ],
)
def test_a_hundred_thousand_keys(classes, dtype, most):
    keys, labels = random_keys(100_000, classes)
    built = memorise_budgeted(keys, labels, classes=classes, dtype=dtype)
    assert np.array_equal(evaluate(built.network, keys), labels)
    assert count(built.network).nonzero <= most


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("items", [1, 2, 3, 5, 10, 33])
def test_small_sizes_and_label_widths(items, dtype):
    for bits in (1, 3, 16):
        draw = np.random.default_rng(bits)
        keys = draw.choice(10**6, size=items, replace=False)
        labels = draw.integers(0, 2**bits, size=items)
        built = memorise_budgeted(keys, labels, classes=2**bits, dtype=dtype)
        assert np.array_equal(evaluate(built.network, keys), labels)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_every_small_size_and_every_label_width(dtype):
    for items in (1, 2, 3, 5, 10, 33):
        for bits in range(1, 17):
            draw = np.random.default_rng(bits)
            keys = draw.choice(10**6, size=items, replace=False)
            labels = draw.integers(0, 2**bits, size=items)
            built = memorise_budgeted(keys, labels, classes=2**bits, dtype=dtype)
            assert np.array_equal(evaluate(built.network, keys), labels)


@pytest.mark.parametrize(("dtype", "classes"), [("float64", 2), ("float32", 2), ("float64", 5), ("int64", 16)])
@pytest.mark.parametrize("bits", [1, 2, 3, 5, 8, 12])
def test_short_words_are_made_up_for_by_more_of_them(bits, dtype, classes):
    keys, labels = random_keys(700, classes)
    built = memorise_budgeted(keys, labels, classes=classes, dtype=dtype, bits=bits)
    strangers = np.setdiff1d(np.arange(2_000), keys)
    assert built.structure["bits"] <= bits
    assert np.array_equal(evaluate(built.network, keys), labels)
    assert np.array_equal(Fused(built.network).labels(strangers), evaluate(built.network, strangers))
    assert count(built.network).nonzero <= built.structure["parameters_by_formula"]
    assert max(static_bounds(built.network).values()) <= 2 ** EXACT_BITS[dtype]


def test_fewer_bits_cost_parameters_in_proportion():
    keys, labels = random_keys(10_000, 2)
    sizes = [count(memorise_budgeted(keys, labels, classes=2, bits=b).network).nonzero for b in (1, 4, 8, 12)]
    assert np.all(np.array(sizes) <= [7_500, 3_500, 2_100, 1_700])


def test_a_single_key_of_zero():
    for bits in (1, None):
        built = memorise_budgeted(np.array([0]), np.array([2]), classes=3, bits=bits)
        assert evaluate(built.network, np.array([0])).tolist() == [2]


CROWDED = {
    "consecutive": np.arange(3000),
    "far consecutive": 2**40 + np.arange(3000),
    "multiples": 2**20 * np.arange(3000),
    "squares": np.arange(3000) ** 2,
    "two clusters": np.concatenate([np.arange(1500), 2**44 + np.arange(1500)]),
    "exponential": np.unique((1.008 ** np.arange(3500)).astype(np.int64)),
}


@pytest.mark.parametrize("name", CROWDED)
def test_crowded_keys(name):
    keys = CROWDED[name]
    labels = np.random.default_rng(0).integers(0, 2, size=len(keys))
    built = memorise_budgeted(keys, labels, classes=2)
    assert np.array_equal(evaluate(built.network, keys), labels)
    assert count(built.network).nonzero <= 1_100


def states(network, keys, dtype):
    """Every residual state in the arithmetic of ``dtype`` with dense products, and in int64 by the same formula."""

    def run(numbers):
        x = np.stack([c.astype(numbers) for c in split(network, keys)], axis=1)

        def affine(layer: Affine, values):
            return values @ layer.to_dense().astype(numbers).T + layer.bias.astype(numbers)

        state = affine(network.embed, x)
        yield state.copy()
        for stage in network.stages:
            assert isinstance(stage, Block)
            hidden = state
            for layer in stage.layers[:-1]:
                hidden = np.maximum(affine(layer, hidden), 0)
            state = state + affine(stage.layers[-1], hidden)
            yield state.copy()

    yield from zip(run(dtype), run("int64"), strict=True)


@settings(max_examples=12)
@given(st.integers(2, 400), st.integers(1, 6), st.sampled_from(["float64", "float32"]), st.integers(0, 2**31))
def test_float_states_equal_integer_states_for_known_and_unknown_items(items, bits, dtype, seed):
    keys, labels = random_keys(items, 2**bits, seed)
    built = memorise_budgeted(keys, labels, classes=2**bits, dtype=dtype, seed=seed)
    low, high = 0, int(keys.max())
    asked = np.unique(np.concatenate([keys, np.random.default_rng(seed).integers(low, high + 1, size=300)]))
    for real, whole in states(built.network, asked, dtype):
        assert np.array_equal(real.astype(np.int64), whole)
        assert np.array_equal(real, np.rint(real))
    answers = evaluate(built.network, asked)
    assert answers.min() >= 0  # unknown items get some label, never a broken one
    assert answers.max() < 2**bits
    for numbers in ("int64", "float64"):
        assert np.array_equal(Fused(built.network, numbers).labels(asked), answers)


@pytest.mark.parametrize(("dtype", "width"), [("float64", 53), ("float32", 24), ("int64", 63)])
def test_every_layer_is_proved_exact_from_the_weights_alone(dtype, width):
    keys, labels = random_keys(700, 4)
    network = memorise_budgeted(keys, labels, classes=4, dtype=dtype).network
    bounds = static_bounds(network)
    assert set(bounds) == {name for name, _ in network.maps()}
    assert max(bounds.values()) < 2**width


def test_same_seed_same_weights_and_order_does_not_matter():
    keys, labels = random_keys(500, 4)
    one = memorise_budgeted(keys, labels, classes=4, seed=3).network
    two = memorise_budgeted(keys, labels, classes=4, seed=3).network
    assert all(a.same_as(b) for (_, a), (_, b) in zip(one.maps(), two.maps(), strict=True))
    turned = np.random.default_rng(0).permutation(500)
    assert np.array_equal(evaluate(one, keys[turned]), labels[turned])


def test_new_labels_change_words_only():
    keys, labels = random_keys(800, 4)
    one = memorise_budgeted(keys, labels, classes=4)
    two = memorise_budgeted(keys, (labels + 1) % 4, classes=4)
    assert one.relabelable
    changed = [n for (n, a), (_, b) in zip(one.network.maps(), two.network.maps(), strict=True) if not a.same_as(b)]
    assert changed
    assert all("load/words" in name for name in changed)


def test_depth_is_traded_for_parameters():
    keys, labels = random_keys(5_000, 2)
    free = memorise_budgeted(keys, labels, classes=2)
    shallow = memorise_budgeted(keys, labels, classes=2, max_depth=40)
    assert shallow.network.depth <= 40 < free.network.depth
    assert count(shallow.network).nonzero > count(free.network).nonzero
    assert memorise_budgeted(keys, labels, classes=2, bits=12).structure["bits"] <= 12
    with pytest.raises(ConfigurationError, match="at most 9 layers deep"):
        memorise_budgeted(keys, labels, classes=2, max_depth=9)


def test_two_limbs():
    draw = np.random.default_rng(0)
    keys = np.unique(np.stack([draw.integers(0, 2**21, 2000), draw.integers(0, 2**19, 2000)], axis=1), axis=0)
    labels = draw.integers(0, 2, size=len(keys))
    built = memorise_budgeted(keys, labels, classes=2, dtype="float32")
    assert built.network.inputs == ("sel", "q")
    assert np.array_equal(Fused(built.network).labels_of_inputs(keys), labels)


def test_refusals():
    keys = np.array([1, 2, 3])
    labels = np.array([0, 1, 0])
    for dtype in ("float16", "bfloat16"):
        with pytest.raises(PrecisionError, match=f"{dtype} holds too few exact integers"):
            memorise_budgeted(keys, labels, classes=2, dtype=dtype)
    with pytest.raises(ConfigurationError, match="did you mean 'float64'"):
        memorise_budgeted(keys, labels, classes=2, dtype="flaot64")
    with pytest.raises(PrecisionError, match=r"below 2\^44; use weights='float64'"):
        memorise_budgeted(np.array([1, 2**46]), labels[:2], classes=2, dtype="float32")
    with pytest.raises(PrecisionError, match="use weights='int64' or weights='exact'"):
        memorise_budgeted(np.array([1, 2**59]), labels[:2], classes=2)
    with pytest.raises(PrecisionError, match="use weights='int64'$"):
        memorise_budgeted(np.array([1, 2**61]), labels[:2], classes=2, dtype="float32")
    with pytest.raises(PrecisionError, match="number them anew from 0"):
        memorise_budgeted(np.array([1, 2**62]), labels[:2], classes=2, dtype="int64")
    with pytest.raises(DataError, match="2 occurs more than once"):
        memorise_budgeted(np.array([2, 1, 2]), labels, classes=2)
    with pytest.raises(DataError, match=r"label 2 of key number 2 is outside \[0, 2\)"):
        memorise_budgeted(keys, np.array([0, 2, 0]), classes=2)
    with pytest.raises(DataError, match="no keys"):
        memorise_budgeted(keys[:0], labels[:0], classes=2)
    with pytest.raises(PrecisionError, match=r"bits must be in \[1, 47\]"):
        memorise_budgeted(keys, labels, classes=2, bits=48)
    with pytest.raises(ConfigurationError, match="selector must be auto or packed"):
        memorise_budgeted(keys, labels, classes=2, selector="step")
    with pytest.raises(ConfigurationError, match="lanes must be"):
        memorise_budgeted(keys, labels, classes=2, lanes=0)
    with pytest.raises(ConfigurationError, match="words must be 1, 2"):
        memorise_budgeted(keys, labels, classes=2, words=3)
