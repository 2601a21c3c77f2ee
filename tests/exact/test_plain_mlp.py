"""Plain perceptrons: the same labels as the residual network, no skips, narrow on demand."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.networks import GOLDEN

from memcap.exact.affine import Affine
from memcap.exact.evaluate import evaluate
from memcap.exact.network import Block, Network
from memcap.exact.plain_mlp import layers_from_json, narrowed, to_plain_mlp

KEYS = {name: g for name, g in GOLDEN.items() if g.network.inputs != ("token", "position")}
everyone = pytest.mark.parametrize("golden", KEYS.values(), ids=KEYS)


@everyone
@pytest.mark.parametrize("given_rows", [True, False])
@pytest.mark.parametrize("neurons", [None, 1, 2])
def test_golden_answers(golden, given_rows, neurons):
    mlp = to_plain_mlp(golden.network, golden.rows if given_rows else None, neurons=neurons)
    assert mlp.proved is not given_rows
    assert mlp.evaluate(golden.rows).tolist() == golden.labels.tolist()
    assert [a.outputs for a in mlp.layers[:-1]] == [b.inputs for b in mlp.layers[1:]]
    assert mlp.layers[0].inputs == len(golden.network.inputs)
    layers, unit = layers_from_json(mlp.to_json())
    assert unit == mlp.unit
    assert all(a.same_as(b) for a, b in zip(layers, mlp.layers, strict=True))
    again = dataclasses.replace(mlp, layers=layers)
    assert again.evaluate(golden.rows).tolist() == golden.labels.tolist()


@given(st.data())
@settings(max_examples=40)
def test_random_networks(data):
    """Channels that go negative are shifted; with proved shifts any key in range is answered alike."""
    entry = st.one_of(st.integers(-3, 3), st.integers(-(2**66), 2**66))
    width = data.draw(st.integers(1, 3))

    def affine(outputs, inputs):
        values = data.draw(st.lists(entry, min_size=outputs * inputs, max_size=outputs * inputs))
        bias = data.draw(st.lists(entry, min_size=outputs, max_size=outputs))
        return Affine.from_entries(outputs, inputs, [(i // inputs, i % inputs, v) for i, v in enumerate(values)], bias)

    stages = []
    for n in range(data.draw(st.integers(0, 3))):
        hidden = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
        sizes = [width, *hidden, width]
        stages.append(Block(f"b/{n}", tuple(affine(o, i) for i, o in itertools.pairwise(sizes))))
    network = Network(("key",), ((-9, 9),), 1, tuple("abc"[:width]), affine(width, 1), tuple(stages), affine(1, width))
    keys = np.arange(-9, 10)
    wanted = evaluate(network, keys).tolist()
    assert to_plain_mlp(network).evaluate(keys).tolist() == wanted
    assert to_plain_mlp(network, keys, neurons=1).evaluate(keys).tolist() == wanted
    assert evaluate(narrowed(network, 1), keys).tolist() == wanted


def step_selector(chunks=20, bits=4):
    """A step selector over 8 ``chunks`` keys (one wide block) and folds: the shape of the smallest exact networks."""
    rng = np.random.Generator(np.random.Philox(2))
    words = [int(v) for v in rng.integers(0, 2**bits, size=chunks)]
    pairs, bias, out = [], [], []
    for j in range(1, chunks):
        pairs += [(2 * j - 2, 0, 1), (2 * j - 1, 0, 1)]
        bias += [1 - 8 * j, -8 * j]
        delta = 4 * (words[j] - words[j - 1])
        out += [(1, 2 * j - 2, delta), (1, 2 * j - 1, -delta)]
    width = 2 * chunks - 2
    selector = Block("selector", (Affine.from_entries(width, 2, pairs, bias), Affine.from_entries(2, width, out)))
    folds = []
    for f in range(bits):
        c = 4 * 2 ** (bits - 1 - f)
        folds.append(
            Block(
                f"fold/{f}",
                (
                    Affine.from_entries(2, 2, [(0, 1, 1), (1, 1, 1)], [1 - c, -c]),
                    Affine.from_entries(2, 2, [(1, 0, -c), (1, 1, c)] if f < bits - 1 else []),
                ),
            )
        )
    embed = Affine.from_entries(2, 1, [(0, 0, 1)], [0, 4 * words[0]])
    read = Affine.from_entries(1, 2, [(0, 1, 1)])
    network = Network(("key",), ((0, 8 * chunks - 1),), 1, ("U", "V"), embed, (selector, *folds), read, 4)
    return network, [words[k // 8] % 2 for k in range(8 * chunks)]


def test_a_step_selector_becomes_a_perceptron_of_width_four():
    network, labels = step_selector()
    keys = np.arange(160)
    assert evaluate(network, keys).tolist() == labels
    wide = to_plain_mlp(network, keys)
    narrow = to_plain_mlp(network, keys, neurons=2)
    assert narrow.evaluate(keys).tolist() == wide.evaluate(keys).tolist() == labels
    assert narrow.width == 4
    assert wide.width == 38
    assert len(network.stages) <= wide.depth <= 2 * len(network.stages)
    assert narrow.nonzero == sum(int((m.to_dense() != 0).sum() + (m.bias != 0).sum()) for m in narrow.layers)
    assert narrow.dense >= narrow.nonzero


def test_channels_end_with_their_last_reader():
    network, _ = step_selector()
    mlp = to_plain_mlp(network, np.arange(160))
    widths = [layer.outputs for layer in mlp.layers]
    # V starts constant: no unit; U ends with the selector; sums settle where two units would read many entries;
    # the last fold writes nothing: no neuron
    assert widths == [38, 1, 3, 1, 3, 1, 3, 1, 1]
