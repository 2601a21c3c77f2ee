"""ONNX files and plain perceptrons of whole memories, through the public methods."""

import json

import numpy as np
import pytest

from memcap.data.sequences import SequenceData
from memcap.errors import ConfigurationError
from memcap.model.build import build
from memcap.model.load import load

onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
from memcap.model.onnx_export import OnnxNetwork  # noqa: E402


def sequences(per_position=False):
    rng = np.random.Generator(np.random.Philox(3))
    tokens = rng.integers(0, 20, size=(40, 5))
    labels = np.array(["a", "b", "c"])[tokens % 3 if per_position else rng.integers(0, 3, size=40)]
    return SequenceData.from_arrays(tokens.tolist(), labels.tolist())


@pytest.mark.parametrize("per_position", [False, True])
def test_a_memory_of_sequences_as_onnx(tmp_path, per_position):
    data = sequences(per_position)
    memory = build(data, seed=1)
    report = memory.to_onnx(tmp_path / "m.onnx")
    assert report
    assert report.items == (200 if per_position else 40)
    facts = {p.key: p.value for p in onnx.load(tmp_path / "m.onnx").metadata_props}
    names = json.loads(facts["label_names"])
    found = OnnxNetwork(tmp_path / "m.onnx").predict(data.tokens)
    assert np.array(names)[found].tolist() == memory.predict(data.tokens.tolist())
    memory.save(tmp_path / "m")
    assert not load(tmp_path / "m").to_onnx(tmp_path / "n.onnx")  # nothing was asked
    assert load(tmp_path / "m").to_onnx(tmp_path / "n.onnx", data)
    with pytest.raises(ConfigurationError, match="a network with attention has no plain MLP"):
        memory.to_plain_mlp()


@pytest.mark.parametrize("classes", [2, 7])
def test_a_memory_of_keys_as_a_perceptron_of_width_four(classes):
    rng = np.random.Generator(np.random.Philox(4))
    keys = rng.choice(10**6, 120, replace=False)
    data = SequenceData.from_arrays(keys[:, None].tolist(), rng.integers(0, classes, size=120).tolist())
    memory = build(data, weights="exact", selector="step")
    for mlp in (memory.to_plain_mlp(neurons=2), memory.to_plain_mlp(data, neurons=2)):
        assert mlp.width == 4
        names = [memory.header.label_names[c] for c in mlp.evaluate(data.tokens[:, 0])]
        assert names == memory.predict(data.tokens[:, 0])
