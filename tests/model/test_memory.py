"""The Python face of memories: build, predict, recall, certify, save, load, relabel, modules."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import memcap
from memcap.errors import ConfigurationError, DataError, DomainError, FormatError, PrecisionError
from memcap.exact.evaluate import evaluate
from memcap.model.answering import answer

WEIGHTS = ("float64", "float32", "int64", "exact")


def keys_data(items, classes, seed=0):
    rng = np.random.default_rng(seed)
    keys = rng.choice(items * items + 10, size=items, replace=False)
    labels = rng.integers(0, classes, size=items)
    labels[: min(classes, items)] = np.arange(min(classes, items))
    return memcap.SequenceData.from_arrays(keys, labels)


def sequence_data(rows, length, vocabulary, classes, *, ordered=True, per_position=False, ragged=False, seed=0):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, vocabulary, size=(rows, length))
    tokens = np.unique(tokens if ordered else np.sort(tokens, axis=1), axis=0)
    labels = (tokens * 7 + tokens.sum(axis=1, keepdims=True)) % classes if per_position else None
    if labels is None:
        labels = rng.integers(0, classes, size=len(tokens))
        labels[:classes] = np.arange(classes)
    if ragged:
        lengths = rng.integers(1, length + 1, size=len(tokens))
        rows_ = [tuple(t[:n]) for t, n in zip(tokens, lengths, strict=True)]
        first = {r: i for i, r in reversed(list(enumerate(rows_)))}
        keep = sorted(first.values())
        return memcap.SequenceData.from_arrays([list(rows_[i]) for i in keep], [int(labels[i]) for i in keep])
    return memcap.SequenceData.from_arrays(tokens, labels, ordered=ordered)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("bits", [1, 2, 5, 16])
@pytest.mark.parametrize("items", [2, 3, 5, 10, 33])
def test_small_sizes_recall_everything(weights, items, bits):
    rng = np.random.default_rng(items * 100 + bits)
    keys = rng.choice(items * items + 10, size=items, replace=False)
    labels = rng.integers(0, 2**bits, size=items)
    labels[:2] = [0, 2**bits - 1]
    data = memcap.SequenceData.from_arrays(keys, labels)
    memory = memcap.build(data, weights=weights)
    recall = memory.recall(data)
    assert (recall.correct, recall.total) == (items, items)
    assert memory.predict(keys) == labels.tolist()
    assert memcap.certify(memory, data)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(
    "options",
    [
        {"ordered": True},
        {"ordered": False},
        {"ordered": True, "ragged": True},
        {"ordered": True, "per_position": True},
        {"ordered": False, "per_position": True},
    ],
    ids=["ordered", "multiset", "ragged", "seq2seq", "seq2seq-multiset"],
)
def test_sequences_recall_everything(weights, options, tmp_path):
    data = sequence_data(150, 5, 20, 3, **options)
    memory = memcap.build(data, weights=weights)
    certificate = memcap.certify(memory, data)
    assert certificate, str(certificate)
    assert memory.recall(data, engine="exact").correct == memory.recall(data).correct == memory.recall(data).total
    memory.with_certificate(certificate).save(tmp_path / "m")
    again = memcap.load(tmp_path / "m")
    assert again.identity == memory.identity
    assert again.header == memory.header
    items = [data.item(i) for i in range(10)]
    assert again.predict(items) == memory.predict(items)


@pytest.mark.parametrize("weights", ["float64", "float32", "int64"])
def test_module_has_the_counted_parameters_and_the_same_answers(weights):
    for data in (keys_data(300, 4), sequence_data(200, 6, 30, 4)):
        memory = memcap.build(data, weights=weights)
        module = memory.to_module()
        counted = sum(int((p != 0).sum()) for p in module.parameters())
        assert counted == memory.parameters.nonzero
        assert isinstance(memory.parameters.nonzero, int)
        rows = torch.tensor(np.array(data.tokens))
        rows = rows[:, 0] if data.length == 1 else rows
        with torch.no_grad():
            found = module(rows)
        assert np.array_equal(found.numpy(), data.labels)


def test_batch_and_order_change_nothing():
    data = keys_data(500, 8)
    memory = memcap.build(data)
    keys = np.concatenate([data.tokens[:, 0], np.arange(500)])
    whole = memory.predict(keys)
    for batch in (1, 7, 64, 999):
        assert [label for i in range(0, 1000, batch) for label in memory.predict(keys[i : i + batch])] == whole
    order = np.random.default_rng(1).permutation(1000)
    assert memory.predict(keys[order]) == [whole[i] for i in order]


@given(st.integers(2, 60), st.integers(1, 4), st.integers(0, 10**6), st.sampled_from(WEIGHTS))
@settings(max_examples=30)
def test_fast_answers_equal_exact_ones_on_known_and_unknown_items(items, bits, seed, weights):
    data = keys_data(items, 2**bits, seed)
    memory = memcap.build(data, weights=weights)
    asked = np.random.default_rng(seed).integers(0, int(data.tokens.max()) + 1, size=80)
    fast = answer(memory.network, weights, asked[:, None])
    assert np.array_equal(fast, evaluate(memory.network, asked))


def test_same_seed_same_network_other_seed_other_network():
    data = keys_data(400, 2)
    assert memcap.build(data, seed=3).identity == memcap.build(data, seed=3).identity
    assert memcap.build(data, seed=3).identity != memcap.build(data, seed=4).identity


def test_keyed_memories_do_not_know_strangers():
    data = keys_data(60, 3)
    memory = memcap.build(data, weights="exact", method="keyed")
    known = set(data.tokens[:, 0].tolist())
    strangers = [k for k in range(int(data.tokens.max())) if k not in known][:200]
    assert memory.predict(strangers) == [None] * len(strangers)
    assert memory.recall(data).correct == 60
    assert memcap.certify(memory, data)


def test_relabelling():
    data = keys_data(300, 2)
    memory = memcap.build(data)
    flipped = [1 - data.label_names[i] for i in data.labels]
    other = memory.relabel(flipped)
    assert other.predict(data.tokens[:, 0]) == flipped
    assert "relabelled" in other.header.structure


def test_a_loaded_memory_needs_the_data_to_relabel(tmp_path):
    data = keys_data(30, 2)
    memcap.build(data).save(tmp_path / "m")
    memory = memcap.load(tmp_path / "m")
    with pytest.raises(ConfigurationError, match="relabel\\(labels, data=data\\)"):
        memory.relabel([0] * 15 + [1] * 15)
    assert memory.relabel([0] * 15 + [1] * 15, data=data).recall(data).total == 30


def test_true_and_one_are_different_labels():
    rows = [[i] for i in range(6)]
    data = memcap.SequenceData.from_arrays(rows, ["a", "b", "a", "b", "a", "b"])
    memory = memcap.build(data)
    assert memory.predict([[0], [1]]) == ["a", "b"]
    truth = memcap.SequenceData.from_arrays(rows, [True, False] * 3)
    assert memcap.build(truth).recall(truth).correct == 6
    assert memcap.build(truth).recall(memcap.SequenceData.from_arrays(rows, [1, 0] * 3)).correct == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"weights": "float16"}, PrecisionError, "float16 holds every integer only up to 2048"),
        ({"weights": "bfloat16"}, PrecisionError, "bfloat16 holds every integer only up to 256"),
        ({"weights": "float46"}, ConfigurationError, "did you mean 'float64'"),
        ({"method": "keyd"}, ConfigurationError, "did you mean 'keyed'"),
        ({"method": "keyed"}, ConfigurationError, "needs weights='exact'"),
        ({"selector": "pakced"}, ConfigurationError, "did you mean 'packed'"),
        ({"lanes": 0}, ConfigurationError, "lanes must be a positive integer or 'max'"),
        ({"bits": 0}, ConfigurationError, "bits must be a positive integer"),
        ({"reject_bits": 4}, ConfigurationError, "reject_bits needs weights='exact'"),
        ({"weights": "exact", "lanes": 2}, ConfigurationError, "lanes and words belong to"),
        ({"seed": -1}, ConfigurationError, "seed must be an integer"),
    ],
)
def test_bad_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        memcap.build(keys_data(20, 2), **options)


def test_keys_too_long_are_refused():
    with pytest.raises(PrecisionError):
        memcap.build(memcap.SequenceData.from_arrays([[2**60], [2**60 + 5]], [0, 1]))


def test_data_of_another_kind_is_refused():
    memory = memcap.build(sequence_data(50, 4, 10, 2))
    with pytest.raises(DataError, match="ordered"):
        memory.recall(sequence_data(50, 4, 10, 2, ordered=False))
    with pytest.raises(DataError, match="at most 4"):
        memory.recall(sequence_data(50, 9, 10, 2))
    with pytest.raises(DataError, match="one label per sequence"):
        memory.recall(sequence_data(50, 4, 10, 2, per_position=True))
    with pytest.raises(DomainError, match="item 1"):
        memory.predict([[1, 2, 3, 4, 5]])


def test_changed_weights_are_refused_by_load(tmp_path):
    from safetensors.numpy import load_file, save_file

    data = keys_data(50, 2)
    memory = memcap.build(data)
    memory.with_certificate(memcap.certify(memory, data)).save(tmp_path / "m")
    file = tmp_path / "m" / "weights.safetensors"
    tensors = load_file(file)
    name = sorted(tensors)[0]
    tensors[name].flat[0] += 1
    save_file(tensors, file, metadata={"format": "memcap 1"})
    with pytest.raises(FormatError, match="not the ones that were saved"):
        memcap.load(tmp_path / "m")
    verdict = memcap.check(memcap.load(tmp_path / "m", allow_changed=True), data)
    assert not verdict
    assert not verdict.identity_holds
    assert str(verdict.differences[0]).startswith(f"layer {name.rsplit('.', 1)[0]}: the ")


def test_without_a_stored_certificate_a_check_is_falsy_and_certify_is_not(tmp_path):
    data = keys_data(30, 2)
    memory = memcap.build(data)
    verdict = memcap.check(memory, data)
    assert not verdict
    assert (verdict.stored, verdict.recall_holds, verdict.identity_holds) == ("missing", True, False)
    assert "no certificate is stored beside the weights" in str(verdict)
    assert memcap.certify(memory, data)
    assert memcap.check(memory.with_certificate(memcap.certify(memory, data)), data)


def test_changed_facts_are_told_by_check(tmp_path):
    data = keys_data(30, 2)
    memory = memcap.build(data)
    memory.with_certificate(memcap.certify(memory, data)).save(tmp_path / "m")
    assert memcap.check(memcap.load(tmp_path / "m", allow_changed=True), data)
    file = tmp_path / "m" / "memory.json"
    file.write_text(file.read_text().replace('"method": "keyless"', '"method": "keyles"'))
    with pytest.raises(FormatError, match="the facts of the memory"):
        memcap.load(tmp_path / "m")
    verdict = memcap.check(memcap.load(tmp_path / "m", allow_changed=True), data)
    assert not verdict
    assert verdict.identity_holds
    assert not verdict.facts_match
    assert "facts: memory.json was CHANGED" in str(verdict)


@given(st.data())
@settings(max_examples=40)
def test_any_one_unit_change_of_any_stored_number_is_caught(data):
    memory, items, certificate = _certified()
    names = [name for name, _ in memory.network.maps()]
    name = data.draw(st.sampled_from(names))
    changed = _changed(memory, name, data)
    verdict = memcap.check(changed, items)
    assert not verdict.identity_holds
    assert not verdict
    assert any(d.layer == name for d in verdict.differences)
    assert certificate


_cache: list = []


def _certified():
    if not _cache:
        items = sequence_data(60, 4, 12, 3)
        memory = memcap.build(items)
        certificate = memcap.certify(memory, items)
        _cache.append((memory.with_certificate(certificate), items, certificate))
    return _cache[0]


def _changed(memory, name, data):
    """The memory with one entry of layer ``name`` (zeros included) moved by one unit."""
    from dataclasses import replace

    from memcap.exact.affine import Affine
    from memcap.exact.network import Block

    def moved(layer: Affine) -> Affine:
        dense = layer.to_dense()
        bias = layer.bias.copy()
        place = data.draw(st.integers(0, dense.size + bias.size - 1))
        step = data.draw(st.sampled_from([-1, 1]))
        if place < dense.size:
            dense.flat[place] += step
        else:
            bias[place - dense.size] += step
        row, column = np.nonzero(dense)
        return Affine.from_arrays(layer.outputs, layer.inputs, row, column, dense[row, column], bias)

    network = memory.network
    if name == "embed":
        return replace(memory, network=replace(network, embed=moved(network.embed)))
    if name == "read":
        return replace(memory, network=replace(network, read=moved(network.read)))
    number, rest = int(name.split(".", 1)[0]), name.rsplit(".", 1)[1]
    stage = network.stages[number]
    if isinstance(stage, Block):
        layers = list(stage.layers)
        layers[int(rest)] = moved(layers[int(rest)])
        stage = replace(stage, layers=tuple(layers), grouped=frozenset())
    elif rest == "value":
        stage = replace(stage, value=moved(stage.value))
    else:
        stage = replace(stage, output=moved(stage.output))
    stages = (*network.stages[:number], stage, *network.stages[number + 1 :])
    return replace(memory, network=replace(network, stages=stages))


def test_a_module_refuses_what_would_not_be_exact():
    memory = memcap.build(keys_data(300, 3))
    with pytest.raises(PrecisionError, match="was cast to torch.float32"):
        memory.to_module().float()(torch.tensor([1]))


def test_a_module_never_names_a_class_that_does_not_exist():
    data = keys_data(300, 3)
    asked = np.arange(0, 2000)
    found = memcap.build(data).to_module()(torch.tensor(asked)).numpy()
    assert found.max() < 3
    assert found.min() >= -1


@pytest.mark.parametrize("weights", ["float64", "float32", "int64"])
def test_a_module_of_one_token_vectors_reads_both_shapes(weights):
    vectors = np.random.default_rng(8).normal(size=(80, 1, 4))
    labels = np.random.default_rng(1).integers(0, 3, size=80)
    data = memcap.SequenceData.from_vectors(vectors, labels.tolist())
    memory = memcap.build(data, weights=weights)
    assert memory.predict([data.item(i) for i in range(80)]) == labels.tolist()
    module = memory.to_module()
    for shaped in (torch.tensor(vectors), torch.tensor(vectors[:, 0])):
        assert [data.label_names[i] for i in module(shaped).tolist()] == labels.tolist()
    with pytest.raises(
        DomainError, match=r"expected vectors \(rows, length, 4\), or \(rows, 4\) .*, got shape \(80, 3\)"
    ):
        module(torch.tensor(vectors[:, 0, :3]))
    with pytest.raises(DomainError, match="far outside the radius of the data, or is not finite"):
        module(torch.full((1, 4), torch.nan))
    with pytest.raises(DomainError, match="one key a row|far outside|outside the region"):
        module(torch.full((1, 1, 4), 1e30))


def test_wrong_kinds_of_arguments_are_refused():
    """Without the run-time checks of the tests, as a user calls it."""
    script = """
import memcap
data = memcap.SequenceData.from_arrays([1, 2, 3], [0, 1, 0])
for call in (
    lambda: memcap.build(data, weights="exact", reject_bits=1.5),
    lambda: memcap.build(data, bits="3"),
    lambda: memcap.build(data, max_depth=True),
    lambda: memcap.build([[1]]),
):
    try:
        call()
    except memcap.MemcapError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "reject_bits must be a whole number, got 1.5",
        "bits must be a whole number, got '3'",
        "max_depth must be a whole number, got True",
        "expected SequenceData (memcap.read_sequences or memcap.SequenceData.from_arrays), got list",
    ]
