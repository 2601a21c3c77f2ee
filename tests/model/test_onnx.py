"""ONNX export: the same answers at every batch and length, certified through onnxruntime, or refused with a reason."""

import dataclasses
import os
import sys

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
import onnx
from tests.golden.networks import GOLDEN, fold_chain

from memcap.errors import ConfigurationError, DomainError, FormatError, MissingExtraError, PrecisionError, RunError
from memcap.exact.evaluate import evaluate
from memcap.model.onnx_export import OnnxNetwork, export_onnx

FLOATS = {name: g for name, g in GOLDEN.items() if g.floats}


@pytest.mark.parametrize("golden", FLOATS.values(), ids=FLOATS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_every_item_is_certified_through_the_runtime(tmp_path, golden, dtype):
    report = export_onnx(golden.network, tmp_path / "m.onnx", dtype, rows=golden.rows, wanted=golden.labels)
    assert report
    assert report.items == report.correct == golden.labels.size
    assert (report.weights, os.listdir(tmp_path)) == (dtype, ["m.onnx"])
    assert report.bytes == os.path.getsize(tmp_path / "m.onnx")
    graph = OnnxNetwork(tmp_path / "m.onnx")
    for batch in (1, 7, 64):
        assert graph.predict(golden.rows, batch=batch).tolist() == golden.labels.tolist()
    assert graph.predict(golden.rows[:0]).shape == golden.labels[:0].shape


@pytest.mark.parametrize("name", ["next-token", "seq2seq"])
def test_other_lengths_than_the_network_s(tmp_path, name):
    network = GOLDEN[name].network
    export_onnx(network, tmp_path / "m.onnx", "float64")
    graph = OnnxNetwork(tmp_path / "m.onnx")
    for length in (1, 2, 3, 4):
        rows = np.random.Generator(np.random.Philox(length)).integers(0, 6, size=(9, length))
        padded = np.full((9, 4), 5)
        padded[:, :length] = rows
        wanted = evaluate(network, padded)
        assert graph.predict(rows).tolist() == (wanted[:, :length] if network.per_position else wanted).tolist()
    with pytest.raises(DomainError, match=r"rows of shape \(2, 5\) do not fit the exported graph \(longer than"):
        graph.predict(np.zeros((2, 5), dtype=np.int64))
    with pytest.raises(DomainError, match=r"reads tokens of shape \['rows', 'length'\], got \(2,\)"):
        graph.predict(np.zeros(2, dtype=np.int64))


def test_a_token_outside_the_range_has_no_label(tmp_path):
    export_onnx(GOLDEN["next-token"].network, tmp_path / "m.onnx", "float64")
    graph = OnnxNetwork(tmp_path / "m.onnx")
    assert graph.predict(np.array([[0, 0, 6, 0], [0, -1, 0, 0], [0, 0, 0, 0]])).tolist() == [-1, -1, 0]
    export_onnx(GOLDEN["interpolator"].network, tmp_path / "k.onnx", "float32")
    assert OnnxNetwork(tmp_path / "k.onnx").predict([13, 1, -1]).tolist() == [-1, 1, -1]


def test_an_output_off_the_unit_has_no_label(tmp_path):
    golden = GOLDEN["next-token"]
    for dtype in ("float64", "int64"):
        export_onnx(dataclasses.replace(golden.network, unit=2), tmp_path / "m.onnx", dtype)
        assert set(OnnxNetwork(tmp_path / "m.onnx").predict(golden.rows).tolist()) == {0, -1}


def test_the_softmax_and_the_structure_are_in_the_graph(tmp_path):
    golden = GOLDEN["next-token"]
    export_onnx(golden.network, tmp_path / "m.onnx", "float64", metadata={"labels": ["no", "ja"]})
    model = onnx.load(tmp_path / "m.onnx")
    assert "Softmax" in {n.op_type for n in model.graph.node}
    names = {i.name for i in model.graph.initializer}
    assert {f"{n}.weight" for n, _ in golden.network.maps()} <= names
    facts = {p.key: p.value for p in model.metadata_props}
    assert facts["labels"] == '["no", "ja"]'
    assert facts["weights"] == "float64"


def test_a_wrong_answer_leaves_no_file(tmp_path):
    golden = GOLDEN["interpolator"]
    wanted = golden.labels.copy()
    wanted[[3, 8]] += 1
    with pytest.raises(RunError, match=r"answers 2 of 13 items wrong in float64 \(rows 4, 9\); the file was not kept"):
        export_onnx(golden.network, tmp_path / "m.onnx", "float64", rows=golden.rows, wanted=wanted)
    assert os.listdir(tmp_path) == []


def test_refusals(tmp_path, monkeypatch):
    golden = GOLDEN["next-token"]
    path = tmp_path / "m.onnx"
    with pytest.raises(PrecisionError, match="a weight of 77 bits in layer embed; float32, float64 and int64"):
        export_onnx(GOLDEN["fold-chain-wide"].network, path, "exact")
    with pytest.raises(PrecisionError, match="layer embed.weight: a weight of 33 bits does not fit float32"):
        export_onnx(fold_chain(unit=2**30).network, path, "float32")
    with pytest.raises(PrecisionError, match="bfloat16 holds every integer only up to 256"):
        export_onnx(golden.network, path, "bfloat16")
    odd = dataclasses.replace(golden.network, length=3, input_range=((0, 5), (0, 2)))
    with pytest.raises(PrecisionError, match="softmax over 3 positions is not exact in float64"):
        export_onnx(odd, path, "float64")
    with pytest.raises(ConfigurationError, match="both rows and wanted labels, or neither"):
        export_onnx(golden.network, path, "float64", rows=golden.rows)
    with pytest.raises(ConfigurationError, match="the folder does not exist; create .* first"):
        export_onnx(golden.network, tmp_path / "no" / "m.onnx", "float64")
    with pytest.raises(FormatError, match="there is no such file"):
        OnnxNetwork(path)
    path.write_bytes(b"not a graph")
    with pytest.raises(FormatError, match=r"m.onnx: onnxruntime cannot read it"):
        OnnxNetwork(path)
    one = onnx.helper.make_tensor_value_info("keys", onnx.TensorProto.INT64, ["rows"])
    out = onnx.helper.make_tensor_value_info("labels", onnx.TensorProto.INT64, ["rows"])
    nodes = [onnx.helper.make_node("Cast", ["keys"], ["d"], to=16), onnx.helper.make_node("Relu", ["d"], ["e"]),
             onnx.helper.make_node("Cast", ["e"], ["labels"], to=7)]  # fmt: skip
    graph = onnx.helper.make_graph(nodes, "g", [one], [out])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    with pytest.raises(PrecisionError, match="lacks a kernel this number format needs"):
        OnnxNetwork(path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'memcap\[onnx\]'"):
        export_onnx(golden.network, path, "float64")


def test_an_exact_network_takes_the_narrowest_format(tmp_path):
    for scale, dtype in [(1, "float32"), (2**30, "float64"), (2**55, "int64")]:
        golden = fold_chain(unit=scale)
        report = export_onnx(golden.network, tmp_path / "m.onnx", "exact", rows=golden.rows, wanted=golden.labels)
        assert (report.weights, bool(report)) == (dtype, True)
