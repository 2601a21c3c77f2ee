"""Token fronts compute in the network what their tables say, and their sums tell sequences apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcap.construct.distinguishing import distinct_values, distinguishing_tokens
from memcap.construct.front_choice import choose_front, padded_length, symbols_of
from memcap.construct.sequence_network import assemble, front_part, key_part, keys_of
from memcap.construct.token_values import bit_hash, fold_hash, value_table
from memcap.errors import ConfigurationError, DataError, PrecisionError
from memcap.exact.affine import Affine
from memcap.exact.evaluate import evaluate
from memcap.exact.network import Network


def identity_key(limbs: int) -> Network:
    """A key network whose output is the key itself (or sel * 2^24 + q)."""
    inputs = ("key",) if limbs == 1 else ("sel", "q")
    embed = Affine.from_entries(limbs, limbs, [(i, i, 1) for i in range(limbs)])
    read = Affine.from_entries(1, limbs, [(0, limbs - 1, 1)] + ([(0, 0, 2**24)] if limbs == 2 else []))
    return Network(inputs, tuple((0, 2**62) for _ in inputs), 1, inputs, embed, (), read)


def distinct_rows(rng, rows, length, vocabulary, ordered):
    tokens = rng.integers(0, vocabulary, size=(rows, length))
    return np.unique(tokens if ordered else np.sort(tokens, axis=1), axis=0)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("weights", ["float64", "float32"])
@pytest.mark.parametrize("per_position", [True, False])
@pytest.mark.parametrize(("rows", "length", "vocabulary"), [(40, 2, 9), (200, 5, 30), (300, 16, 4)])
def test_network_keys_equal_table_keys(ordered, weights, per_position, rows, length, vocabulary):
    rng = np.random.default_rng(rows)
    tokens = distinct_rows(rng, rows, length, vocabulary, ordered)
    padded = padded_length(length)
    symbols = symbols_of(tokens, padded, vocabulary, ordered=ordered)
    alphabet = (vocabulary + 1) * (padded if ordered else 1)
    pairs = np.unique(np.stack([np.repeat(np.arange(len(symbols)), padded), symbols.ravel()], axis=1), axis=0)
    items = len(pairs) if per_position else len(symbols)
    front, keys = choose_front(
        symbols, alphabet=alphabet, items=items, ordered=ordered, per_position=per_position, weights=weights
    )
    network = assemble(
        front, identity_key(len(front.value_channels)), length=padded, tokens=vocabulary + 1, per_position=per_position
    )
    ids = np.full((len(tokens), padded), vocabulary)
    ids[:, :length] = tokens
    wanted = keys[..., 0] if keys.shape[-1] == 1 else keys[..., 0] * 2**24 + keys[..., 1]
    assert np.array_equal(evaluate(network, ids), wanted)
    assert len(np.unique(wanted)) == items


def test_key_part_undoes_assemble():
    front = fold_hash(50, 100, 4, False)
    key = identity_key(1)
    for per_position in (False, True):
        network = assemble(front, key, length=4, tokens=50, per_position=per_position)
        again = key_part(network)
        assert again.embed.same_as(key.embed)
        assert again.read.same_as(key.read)
    assert key_part(key) is key


def test_fold_hash_is_small():
    for symbols in (2, 1000, 2**20):
        front = fold_hash(symbols, 10**5, 16, True)
        assert front.embed.nonzero + sum(m.nonzero for b in front.blocks for m in b.layers) <= 31


def test_too_many_symbols_are_refused():
    with pytest.raises(PrecisionError, match="map the tokens to 0..V-1 first"):
        fold_hash(2**50, 10, 4, True)
    with pytest.raises(PrecisionError, match="use weights='float64'"):
        bit_hash(2**24, 4, True, limb_bits=(10, 10))
    symbols = symbols_of(np.arange(4096)[:, None] * np.ones((1, 600), dtype=int), 4096, 5000, ordered=False)
    with pytest.raises(PrecisionError, match="wider keys than two float32 limbs"):
        choose_front(symbols, alphabet=5001, items=2**17, ordered=False, per_position=False, weights="float32")


def test_unknown_kind_names_the_nearest():
    with pytest.raises(ConfigurationError, match="did you mean 'hash'"):
        choose_front(
            np.zeros((1, 2), int), alphabet=2, items=1, ordered=True, per_position=False, weights="float64", kind="hsh"
        )
    with pytest.raises(ConfigurationError, match="one label per sequence"):
        choose_front(
            np.zeros((1, 2), int),
            alphabet=2,
            items=1,
            ordered=True,
            per_position=True,
            weights="float64",
            kind="distinguishing",
        )


@given(st.integers(2, 40), st.integers(1, 6), st.integers(2, 12), st.integers(0, 10**6))
def test_distinguishing_tokens_tell_all_rows_apart(rows, length, vocabulary, seed):
    tokens = distinct_rows(np.random.default_rng(seed), rows, length, vocabulary, ordered=False)
    chosen = distinguishing_tokens(tokens, vocabulary)
    assert len(chosen) <= max(len(tokens) - 1, 0)
    counts = (
        np.stack([(tokens == c).sum(axis=1) for c in chosen], axis=1) if len(chosen) else np.zeros((len(tokens), 0))
    )
    assert len(np.unique(counts, axis=0)) == len(tokens)


def test_distinguishing_refuses_equal_multisets():
    with pytest.raises(DataError, match="equal as multisets"):
        distinguishing_tokens(np.array([[1, 2], [2, 1]]), 3)


def test_value_table_network():
    rng = np.random.default_rng(3)
    tokens = distinct_rows(rng, 60, 4, 8, ordered=True)
    symbols = symbols_of(tokens, 4, 8, ordered=True)
    chosen = distinguishing_tokens(symbols, 36)
    front = value_table(4, True, chosen, distinct_values(symbols, chosen, seed=0))
    network = assemble(front, identity_key(1), length=4, tokens=9, per_position=False)
    keys = keys_of(front.values(np.arange(36)), symbols, per_position=False)[:, 0]
    assert np.array_equal(evaluate(network, tokens), keys)
    assert len(np.unique(keys)) == len(tokens)
    assert sum(m.nonzero for b in front.blocks for m in b.layers) <= 9 * len(chosen)


@pytest.mark.parametrize(("length", "padded"), [(1, 1), (2, 2), (3, 4), (16, 16), (17, 32)])
def test_padded_length(length, padded):
    assert padded_length(length) == padded


@pytest.mark.parametrize("per_position", [True, False])
def test_front_part_computes_the_key(per_position):
    rng = np.random.default_rng(5)
    tokens = distinct_rows(rng, 80, 4, 9, ordered=True)
    symbols = symbols_of(tokens, 4, 9, ordered=True)
    pairs = len(symbols) * 4 if per_position else len(symbols)
    front, keys = choose_front(
        symbols, alphabet=40, items=pairs, ordered=True, per_position=per_position, weights="exact"
    )
    network = assemble(front, identity_key(1), length=4, tokens=10, per_position=per_position)
    assert np.array_equal(evaluate(front_part(network), tokens), keys[..., 0])
