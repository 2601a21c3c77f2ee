"""Memory folders: what is written is read back, whatever is broken is refused by name, interruptions leave no trace."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from tests.golden.networks import GOLDEN
from tests.model.numpy_reader import answers

from memcap.errors import ConfigurationError, FormatError, PrecisionError
from memcap.exact.certificate import certify_network
from memcap.exact.evaluate import evaluate
from memcap.exact.identity import network_identity
from memcap.model.files import check_destination, read_folder, write_folder

FLOATS = {name: g for name, g in GOLDEN.items() if g.floats}
CASES = [(n, d) for n in FLOATS for d in ("float64", "float32", "int64", "exact")] + [("fold-chain-wide", "exact")]
HEADER = {"label_names": ["Zürich", "", "東京"], "note": None}
FIRST_FORMAT = Path(__file__).parent.parent / "formats" / "memory-1"


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_round_trip(tmp_path, name, dtype):
    golden = GOLDEN[name]
    certificate = certify_network(golden.network, golden.rows, golden.labels, weights=dtype, data_hash="d")
    write_folder(tmp_path / "a.memory", golden.network, HEADER, certificate, dtype)
    stored = read_folder(str(tmp_path / "a.memory"))
    assert (stored.header, stored.certificate, stored.dtype) == (HEADER, certificate, dtype)
    assert stored.intact
    stored.require_intact()
    assert stored.identity == network_identity(golden.network) == network_identity(stored.network)
    for (name_a, a), (name_b, b) in zip(golden.network.maps(), stored.network.maps(), strict=True):
        assert name_a == name_b
        assert a.same_as(b)
    assert evaluate(stored.network, golden.rows).tolist() == golden.labels.tolist()
    assert sorted(os.listdir(tmp_path)) == ["a.memory"]


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_plain_numpy_reads_the_same_answers(tmp_path, name, dtype):
    golden = GOLDEN[name]
    write_folder(tmp_path / "m", golden.network, {}, None, dtype)
    rows = golden.rows if golden.rows.ndim == 2 else golden.rows[:, None]
    assert answers(tmp_path / "m", rows).tolist() == golden.labels.tolist()


def test_the_same_network_is_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_folder(tmp_path / name, GOLDEN["one-hot"].network, HEADER)
    for file in os.listdir(tmp_path / "a"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_the_first_format_is_still_read():
    """A folder written by the first release of the format, kept for ever."""
    golden = GOLDEN["next-token"]
    stored = read_folder(FIRST_FORMAT)
    stored.require_intact()
    assert stored.certificate
    assert stored.certificate.stored == "unsealed"
    assert stored.header == {"label_names": ["no", "yes"]}
    assert evaluate(stored.network, golden.rows).tolist() == golden.labels.tolist()
    assert answers(FIRST_FORMAT, golden.rows).tolist() == golden.labels.tolist()
    stored = read_folder(FIRST_FORMAT.parent / "memory-1-exact")
    assert evaluate(stored.network, np.arange(64)).tolist() == GOLDEN["fold-chain-wide"].labels.tolist()


@pytest.fixture
def folder(tmp_path):
    golden = GOLDEN["one-hot"]
    certificate = certify_network(golden.network, golden.rows, golden.labels, weights="float64", data_hash="d")
    write_folder(tmp_path / "m", golden.network, HEADER, certificate)
    return tmp_path / "m"


@pytest.fixture
def exact_folder(tmp_path):
    write_folder(tmp_path / "e", GOLDEN["fold-chain-wide"].network, HEADER, None, "exact")
    return tmp_path / "e"


def edit(folder, file, change):
    record = json.loads((folder / file).read_text())
    change(record)
    (folder / file).write_text(json.dumps(record))


def test_a_changed_number_is_read_and_told(folder):
    tensors = load_file(folder / "weights.safetensors")
    tensors["0000.selector.2.weight"][1, 2] += 1
    save_file(tensors, folder / "weights.safetensors")
    stored = read_folder(folder)
    assert not stored.intact
    with pytest.raises(
        FormatError, match="weights are not the ones that were saved .* `memcap check` says .*allow_changed=True"
    ):
        stored.require_intact()
    golden = GOLDEN["one-hot"]
    again = certify_network(
        stored.network, golden.rows, golden.labels, weights="float64", data_hash="d", against=stored.certificate
    )
    assert not again
    assert str(again.differences[0]) == "layer 0000.selector.2: the weight [1, 2] differs"
    assert again.wrong_rows == (10, 11, 12, 13)


def set_field(path, value):
    def change(record):
        for key in path[:-1]:
            record = record[key]
        if value is ...:
            del record[path[-1]]
        else:
            record[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            set_field(["format_version"], 7),
            "format version 7, written by memcap '.*'; this is memcap .*version 1",
        ),
        (set_field(["format_version"], True), "format_version must be int, got bool"),
        (set_field(["format"], "torch"), "this is not a memcap memory"),
        (set_field(["dtype"], "float16"), "dtype must be float64, float32, int64 or exact, got 'float16'"),
        (set_field(["identity"], ...), "the field identity is missing"),
        (set_field(["header"], []), "header must be dict, got list"),
        (set_field(["network", "unit"], 1), "network.unit must be str, got int"),
        (set_field(["network", "unit"], "ten"), "network.unit must be a hexadecimal integer like '0x1f', got 'ten'"),
        (set_field(["network", "length"], "1"), "network.length must be int, got str"),
        (set_field(["network", "channels"], ["x", "x"]), "two channels of a network carry the same name"),
        (set_field(["network", "channels"], ["x", 3]), "network.channels must be a list of names"),
        (set_field(["network", "input_range"], [["0x0"]]), r"network.input_range must list \(low, high\) pairs"),
        (set_field(["network", "input_range"], []), "network.input_range must give one range per input"),
        (set_field(["network", "key_limbs"], [1]), "network.key_limbs must be two small integers or null"),
        (set_field(["network", "stages", 0, "grouped"], [9]), r"network.stages\[0\].grouped must be indices of layers"),
        (set_field(["network", "stages", 0, "layers"], 2), "network.maps lists '0000.selector.2', which no stage uses"),
        (set_field(["network", "stages", 0, "block"], "other"), "network.maps has no entry '0000.other.0'"),
        (set_field(["network", "maps", 1, "shape"], [3]), r"network.maps\[1\].shape must be two sizes, got \[3\]"),
        (
            set_field(["network", "maps", 1, "storage"], "csr"),
            r"maps\[1\].storage must be 'dense' or 'pairs'",
        ),
        (set_field(["network", "maps", 1, "storage"], "pairs"), r"shape \(8, 2\) cannot be stored as pairs"),
        (
            set_field(["network", "maps", 0, "shape"], [2, 2]),
            r"'embed.weight' must be float64 of shape \(2, 2\)",
        ),
        (set_field(["network"], None), "network must be dict, got NoneType"),
    ],
)
def test_a_broken_memory_json_is_refused_by_field(folder, change, message):
    edit(folder, "memory.json", change)
    with pytest.raises(FormatError, match=message):
        read_folder(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("embed.bias"), "weights.safetensors: the entry 'embed.bias' is missing"),
        (lambda t: t.update(extra=np.zeros(1)), "weights.safetensors: unknown entry 'extra'"),
        (
            lambda t: t.update({"read.bias": np.zeros(2)}),
            r"'read.bias' must be float64 of shape \(1,\)",
        ),
        (lambda t: t.update({"read.bias": np.zeros(1, np.float32)}), r"'read.bias' must be float64 .*, got float32"),
        (lambda t: t.update({"read.bias": np.array([0.5])}), "'read.bias' holds 0.5, not an exact integer of float64"),
        (lambda t: t.update({"read.bias": np.array([np.nan])}), "'read.bias' holds nan, not an exact integer"),
        (lambda t: t.update({"read.bias": np.array([2.0**54])}), "'read.bias' holds 1.8.*e.16, not an exact integer"),
    ],
)
def test_broken_tensors_are_refused_by_entry(folder, change, message):
    tensors = load_file(folder / "weights.safetensors")
    change(tensors)
    save_file(tensors, folder / "weights.safetensors")
    with pytest.raises(FormatError, match=message):
        read_folder(folder)


def test_minus_zero_is_zero(folder):
    tensors = load_file(folder / "weights.safetensors")
    tensors["read.bias"] = np.array([-0.0])
    save_file(tensors, folder / "weights.safetensors")
    assert read_folder(folder).intact


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_field(["format_version"], 2), r"format version 2; this memcap, .*, reads up to 1"),
        (set_field(["format"], "x"), "these are not memcap weights"),
        (set_field(["maps", "embed"], ...), "weights.json: the entry 'embed' is missing"),
        (set_field(["maps", "more"], {}), "weights.json: unknown entry 'more'"),
        (set_field(["maps", "embed", "bias"], []), "embed.bias must hold 1 numbers, got 0"),
        (set_field(["maps", "embed", "bias"], ["0xg"]), "embed.bias must be a hexadecimal integer"),
        (set_field(["maps", "embed", "bias"], ["1_0"]), "embed.bias must be a hexadecimal integer"),
        (set_field(["maps", "embed", "weight"], [[0, 0]]), r"embed.weight must list \[row, column, number\]"),
        (set_field(["maps", "embed", "weight"], [[0, 1, "0x1"]]), r"embed.weight \[0, 1\] is outside \(1, 1\)"),
        (
            set_field(["maps", "embed", "weight"], [[0, 0, "0x1"]] * 2),
            r"\[0, 0\] is outside .* or given twice",
        ),
    ],
)
def test_broken_integers_are_refused_by_entry(exact_folder, change, message):
    edit(exact_folder, "weights.json", change)
    with pytest.raises(FormatError, match=message):
        read_folder(exact_folder)


def test_missing_files_and_folders(folder, tmp_path):
    with pytest.raises(FormatError, match="there is no memory folder here"):
        read_folder(tmp_path / "nowhere")
    for name in ("weights.safetensors", "memory.json"):
        (folder / name).unlink()
        with pytest.raises(FormatError, match=rf"{name} is missing; this is not a complete memory folder"):
            read_folder(folder)
    (folder / "memory.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(FormatError, match="memory.json cannot be read"):
        read_folder(folder)


def test_truncation_anywhere_is_refused(folder, exact_folder):
    files = [(folder, n) for n in os.listdir(folder)] + [(exact_folder, "weights.json")]
    for place, name in files:
        whole = (place / name).read_bytes()
        for cut in {0, 1, 5, len(whole) // 3, len(whole) // 2, len(whole) - 3}:
            (place / name).write_bytes(whole[:cut])
            with pytest.raises(FormatError, match=name.replace(".", r"\.")):
                read_folder(place)
        (place / name).write_bytes(whole)
        read_folder(place)


@given(st.data())
@settings(max_examples=150)
def test_random_damage_never_passes_as_the_saved_memory(tmp_path_factory, data):
    """Any byte changed anywhere: refused with a FormatError, or read as a network that is not the saved one, or the
    damage touched no number (header text, white space)."""
    place = tmp_path_factory.getbasetemp() / "damage"
    if not place.exists():
        write_folder(place, GOLDEN["next-token"].network, {"names": ["a", "b"]})
    name = data.draw(st.sampled_from(["memory.json", "weights.safetensors"]))
    whole = (place / name).read_bytes()
    broken = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        broken[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        (place / name).write_bytes(bytes(broken))
        stored = read_folder(place)
        if stored.intact:
            assert network_identity(stored.network) == network_identity(GOLDEN["next-token"].network)
    except FormatError:
        pass  # any other error fails the test
    finally:
        (place / name).write_bytes(whole)


def test_an_interruption_leaves_what_was_there(folder, monkeypatch):
    before = {name: (folder / name).read_bytes() for name in os.listdir(folder)}
    other = GOLDEN["interpolator"].network
    for broken in ("fsync", "rename"):
        with monkeypatch.context() as patch:

            def interrupted(*args):
                raise KeyboardInterrupt

            patch.setattr(os if broken == "fsync" else Path, broken, interrupted)
            with pytest.raises(KeyboardInterrupt):
                write_folder(folder, other, {})
            with pytest.raises(KeyboardInterrupt):
                write_folder(folder.parent / "new", other, {})
        assert os.listdir(folder.parent) == ["m"]
        assert {name: (folder / name).read_bytes() for name in os.listdir(folder)} == before
    calls = []
    real = Path.rename

    def second_fails(self, target):
        calls.append(target)
        if len(calls) == 2:  # the old folder is aside, the new one not yet in place
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "rename", second_fails)
    with pytest.raises(KeyboardInterrupt):
        write_folder(folder, other, {})
    assert os.listdir(folder.parent) == ["m"]
    assert {name: (folder / name).read_bytes() for name in os.listdir(folder)} == before


def test_a_memory_is_replaced_and_nothing_else(folder, tmp_path):
    write_folder(folder, GOLDEN["interpolator"].network, {})
    assert sorted(os.listdir(folder)) == ["memory.json", "weights.safetensors"]  # no stale certificate
    (tmp_path / "empty").mkdir()
    check_destination(tmp_path / "empty")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("years of work")
    with pytest.raises(FormatError, match="exists and is not a memory folder; choose another name or an empty folder"):
        write_folder(tmp_path / "full", GOLDEN["interpolator"].network, {})
    assert (tmp_path / "full" / "thesis.tex").read_text() == "years of work"
    with pytest.raises(FormatError, match="is not a memory folder; choose another name"):
        check_destination(tmp_path / "full" / "thesis.tex")
    with pytest.raises(ConfigurationError, match="the folder does not exist; create .* first"):
        check_destination(tmp_path / "no" / "m")
    os.symlink(folder, tmp_path / "link")
    with pytest.raises(FormatError, match="is not a memory folder"):
        check_destination(tmp_path / "link")
    shutil.rmtree(folder)
    check_destination(folder)


def test_numbers_that_do_not_fit_are_not_written(tmp_path):
    with pytest.raises(PrecisionError, match="a weight of 77 bits does not fit float64; save it as 'exact'"):
        write_folder(tmp_path / "m", GOLDEN["fold-chain-wide"].network, {}, None, "float64")
    assert os.listdir(tmp_path) == []
