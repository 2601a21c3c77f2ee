"""``memcap build``, ``check`` and ``recall`` end to end, as a user calls them."""

import io
import json
import sys

import numpy as np
import pytest

import memcap

FLAGS = ("--sequence", "city", "--label", "country", "--encoding", "characters")


@pytest.fixture
def memory(memcap_cli, cities, tmp_path):
    folder = tmp_path / "cities.memory"
    result = memcap_cli("build", cities, *FLAGS, "--out", folder)
    assert result.code == 0, result.err
    return folder


def test_build_reports_and_writes_a_certificate(memcap_cli, cities, tmp_path):
    folder = tmp_path / "m"
    result = memcap_cli("build", cities, *FLAGS, "--out", folder)
    assert result.code == 0
    assert "14 / 14 items recalled, certified" in result.out
    assert "non-zero parameters" in result.out
    assert str(folder / "certificate.json") in result.out
    assert {p.name for p in folder.iterdir()} == {"memory.json", "weights.safetensors", "certificate.json"}


def test_a_line_that_cannot_be_asked_is_named_and_the_others_are_answered(memcap_cli, memory, monkeypatch):
    lines = "Lyon\n\nOslo\nXYZ#\nBergen\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    result = memcap_cli("recall", memory, "-")
    assert result.out == "France\n\nNorway\n\nNorway\n", "answers keep their lines"
    told = result.err.splitlines()
    assert result.code == 2
    assert told[0] == "memcap: line 2: empty sequence ''"
    assert told[1].startswith("memcap: line 4: unknown character")
    assert len(told) == 2
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    record = memcap_cli("recall", memory, "-", "--json").json
    assert record["labels"] == ["France", None, "Norway", None, "Norway"]
    assert [line["line"] for line in record["not_asked"]] == [2, 4]
    result = memcap_cli("recall", memory, "Lyon", "")
    assert (result.code, result.out) == (2, "France\n\n")
    assert "item 2: empty sequence" in result.err
    result = memcap_cli("recall", memory, "")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("memcap: item 1: empty sequence")


def test_a_build_that_goes_well_is_silent_on_standard_error(memcap_cli, cities, tmp_path):
    assert memcap_cli("build", cities, *FLAGS, "--out", tmp_path / "m").err == ""


def test_build_json_is_one_strict_object(memcap_cli, cities, tmp_path):
    result = memcap_cli("build", cities, *FLAGS, "--out", tmp_path / "m", "--json")
    record = result.json
    assert record["recall"] == {"correct": 14, "total": 14}
    assert record["certified"] is True
    assert sum(record["parameters"]["by_part"].values()) == record["parameters"]["nonzero"]
    assert result.out.count("\n") == 1


@pytest.mark.parametrize("weights", ["float64", "float32", "int64", "exact"])
def test_check_accepts_what_build_wrote(memcap_cli, cities, tmp_path, weights):
    folder = tmp_path / "m"
    assert memcap_cli("build", cities, *FLAGS, "--out", folder, "--weights", weights).code == 0
    result = memcap_cli("check", folder, cities)
    assert result.code == 0, result.out + result.err
    assert "are the certified ones" in result.out
    assert result.out.rstrip().endswith("certified")
    record = memcap_cli("check", folder, cities, "--json").json
    assert record["certified"]
    assert record["weights_match"]
    assert record["not_recalled"] == []


def test_check_names_rows_that_are_not_recalled(memcap_cli, memory, cities):
    changed = cities.with_name("changed.csv")
    changed.write_text(cities.read_text(encoding="utf-8").replace("Oslo,Norway", "Oslo,France"), encoding="utf-8")
    result = memcap_cli("check", memory, changed)
    assert result.code == 1
    assert "13 / 14 items" in result.out
    assert "rows 13" in result.out
    assert "are the certified ones, every number" in result.out, "the weights are still the certified ones"
    assert "NOT certified" in result.out


def test_recall_prints_one_label_a_line(memcap_cli, memory, monkeypatch):
    result = memcap_cli("recall", memory, "Lyon", "Buenos Aires")
    assert result.out == "France\nArgentina\n"
    assert memcap_cli("recall", memory, "Köln", "--json").json == {
        "items": ["Köln"],
        "labels": ["Germany"],
        "not_asked": [],
    }
    monkeypatch.setattr(sys, "stdin", io.StringIO("Oslo\nLille\r\n"))
    assert memcap_cli("recall", memory, "-").out == "Norway\nFrance\n"


def test_keyed_memory_says_unknown(memcap_cli, cities, tmp_path):
    folder = tmp_path / "m"
    built = memcap_cli("build", cities, *FLAGS, "--out", folder, "--weights", "exact", "--method", "keyed")
    assert built.code == 0, built.err
    assert memcap_cli("recall", folder, "Lyon", "nyoL").out == "France\nunknown\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("build", "{cities}", "--sequence", "town", "--label", "country", "--out", "{tmp}/m"), "town"),
        (("build", "{tmp}/none.csv", "--out", "{tmp}/m"), "none.csv"),
        (("build", "{cities}", *FLAGS, "--out", "{tmp}/m", "--weights", "float46"), "did you mean 'float64'"),
        (("build", "{cities}", *FLAGS, "--out", "{tmp}/m", "--weights", "float16"), "float16"),
        (("build", "{cities}", *FLAGS, "--out", "{tmp}/m", "--lanes", "many"), "positive integer or 'max'"),
        (("build", "{cities}", *FLAGS, "--out", "{tmp}/m", "--encodng", "words"), "--encoding"),
        (("build", "{cities}", *FLAGS), "--out"),
        (("build", "{cities}", *FLAGS, "--out", "{cities}"), "exists"),
        (("chek", "a", "b"), "did you mean 'check'"),
        (("check", "{tmp}/none", "{cities}"), "none"),
        (("recall", "{tmp}/none", "x"), "none"),
    ],
)
def test_a_wrong_call_is_one_message_and_exit_code_2(memcap_cli, cities, tmp_path, arguments, message):
    filled = [a.format(cities=cities, tmp=tmp_path) for a in arguments]
    result = memcap_cli(*filled)
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err
    assert not (tmp_path / "m").exists()


def test_json_errors_are_json(memcap_cli, tmp_path):
    result = memcap_cli("recall", tmp_path / "none", "x", "--json")
    assert result.code == 2
    assert json.loads(result.out)["exit_code"] == 2


def test_debug_shows_the_traceback(memcap_cli, cities, tmp_path):
    result = memcap_cli("build", cities, "--sequence", "town", "--out", tmp_path / "m", "--debug")
    assert "Traceback" in result.err


def test_unknown_symbol_is_named(memcap_cli, memory):
    result = memcap_cli("recall", memory, "Lyon", "Łódź")
    assert result.code == 2
    assert "item 2" in result.err
    assert "Ł" in result.err


def test_an_existing_folder_is_kept_unless_forced(memcap_cli, memory, cities):
    before = (memory / "memory.json").read_bytes()
    assert memcap_cli("build", cities, *FLAGS, "--out", memory).code == 2
    assert (memory / "memory.json").read_bytes() == before
    assert memcap_cli("build", cities, *FLAGS, "--out", memory, "--force", "--seed", "1").code == 0
    assert (memory / "memory.json").read_bytes() != before


def test_same_seed_gives_the_same_bytes(memcap_cli, memory, cities, tmp_path):
    again = tmp_path / "again"
    assert memcap_cli("build", cities, *FLAGS, "--out", again).code == 0
    assert (again / "weights.safetensors").read_bytes() == (memory / "weights.safetensors").read_bytes()


def test_conflicts_are_listed_and_left_out_only_when_asked(memcap_cli, cities, tmp_path):
    twice = tmp_path / "twice.csv"
    twice.write_text(cities.read_text(encoding="utf-8") + "Lyon,Norway\n", encoding="utf-8")
    refused = memcap_cli("build", twice, *FLAGS, "--out", tmp_path / "m")
    assert refused.code == 2
    assert "(--on-conflict on the command line)" in refused.err
    assert "Lyon" in refused.err
    result = memcap_cli("build", twice, *FLAGS, "--out", tmp_path / "m", "--on-conflict", "drop")
    assert result.code == 0
    assert "left out by --on-conflict: 1 ambiguous items (2 rows)" in result.out
    assert memcap_cli("check", tmp_path / "m", twice).code == 0, "check reads the data as build did"


def test_changed_facts_are_refused_by_recall_and_named_by_check(memcap_cli, memory, cities):
    file = memory / "memory.json"
    record = json.loads(file.read_text(encoding="utf-8"))
    record["header"]["label_names"].reverse()
    file.write_text(json.dumps(record), encoding="utf-8")
    refused = memcap_cli("recall", memory, "Lyon")
    assert refused.code == 2
    assert "not the ones that were saved" in refused.err
    checked = memcap_cli("check", memory, cities)
    assert checked.code == 1
    assert "memory.json was CHANGED" in checked.out


def test_weights_that_cannot_be_read_are_not_certified(memcap_cli, memory, cities):
    file = memory / "weights.safetensors"
    file.write_bytes(file.read_bytes()[:-9])
    result = memcap_cli("check", memory, cities)
    assert result.code == 1
    assert "weights  cannot be read" in result.out
    assert memcap_cli("check", memory, cities, "--json").json["certified"] is False


def test_a_changed_certificate_is_told_and_an_early_one_is_said_to_be_unsealed(memcap_cli, memory, cities):
    file = memory / "certificate.json"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("is recalled exactly", "is recalled always"), encoding="utf-8")
    result = memcap_cli("check", memory, cities)
    assert result.code == 1
    assert "certificate was CHANGED" in result.out
    assert result.out.rstrip().endswith("NOT certified")
    record = memcap_cli("check", memory, cities, "--json").json
    assert (record["certificate"], record["certified"], record["weights_match"]) == ("changed", False, True)
    early = {name: value for name, value in json.loads(text).items() if name != "seal"}
    file.write_text(json.dumps({**early, "format_version": 1}), encoding="utf-8")
    result = memcap_cli("check", memory, cities)
    assert result.code == 0
    assert "is not sealed: an earlier memcap wrote it" in result.out


def test_a_memory_without_certificate_is_not_certified(memcap_cli, memory, cities):
    (memory / "certificate.json").unlink()
    result = memcap_cli("check", memory, cities)
    assert result.code == 1
    assert "no certificate is stored beside them" in result.out
    assert "14 / 14 items" in result.out
    record = memcap_cli("check", memory, cities, "--json").json
    assert (record["certificate"], record["certified"], record["weights_match"]) == ("missing", False, None)


def test_no_label_of_a_keyless_memory_is_not_called_unknown(memcap_cli, tmp_path):
    keys = np.random.default_rng(3).choice(5000, 100, replace=False).tolist()
    data = memcap.SequenceData.from_arrays(keys, ["abcde"[k % 5] for k in keys])
    memory = memcap.build(data, weights="exact", selector="step")
    none = [k for k, label in enumerate(memory.predict(np.arange(max(keys)))) if label is None]
    assert none, "some stranger has no label"
    memory.save(tmp_path / "m")
    assert memcap_cli("recall", tmp_path / "m", none[0], keys[0]).out == f"(no label)\n{'abcde'[keys[0] % 5]}\n"
    assert memcap_cli("recall", tmp_path / "m", none[0], "--json").json["labels"] == [None]
