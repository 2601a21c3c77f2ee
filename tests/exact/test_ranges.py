"""The range proof: sound on random networks, and tight enough on the shapes that constructions use."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.networks import GOLDEN

from memcap.errors import ConfigurationError
from memcap.exact.affine import Affine
from memcap.exact.engines import Audit
from memcap.exact.evaluate import evaluate
from memcap.exact.network import Attention, Block, Network
from memcap.exact.ranges import ALL_ITEMS, STATIC, STATIC_KEYS, RangeProof, prove
from memcap.exact.static_range import static_bounds

everyone = pytest.mark.parametrize("golden", GOLDEN.values(), ids=GOLDEN)


def worst_subset_sums(network, rows):
    """Layer -> largest sum of the positive or negative summands of any output of any row, in plain Python integers."""
    worst = {name: 0 for name, _ in network.maps()}

    def linear(name, layer, x, base=None):
        rise, fall = [max(int(b), 0) for b in layer.bias], [max(-int(b), 0) for b in layer.bias]
        terms = [(int(r), int(w) * x[int(c)]) for r, c, w in zip(layer.row, layer.column, layer.weight, strict=True)]
        terms += list(enumerate(base or []))
        for r, term in terms:
            rise[r] += max(term, 0)
            fall[r] += max(-term, 0)
        worst[name] = max(worst[name], *rise, *fall)
        return [a - b for a, b in zip(rise, fall, strict=True)]

    for row in rows:
        states = []
        for position, token in enumerate(np.atleast_1d(row)):
            read = [int(token), position][: len(network.inputs)]
            if network.key_limbs:
                read = [int(token) >> network.key_limbs[0], int(token) % 2 ** network.key_limbs[1]]
            states.append(linear("embed", network.embed, read))
        for number, stage in enumerate(network.stages):
            name = f"{number:04d}.{stage.name}"
            if isinstance(stage, Attention):
                values = [linear(f"{name}.value", stage.value, s) for s in states]
                mean = [sum(v) // len(states) for v in zip(*values, strict=True)]
                states = [linear(f"{name}.output", stage.output, mean, s) for s in states]
            else:
                new = []
                for state in states:
                    x = state
                    for depth, layer in enumerate(stage.layers):
                        last = depth == len(stage.layers) - 1
                        x = linear(
                            f"{name}.{depth}", layer, [max(v, 0) for v in x] if depth else x, state if last else None
                        )
                    new.append(x)
                states = new
        for state in states:
            linear("read", network.read, state)
    return worst


@everyone
def test_static_bounds_cover_every_row_of_the_golden_table(golden):
    worst, bounds = worst_subset_sums(golden.network, golden.rows), static_bounds(golden.network)
    assert list(bounds) == [name for name, _ in golden.network.maps()]
    assert all(worst[name] <= bounds[name] for name in bounds)


SMALL = st.integers(-4, 4)
LARGE = st.one_of(SMALL, st.integers(-(2**40), 2**40), st.integers(-(2**70), 2**70))


@given(st.data())
@settings(max_examples=100)
def test_static_bounds_are_sound_on_random_networks(data):
    """Every partial sum of every input in range stays below the bound, whatever the network."""
    entry = data.draw(st.sampled_from([SMALL, LARGE]))
    width = data.draw(st.integers(1, 3))
    sequence = data.draw(st.booleans())
    high = data.draw(st.sampled_from([2, 6, 10**4]))  # 10^4 values are not enumerated: breakpoints

    def affine(outputs, inputs, no_bias=False):
        values = data.draw(st.lists(entry, min_size=outputs * inputs, max_size=outputs * inputs))
        bias = [0] * outputs if no_bias else data.draw(st.lists(entry, min_size=outputs, max_size=outputs))
        return Affine.from_entries(outputs, inputs, [(i // inputs, i % inputs, v) for i, v in enumerate(values)], bias)

    stages = []
    for n in range(data.draw(st.integers(1, 4))):
        hidden = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
        sizes = [width, *hidden, width]
        stages.append(Block(f"b/{n}", tuple(affine(o, i) for i, o in itertools.pairwise(sizes))))
    if sequence:
        value = affine(1, width, True)
        value = Affine.from_arrays(1, width, value.row, value.column, value.weight * 2)
        stages.insert(data.draw(st.integers(0, len(stages))), Attention("attention", value, affine(width, 1, True)))
    network = Network(
        ("token", "position") if sequence else ("key",), ((0, high), (0, 1)) if sequence else ((0, high),),
        2 if sequence else 1, tuple("abc"[:width]),
        affine(width, 2 if sequence else 1), tuple(stages), affine(1, width),
    )  # fmt: skip
    tokens = st.integers(0, high)
    rows = data.draw(st.lists(st.tuples(tokens, tokens) if sequence else tokens, min_size=1, max_size=8))
    rows = [*rows, (0, high)] if sequence else [*rows, 0, high]
    worst, bounds = worst_subset_sums(network, rows), static_bounds(network)
    assert {name: (worst[name], bounds[name]) for name in bounds if worst[name] > bounds[name]} == {}


def hash_and_folds(rounds, folds):
    """A centred tent hash p <- H - 2|p|, a bit of it, and folds V <- |V| - c: plain intervals grow as 3^rounds here."""
    h = 1_000_003
    blocks = []
    for r in range(rounds):
        first = Affine.from_entries(4, 2, [(0, 0, 1), (1, 0, -1), (2, 0, 1), (3, 1, -1)], [0, 0, -1, 0])
        entries = [(0, 0, -3), (0, 1, -1)]
        if r < folds:  # emit the bit relu(p) - relu(p - 1) and fold
            entries += [(1, 0, 1), (1, 2, -1), (1, 3, 2)]
        out = Affine.from_entries(2, 4, entries, [h, -(2 ** (folds - 1 - r)) * 100 if r < folds else 0])
        blocks.append(Block(f"round/{r}", (first, out)))
    embed = Affine.from_entries(2, 1, [(0, 0, 1), (1, 0, 1)], [-500_000, -(2**folds) * 100])
    return Network(
        ("key",), ((0, 10**6),), 1, ("p", "V"), embed, tuple(blocks), Affine.from_entries(1, 2, [(0, 1, 1)])
    ), h


def test_hash_and_folds_stay_in_their_ranges():
    network, h = hash_and_folds(80, 30)
    bounds = static_bounds(network)
    assert max(bounds.values()) <= 2**38  # the folded word: 2^30 * 100, twice
    assert bounds["0079.round/79.1"] <= 3 * h  # H, -3 relu(p) and p itself
    proof = prove(network, "float64")
    assert proof
    assert proof.kinds == {STATIC: len(bounds)}
    assert not prove(network, "float32")


def test_one_of_a_one_hot_row_is_one():
    """m words of 2^45 behind a one-hot selector: their sum over neurons would be m times too large."""
    m, rng = 60, np.random.Generator(np.random.Philox(5))
    t = np.concatenate([[0], np.sort(rng.choice(10**6, m - 1, replace=False)), [10**6 + 1]]).tolist()
    pairs, bias = [], []
    for j in range(m):
        pairs += [(2 * j, 0, -1), (2 * j + 1, 0, 1)]
        bias += [t[j], 1 - t[j + 1]]
    words = [2**45 - int(v) for v in rng.integers(2**20, size=m)]
    layers = (
        Affine.from_entries(2 * m, 2, pairs, bias),
        Affine.from_entries(m, 2 * m, [(j, 2 * j + s, -1) for j in range(m) for s in (0, 1)], [1] * m),
        Affine.from_entries(2, m, [(1, j, w) for j, w in enumerate(words)]),
    )
    network = Network(
        ("key",), ((0, 10**6),), 1, ("x", "w"), Affine.from_entries(2, 1, [(0, 0, 1)]),
        (Block("selector", layers, frozenset({1})),), Affine.from_entries(1, 2, [(0, 1, 1)]),
    )  # fmt: skip
    bounds = static_bounds(network)
    assert bounds["read"] == bounds["0000.selector.2"] == max(words)


def test_small_indices_are_enumerated_jointly():
    """Piece neurons relu(sum_l w_l e_l - BIG g_i) of packed buckets: one word at a time, not the sum of all."""
    big = 2**46
    rng = np.random.Generator(np.random.Philox(6))
    words = [[int(v) for v in rng.integers(1, 2**46, size=4)] for _ in range(8)]
    hinge = [(k, 1, 1) for k in range(6)] + [(6 + i, 0, 1) for i in range(10)]
    one = Affine.from_entries(16, 3, hinge, [1 - k for k in range(6)] + [1 - i for i in range(10)])
    second = [(q, q + k, w) for q in range(4) for k, w in enumerate((1, -2, 1))]
    second += [(4 + i, 6 + i + k, -w) for i in range(8) for k, w in enumerate((1, -2, 1))]
    two = Affine.from_entries(12, 16, second, [0] * 4 + [1] * 8)
    three = Affine.from_entries(
        8, 12, [(i, q, words[i][q]) for i in range(8) for q in range(4)] + [(i, 4 + i, -big) for i in range(8)]
    )
    four = Affine.from_entries(3, 8, [(2, i, 1) for i in range(8)])
    network = Network(
        ("I", "L"), ((0, 7), (0, 3)), 1, ("I", "L", "V"), Affine.from_entries(3, 2, [(0, 0, 1), (1, 1, 1)]),
        (Block("load", (one, two, three, four)),), Affine.from_entries(1, 3, [(0, 2, 1)]),
    )  # fmt: skip
    bounds = static_bounds(network)
    assert bounds["read"] == max(max(row) for row in words)
    assert bounds["0000.load.3"] == max(max(row) for row in words)


def test_keys_outside_the_promise_fall_back_to_the_keys_of_the_items():
    """After the attention any sum of tokens is conceivable; the proof then says it leans on the items' keys."""
    golden = GOLDEN["next-token"]
    push = Block("push", (Affine.from_entries(1, 3, [(0, 2, 1)], [-20]), Affine.from_entries(3, 1, [(0, 0, 2**22)])))
    network = dataclasses.replace(golden.network, stages=(*golden.network.stages, push))
    rows = golden.rows[golden.rows.sum(axis=1) < 9]
    audit = Audit(2**24)
    evaluate(network, rows, audit=audit)
    assert not prove(network, "float32")
    proof = prove(network, "float32", audit)
    assert proof
    assert set(proof.kinds) == {STATIC, STATIC_KEYS}
    assert "proof: " in str(proof)


def test_items_decide_where_the_weights_cannot():
    """Two channels that are never large together: invisible to independent groups, seen by the audit of all items."""
    first = Block("a", (Affine.from_entries(2, 3, [(0, 0, 1), (1, 0, -1)], [-50, 50]),
                        Affine.from_entries(3, 2, [(1, 0, 300_000), (2, 1, 300_000)])))  # fmt: skip
    second = Block(
        "b", (Affine.from_entries(2, 3, [(0, 1, 1), (1, 2, 1)]), Affine.from_entries(3, 2, [(0, 0, 1), (0, 1, 1)]))
    )
    spread = Block("c", (Affine.from_entries(1, 3, [(0, 1, 1), (0, 2, 1)], [-1]), Affine.from_entries(3, 1, [])))
    wide = dataclasses.replace(GOLDEN["interpolator"].network, channels=("x", "y", "z"), input_range=((0, 10**4),),
                               embed=Affine.from_entries(3, 1, [(0, 0, 1)]), stages=(first, second, spread),
                               read=Affine.from_entries(1, 3, [(0, 1, 1)]))  # fmt: skip
    audit = Audit(2**24)
    evaluate(wide, np.arange(0, 100), audit=audit)
    proof = prove(wide, "float32", audit)
    assert proof
    assert ALL_ITEMS in proof.kinds
    assert not prove(wide, "float32")


def test_record_round_trips_and_can_fail():
    proof = prove(hash_and_folds(5, 3)[0], "float64")
    assert RangeProof.from_json(proof.to_json()) == proof
    assert not RangeProof("float64", 2**53)
    assert RangeProof("exact", None)
    assert str(RangeProof("exact", None)) == "integers of any size: no range to prove"
    assert str(RangeProof("float64", 2**53)) == "no range was proved"
    assert prove(GOLDEN["fold-chain-wide"].network, "exact").layers == ()
    with pytest.raises(ConfigurationError, match=r"got 'flaot64' \(did you mean 'float64'\?\)"):
        prove(GOLDEN["interpolator"].network, "flaot64")
