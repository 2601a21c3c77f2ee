"""Which rule a grid suggests for cells that its measurement refuses."""

import pytest

from memcap.errors import ConfigurationError
from memcap.study.exclusion import rule_for
from memcap.study.grid import Grid

CELLS = [{"a": a, "b": b, "c": 6, "kind": kind} for a in (3, 6, 9) for b in (4, 8, 16) for kind in ("x", "y")]


@pytest.mark.parametrize(
    ("refuses", "rule"),
    [
        (lambda c: c["a"] > c["b"], "a > b"),
        (lambda c: c["a"] > c["c"], "a > c"),
        (lambda c: c["b"] >= 16, "b >= 16"),
        (lambda c: c["b"] <= 4, "b < c"),
        (lambda c: c["a"] <= 3, "a < c"),
        (lambda c: (c["a"], c["b"], c["kind"]) == (6, 8, "y"), "{a: 6, b: 8, kind: y}"),
    ],
)
def test_the_rule_separates_refused_cells_from_the_others(refuses, rule):
    refused, accepted = [c for c in CELLS if refuses(c)], [c for c in CELLS if not refuses(c)]
    assert rule_for(refused, accepted, ["a", "b", "kind"]) == rule


def test_one_impossible_combination_names_the_rule_that_drops_it():
    keys = {
        "task": "simulate",
        "axes": {"facts": [1, 9], "length": [8, 16]},
        "fixed": {"vocabulary": 32, "dimension": 16, "samples": 64},
    }
    with pytest.raises(ConfigurationError, match="to leave such cells out, write under 'exclude': - facts > length$"):
        Grid(**keys).cells
    assert len(Grid(**keys, exclude=["facts > length"]).cells) == 3
    with pytest.raises(ConfigurationError) as told:
        Grid(**{**keys, "axes": {"facts": [9], "length": [8]}}).cells
    assert "exclude" not in str(told.value)
