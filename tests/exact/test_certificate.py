"""The certificate: truthy only when every claim holds, and it says apart what does not."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exact.test_identity import changed, with_layer
from tests.golden.networks import GOLDEN, fold_chain

from memcap.errors import ConfigurationError, FormatError
from memcap.exact.affine import Affine
from memcap.exact.certificate import Certificate, certify_network, read_certificate
from memcap.exact.counts import count
from memcap.exact.evaluate import evaluate
from memcap.exact.seal import CHANGED, INTACT, UNSEALED, seal_of

everyone = pytest.mark.parametrize("golden", GOLDEN.values(), ids=GOLDEN)


def certified(golden, **options):
    weights = options.pop("weights", "float64" if golden.floats else "exact")
    return certify_network(golden.network, golden.rows, golden.labels, weights=weights, data_hash="d" * 64, **options)


@everyone
def test_a_right_network_is_certified(golden):
    certificate = certified(golden)
    assert certificate
    assert certificate.items == certificate.recalled == golden.labels.size
    assert certificate.parameters == count(golden.network)
    assert certificate.wrong_rows == ()
    assert f"recall: {golden.labels.size} of {golden.labels.size} items" in str(certificate)
    assert certificate.range.limit == (2**53 if golden.floats else None)


@everyone
def test_round_trip_through_json(golden):
    certificate = certified(golden, bounds={"bits": 5.5})
    assert read_certificate(json.dumps(certificate.to_json())) == certificate


def test_lost_items_are_named_by_their_rows():
    golden = GOLDEN["interpolator"]
    wanted = golden.labels.copy()
    wanted[[2, 5]] += 1
    numbers = np.arange(100, 113)
    certificate = certify_network(
        golden.network, golden.rows, wanted, weights="float64", data_hash="", row_numbers=numbers
    )
    assert not certificate
    assert (certificate.recalled, certificate.items, certificate.wrong_rows) == (11, 13, (102, 105))
    assert "recall: 11 of 13 items; not recalled: rows 102, 105" in str(certificate)


def test_padding_is_not_asked():
    golden = GOLDEN["seq2seq"]
    wanted = golden.labels[:, :3].copy()
    wanted[0, 2] = -1
    certificate = certify_network(golden.network, golden.rows, wanted, weights="float64", data_hash="")
    assert certificate
    assert certificate.items == 37 * 3 - 1


def test_identity_and_recall_are_told_apart():
    """A weight that alters no label: recall holds, identity does not.  One that does: both are said."""
    golden = GOLDEN["one-hot"]
    first = certified(golden)
    name, layer = list(golden.network.maps())[1]
    silent = with_layer(golden.network, name, changed(layer, 0, 0, -1))  # pair weight -1 -> -2: the same function
    again = certify_network(silent, golden.rows, golden.labels, weights="float64", data_hash="x", against=first)
    assert (again.recall_holds, again.identity_holds, bool(again)) == (True, False, False)
    assert again.data_matches is False
    assert f"weights differ from the certified ones: layer {name}: the weight [0, 0] differs" in str(again)
    loud = with_layer(golden.network, name, changed(layer, 2, -1, 1))  # a threshold moves
    again = certify_network(loud, golden.rows, golden.labels, weights="float64", data_hash="d" * 64, against=first)
    assert (again.recall_holds, again.identity_holds, bool(again)) == (False, False, False)
    assert again.data_matches is True
    assert len(again.wrong_rows) == again.items - again.recalled > 0
    same = certify_network(golden.network, golden.rows, golden.labels, weights="float64", data_hash="", against=first)
    assert same
    moved = dataclasses.replace(golden.network, input_range=((0, 20),))
    again = certify_network(moved, golden.rows, golden.labels, weights="float64", data_hash="", against=first)
    assert not again
    assert "the network's structure differs from the certified one" in str(again)


@given(st.data())
@settings(max_examples=50)
def test_one_unit_anywhere_never_passes(data):
    golden = data.draw(st.sampled_from(list(GOLDEN.values())))
    name, layer = data.draw(st.sampled_from(list(golden.network.maps())))
    row = data.draw(st.integers(0, layer.outputs - 1))
    column = data.draw(st.integers(-1, layer.inputs - 1))
    other = with_layer(golden.network, name, changed(layer, row, column, data.draw(st.sampled_from([-1, 1]))))
    weights = "float64" if golden.floats else "exact"
    first = certified(golden)
    again = certify_network(other, golden.rows, golden.labels, weights=weights, data_hash="", against=first)
    assert not again
    assert again.differences[0].layer == name
    found = evaluate(other, golden.rows)
    assert again.recalled == int((found == golden.labels).sum())  # still evaluated, and told right


def test_weights_that_leave_int64_still_get_an_answer():
    golden = GOLDEN["interpolator"]
    name, layer = list(golden.network.maps())[2]
    huge = with_layer(golden.network, name, changed(layer, 1, 4, 2**80))
    again = certify_network(
        huge, golden.rows, golden.labels, weights="float64", data_hash="", against=certified(golden)
    )
    assert not again
    assert again.wrong_rows == (12, 13)
    assert not again.range


def test_the_range_proof_belongs_to_the_claim():
    golden = GOLDEN["one-hot"]
    scale = dataclasses.replace(golden.network, read=Affine.from_entries(1, 2, [(0, 1, 2**22)]), unit=2**22)
    wide = certify_network(scale, golden.rows, golden.labels, weights="float64", data_hash="")
    narrow = certify_network(scale, golden.rows, golden.labels, weights="float32", data_hash="")
    assert wide
    assert narrow.recall_holds
    assert not narrow
    assert "> 16,777,216 (float32) in read" in str(narrow)


def test_a_fast_evaluator_is_compared_with_the_reference(monkeypatch):
    golden = fold_chain(bits=9, unit=2**70)
    monkeypatch.setattr("memcap.exact.certificate._ALL", 10)
    good = certified(golden, fast=evaluate)
    assert good
    assert good.evaluator["name"] == "grouped"
    assert (good.evaluator["reference_items"], good.evaluator["agree"]) == (200, True)
    liar = certified(golden, fast=lambda network, rows: np.ones(len(rows), dtype=np.int64))
    assert not liar
    assert liar.evaluator["agree"] is False
    assert liar.not_labels == 512 - 200  # only what the reference itself saw counts


def test_refusals():
    golden = GOLDEN["interpolator"]
    with pytest.raises(ConfigurationError, match=r"one label for each of at least one item, got rows \(13,\)"):
        certify_network(golden.network, golden.rows, golden.labels[:3], weights="float64", data_hash="")
    with pytest.raises(ConfigurationError, match="at least one item"):
        certify_network(golden.network, golden.rows[:0], golden.labels[:0], weights="float64", data_hash="")
    record = certified(golden).to_json()
    with pytest.raises(FormatError, match="format version 99, this memcap reads up to 2; a newer memcap wrote it"):
        Certificate.from_json({**record, "format_version": 99})
    with pytest.raises(FormatError, match="this is not a memcap certificate"):
        Certificate.from_json([])
    with pytest.raises(FormatError, match="missing or mistyped field"):
        Certificate.from_json({k: v for k, v in record.items() if k != "range"})
    for version in (1, 2):
        contradicted = {**record, "recalled": 3, "format_version": version}
        with pytest.raises(FormatError, match="'holds' contradicts the figures"):
            Certificate.from_json({**contradicted, "seal": seal_of(contradicted)})
    with pytest.raises(FormatError, match="not usable JSON"):
        read_certificate(json.dumps(record).replace('"items": 13', '"items": ' + "1" * 5000))
    with pytest.raises(FormatError, match="broken at line 1, column 12: Unterminated string"):
        read_certificate(json.dumps(record)[:30])


def places(record, path=()):
    """Every leaf of a JSON record."""
    if isinstance(record, dict | list) and record:
        items = record.items() if isinstance(record, dict) else enumerate(record)
        for key, value in items:
            yield from places(value, (*path, key))
    else:
        yield path


def altered(value):
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}0" if isinstance(value, str) else [*value, 7] if isinstance(value, list) else {"more": 1}


def test_no_field_can_be_changed_unseen():
    golden = GOLDEN["one-hot"]
    text = json.dumps(certified(golden, bounds={"bits": 5.5}).to_json())
    assert read_certificate(text).stored == INTACT
    quiet = 0
    for path in places(json.loads(text)):
        record = json.loads(text)
        place = record
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = altered(place[path[-1]])
        try:
            found = Certificate.from_json(record)
        except FormatError:
            continue
        if path != ("format_version",):
            quiet += 1
            assert (found.stored, bool(found)) == (CHANGED, False), path
            assert "certificate was CHANGED" in str(found)
    assert quiet > 40
    unsealed = {name: value for name, value in json.loads(text).items() if name != "seal"}
    assert Certificate.from_json(unsealed).stored == CHANGED
    first = Certificate.from_json({**unsealed, "format_version": 1})
    assert (first.stored, bool(first)) == (UNSEALED, True)


def test_a_check_against_a_changed_certificate_is_falsy():
    golden = GOLDEN["one-hot"]
    record = certified(golden).to_json()
    changed_claim = Certificate.from_json({**record, "claim": "everything is recalled"})
    again = certified(golden, against=changed_claim)
    assert again.claim_holds
    assert not again
    assert "certificate: certificate was CHANGED" in str(again)
    assert read_certificate(json.dumps(again.to_json()))  # a certificate of its own
