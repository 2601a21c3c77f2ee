"""Identity: any one stored number changed by one unit changes the hash, and the change is located."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.networks import GOLDEN

from memcap.exact.affine import Affine
from memcap.exact.identity import BIAS, differences, layer_identity, network_identity, network_prints
from memcap.exact.network import Block

everyone = pytest.mark.parametrize("golden", GOLDEN.values(), ids=GOLDEN)


def with_layer(network, name, new):
    """``network`` with one map replaced."""
    at = iter(network.maps())
    pick = lambda layer: new if next(at)[0] == name else layer  # noqa: E731
    embed = pick(network.embed)
    stages = []
    for stage in network.stages:
        if isinstance(stage, Block):
            stages.append(dataclasses.replace(stage, layers=tuple(pick(layer) for layer in stage.layers)))
        else:
            stages.append(dataclasses.replace(stage, value=pick(stage.value), output=pick(stage.output)))
    return dataclasses.replace(network, embed=embed, stages=tuple(stages), read=pick(network.read))


def changed(layer, row, column, by):
    """``layer`` with one entry (zero or not; column -1: the bias) changed by ``by``."""
    dense, bias = layer.to_dense().astype(object), layer.bias.astype(object).copy()
    if column == BIAS:
        bias[row] += by
    else:
        dense[row, column] += by
    entries = [(r, c, dense[r, c]) for r in range(layer.outputs) for c in range(layer.inputs)]
    return Affine.from_entries(layer.outputs, layer.inputs, entries, list(bias))


@given(st.data())
def test_every_one_unit_change_is_caught_and_located(data):
    network = data.draw(st.sampled_from(list(GOLDEN.values()))).network
    name, layer = data.draw(st.sampled_from(list(network.maps())))
    row = data.draw(st.integers(0, layer.outputs - 1))
    column = data.draw(st.integers(-1, layer.inputs - 1))
    other = with_layer(network, name, changed(layer, row, column, data.draw(st.sampled_from([-1, 1]))))
    assert network_identity(other) != network_identity(network)
    (difference,) = differences(other, network_prints(network))
    assert (difference.layer, difference.row, difference.column) == (name, row, column)
    what = f"bias of output {row}" if column == BIAS else f"weight [{row}, {column}]"
    assert str(difference) == f"layer {name}: the {what} differs"


@everyone
def test_structure_counts(golden):
    network = golden.network
    for changes in (
        {"unit": network.unit + 1},
        {"channels": tuple(f"{c}'" for c in network.channels)},
        {"input_range": tuple((low, high + 1) for low, high in network.input_range)},
        {"per_position": not network.per_position},
    ):
        assert network_identity(dataclasses.replace(network, **changes)) != network_identity(network)
    assert differences(network, network_prints(network)) == ()


def test_storage_does_not_count():
    """The same integers as int64 or as Python integers, stored zeros or not, in any order: one identity."""
    layer = Affine.from_entries(2, 3, [(0, 2, 5), (1, 0, -7)], [0, 3])
    wide = Affine(2, 3, layer.row, layer.column, layer.weight.astype(object), layer.bias.astype(object))
    zero = Affine(2, 3, np.array([1, 0, 0]), np.array([0, 1, 2]), np.array([-7, 0, 5]), layer.bias)
    assert layer_identity(layer) == layer_identity(wide) == layer_identity(zero)


def test_many_changes_name_the_first_row():
    network = GOLDEN["one-hot"].network
    prints = network_prints(network)
    name, layer = list(network.maps())[1]
    two = changed(changed(layer, 2, 0, 1), 5, BIAS, 1)
    (found,) = differences(with_layer(network, name, two), prints)
    assert str(found) == f"layer {name}: row 2 differs (first of entries in 2 rows, 2 columns)"
    same_row = changed(changed(layer, 2, 1, 1), 2, BIAS, 1)
    (found,) = differences(with_layer(network, name, same_row), prints)
    assert str(found) == f"layer {name}: the weight [2, 1] differs (first of entries in 1 rows, 2 columns)"
    assert len(differences(with_layer(network, name, two), {})) == len(prints)
    assert str(differences(network, {**prints, "ghost": prints["embed"]})[0]) == "layer ghost: is missing"
    (found,) = differences(with_layer(network, name, changed(Affine.from_entries(8, 2, []), 0, 0, 1)), prints)
    assert found.detail.startswith("row 0 differs")
