"""``memcap doctor`` compares float arithmetic with the integer answer and says so."""

from memcap.model.doctor import Examination, Finding, examine


def test_this_machine_is_examined(memcap_cli):
    result = memcap_cli("doctor", "--json")
    record = result.json
    assert result.code == (0 if record["exact"] else 1)
    assert record["versions"]["torch"]
    assert {"cpu"} <= {f["device"] for f in record["findings"]}
    assert {"float64", "float32"} == {f["dtype"] for f in record["findings"]}
    assert any(f["what"] == "a whole memory network" for f in record["findings"])


def test_findings_are_exact_here():
    assert all(f.exact for f in examine().findings if f.device == "cpu")


def test_one_inexact_finding_fails_the_examination():
    good, bad = Finding("cpu", "float32", "x", True), Finding("cpu", "float32", "y", False)
    assert Examination({}, {}, (good,))
    assert not Examination({}, {}, (good, bad))
