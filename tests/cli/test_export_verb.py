"""``memcap export`` end to end: the files it writes answer like the memory."""

import builtins
import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.torch import load_file

import memcap
from memcap.data.sequences import SequenceData
from memcap.exact.plain_mlp import PlainMLP, layers_from_json

FLAGS = ("--sequence", "city", "--label", "country", "--encoding", "characters")


@pytest.fixture
def memory(memcap_cli, cities, tmp_path):
    folder = tmp_path / "cities.memory"
    assert memcap_cli("build", cities, *FLAGS, "--out", folder).code == 0
    return folder


def key_memory(folder, *, weights="exact", **options):
    keys = np.random.default_rng(2).choice(10**6, 90, replace=False)
    data = SequenceData.from_arrays(keys, np.array(["red", "blue"])[keys % 2].tolist())
    memcap.build(data, weights=weights, **options).save(folder)
    file = folder.with_name("keys.csv")
    rows = [f"{key},{('red', 'blue')[key % 2]}" for key in keys.tolist()]
    file.write_text("key,colour\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return keys, file


def test_onnx_is_asked_for_every_item(memcap_cli, memory, cities, tmp_path):
    pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    result = memcap_cli("export", memory, tmp_path / "cities.onnx", "--data", cities)
    assert result.code == 0, result.err
    assert "14 / 14 items right, asked of the file" in result.out
    assert (tmp_path / "cities.onnx").stat().st_size > 1000
    record = memcap_cli("export", memory, tmp_path / "again.onnx", "--data", cities, "--json").json
    assert record["certified"]
    assert (record["format"], record["items"], record["correct"]) == ("onnx", 14, 14)
    unasked = memcap_cli("export", memory, tmp_path / "unasked.onnx")
    assert unasked.code == 0
    assert "not asked for any item (--data FILE asks it for all)" in unasked.out


def test_a_state_loads_into_the_module(memcap_cli, memory, cities, tmp_path):
    result = memcap_cli("export", memory, tmp_path / "cities.safetensors", "--data", cities, "--json")
    assert result.code == 0, result.err
    assert result.json["certified"]
    module = memcap.load(memory).to_module()
    wanted = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    state = load_file(tmp_path / "cities.safetensors")
    assert state.keys() == wanted.keys()
    assert all((state[name] == wanted[name]).all() for name in wanted)
    with safe_open(tmp_path / "cities.safetensors", "pt") as file:
        assert json.loads(file.metadata()["label_names"]) == list(memcap.load(memory).header.label_names)


@pytest.mark.parametrize("with_data", [True, False])
def test_a_plain_perceptron_answers_like_the_memory(memcap_cli, tmp_path, with_data):
    keys, file = key_memory(tmp_path / "keys.memory", selector="step")
    asked = ("--data", file, "--sequence", "key", "--label", "colour", "--encoding", "integers") if with_data else ()
    result = memcap_cli("export", tmp_path / "keys.memory", tmp_path / "keys.json", "--neurons", 2, *asked, "--json")
    assert result.code == 0, result.err
    assert (result.json["items"], result.json["certified"]) == ((90, True) if with_data else (0, False))
    assert result.json["width"] == 4
    record = json.loads((tmp_path / "keys.json").read_text(encoding="utf-8"))
    stored = memcap.load(tmp_path / "keys.memory")
    layers, unit = layers_from_json(record)
    found = PlainMLP(layers, unit, stored.network, proved=False).evaluate(keys)
    assert [record["label_names"][label] for label in found] == stored.predict(keys)
    assert (record["inputs"], record["key_limbs"]) == (["key"], None)


def test_a_keyed_memory_as_a_plain_perceptron(memcap_cli, tmp_path):
    _, file = key_memory(tmp_path / "keys.memory", method="keyed")
    asked = ("--data", file, "--sequence", "key", "--label", "colour", "--encoding", "integers")
    result = memcap_cli("export", tmp_path / "keys.memory", tmp_path / "keys.json", *asked)
    assert result.code == 0, result.err
    assert "90 / 90 items right" in result.out
    assert json.loads((tmp_path / "keys.json").read_text(encoding="utf-8"))["first_label"] == 1


def test_an_existing_file_is_kept_unless_forced(memcap_cli, memory, tmp_path):
    file = tmp_path / "cities.safetensors"
    file.write_text("mine", encoding="utf-8")
    refused = memcap_cli("export", memory, file)
    assert refused.code == 2
    assert "exists; choose another name, or --force to replace it" in refused.err
    assert file.read_text(encoding="utf-8") == "mine"
    assert memcap_cli("export", memory, file, "--force", "--quiet").out == f"{file}\n"
    assert len(load_file(file)) > 3


def test_a_file_that_answers_wrong_is_not_kept(memcap_cli, memory, cities, tmp_path):
    changed = tmp_path / "changed.csv"
    changed.write_text(cities.read_text(encoding="utf-8").replace("Oslo,Norway", "Oslo,France"), encoding="utf-8")
    result = memcap_cli("export", memory, tmp_path / "m.safetensors", "--data", changed)
    assert result.code == 1
    assert "the exported file answers 1 of 14 items wrong (rows 13); not kept" in result.err
    assert not list(tmp_path.glob("*.safetensors"))
    assert not list(tmp_path.glob(".*"))


def test_what_cannot_be_exported_says_why(memcap_cli, memory, tmp_path):
    sequences = memcap_cli("export", memory, tmp_path / "m.json")
    assert (sequences.code, "only memories of single tokens have one" in sequences.err) == (2, True)
    key_memory(tmp_path / "keys.memory", selector="packed")
    exact = memcap_cli("export", tmp_path / "keys.memory", tmp_path / "m.safetensors")
    assert exact.code == 2
    assert "build with --weights float64, float32 or int64 for a torch state" in exact.err
    assert not (tmp_path / "m.safetensors").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{memory}", "{tmp}/m.bin"), "the suffix names no format (.onnx, .json, .safetensors); say --as"),
        (("{memory}", "{tmp}/m.bin", "--as", "onxx"), "(did you mean 'onnx'?)"),
        (("{memory}", "{tmp}", "--as", "state"), "is a folder; name a file to write"),
        (("{memory}", "{tmp}/no/m.safetensors"), "the folder does not exist; create "),
        (("{memory}", "{tmp}/m.safetensors", "--neurons", "2"), "--neurons belongs to --as mlp, not to state"),
        (("{tmp}/none", "{tmp}/m.onnx"), "none"),
    ],
)
def test_a_wrong_call_is_one_message_and_exit_code_2(memcap_cli, memory, tmp_path, arguments, message):
    result = memcap_cli("export", *(a.format(memory=memory, tmp=tmp_path) for a in arguments))
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err


def test_a_missing_extra_names_the_command_that_installs_it(memcap_cli, memory, tmp_path, monkeypatch):
    real = builtins.__import__

    def without_onnx(name, *rest):
        if name.split(".")[0] == "onnx":
            raise ImportError("no onnx here", name="onnx")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_onnx)
    result = memcap_cli("export", memory, tmp_path / "m.onnx")
    assert result.code == 2
    assert "pip install 'memcap[onnx]'" in result.err
