"""Networks that the constructions write, through all that uses them: evaluator, module, proof, hash, files, ONNX."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exact.test_identity import changed, with_layer
from tests.model.numpy_reader import answers

from memcap.construct.budgeted import memorise_budgeted
from memcap.construct.keyed import memorise_keyed
from memcap.construct.memorise import memorise_exact
from memcap.exact.certificate import certify_network
from memcap.exact.counts import count
from memcap.exact.evaluate import evaluate, trace
from memcap.exact.identity import network_identity
from memcap.exact.plain_mlp import to_plain_mlp
from memcap.exact.ranges import LIMITS, STATIC, prove
from memcap.model.files import read_folder, write_folder
from memcap.model.literal import predict, to_module

N = 150


def keys_and_labels(classes):
    rng = np.random.Generator(np.random.Philox(classes))
    return np.sort(rng.choice(2**17, N, replace=False)).astype(np.int64), rng.integers(0, classes, N)


def made(name):
    kind, *rest = name.split(" ")
    classes = int(rest[-1])
    keys, labels = keys_and_labels(classes)
    if kind == "keyed":
        return memorise_keyed(keys, labels, classes=classes).network, keys, labels + 1, "exact"
    if kind == "exact":
        return memorise_exact(keys, labels, classes=classes, selector=rest[0]).network, keys, labels, "exact"
    return memorise_budgeted(keys, labels, classes=classes, dtype=kind).network, keys, labels, kind


NAMES = [
    "float64 2", "float64 16", "float32 2", "float32 16", "int64 2",
    "exact step 2", "exact ramp 16", "exact bucket 2", "exact packed 2", "keyed 2",
]  # fmt: skip
FLOATS = [n for n in NAMES if n.split(" ")[0] in ("float64", "float32", "int64")]
_BUILT = {}


def built(name):
    if name not in _BUILT:
        _BUILT[name] = made(name)
    return _BUILT[name]


def unknown_keys(network):
    """Keys in range that were never memorised, the ends of the range among them."""
    high = network.input_range[0][1]
    if network.key_limbs is not None:
        high = (high << network.key_limbs[0]) | (2 ** network.key_limbs[0] - 1)
    return np.unique(np.concatenate([[0, high], np.random.Generator(np.random.Philox(9)).integers(0, high + 1, 60)]))


@pytest.mark.parametrize("name", NAMES)
def test_certified_and_stored(tmp_path, name):
    network, keys, labels, weights = built(name)
    certificate = certify_network(network, keys, labels, weights=weights, data_hash="d")
    assert certificate
    assert certificate.items == N
    write_folder(tmp_path / "m", network, {}, certificate, weights)
    stored = read_folder(tmp_path / "m")
    stored.require_intact()
    assert stored.certificate == certificate
    assert network_identity(stored.network) == certificate.network_hash
    if weights in ("float64", "float32"):
        assert answers(tmp_path / "m", keys[:, None]).tolist() == labels.tolist()


@pytest.mark.parametrize("name", FLOATS)
def test_the_module_computes_the_same_integers_on_known_and_unknown_keys(name):
    network, keys, labels, weights = built(name)
    module = to_module(network, weights)
    every = np.concatenate([keys, unknown_keys(network)])
    for (_, wanted), (_, got) in zip(
        trace(network, every, engine="int64")[:-1], module.states(torch.from_numpy(every)), strict=True
    ):
        assert np.array_equal(wanted, got.detach().to(torch.int64).numpy()[:, 0].T)
    assert predict(module, keys).tolist() == labels.tolist()
    assert predict(module, every, batch=7).tolist() == evaluate(network, every).tolist()
    counts = count(network)
    assert sum(int((p != 0).sum()) for p in module.parameters()) == counts.nonzero
    assert sum(p.numel() for p in module.parameters()) == counts.dense


@pytest.mark.parametrize("name", FLOATS)
def test_the_range_is_proved_from_the_weights(name):
    """Not from samples: no item is looked at."""
    network, _, _, weights = built(name)
    proof = prove(network, weights)
    assert proof
    assert set(proof.kinds) == {STATIC}
    assert proof.largest.bound <= LIMITS[weights]


@pytest.mark.parametrize("name", NAMES)
def test_the_plain_perceptron_recalls_the_same(name):
    network, keys, labels, _ = built(name)
    if len(network.inputs) == 1:
        assert to_plain_mlp(network, keys, neurons=2).evaluate(keys).tolist() == labels.tolist()
    proved = to_plain_mlp(network)
    every = np.concatenate([keys, unknown_keys(network)])
    assert proved.evaluate(every).tolist() == evaluate(network, every).tolist()


@pytest.mark.parametrize("classes", [2, 16])
def test_step_selectors_become_perceptrons_of_constant_width(classes):
    network, keys, labels, _ = built(f"exact step {classes}")
    mlp = to_plain_mlp(network, keys, neurons=2)
    assert mlp.width <= (4 if classes == 2 else 5)
    assert mlp.evaluate(keys).tolist() == labels.tolist()


@given(st.data())
@settings(max_examples=12)
def test_one_unit_anywhere_fails_the_check(data):
    one_unit_fails(data)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=400)
def test_one_unit_anywhere_fails_the_check_at_length(data):
    one_unit_fails(data)


def one_unit_fails(data):
    """Any number of any memory of any method and format, zero or not, changed by one."""
    name = data.draw(st.sampled_from(NAMES))
    network, keys, labels, weights = built(name)
    if name not in _CERTIFIED:
        _CERTIFIED[name] = certify_network(network, keys, labels, weights=weights, data_hash="d")
    layer_name, layer = data.draw(st.sampled_from(list(network.maps())))
    row, column = data.draw(st.integers(0, layer.outputs - 1)), data.draw(st.integers(-1, layer.inputs - 1))
    other = with_layer(network, layer_name, changed(layer, row, column, data.draw(st.sampled_from([-1, 1]))))
    verdict = certify_network(other, keys, labels, weights=weights, data_hash="d", against=_CERTIFIED[name])
    assert not verdict
    (difference,) = verdict.differences
    assert (difference.layer, difference.row, difference.column) == (layer_name, row, column)
    lost = keys[np.asarray(evaluate(other, keys) != labels)]
    assert [int(keys[r - 1]) for r in verdict.wrong_rows] == lost.tolist()


_CERTIFIED = {}


@pytest.mark.parametrize("name", FLOATS)
def test_onnx_answers_every_item(tmp_path, name):
    pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    from memcap.model.onnx_export import OnnxNetwork, export_onnx

    network, keys, labels, weights = built(name)
    assert export_onnx(network, tmp_path / "m.onnx", weights, rows=keys, wanted=labels)
    graph, unknown = OnnxNetwork(tmp_path / "m.onnx"), unknown_keys(network)
    assert graph.predict(unknown, batch=7).tolist() == evaluate(network, unknown).tolist()
