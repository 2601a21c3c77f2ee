"""The tent-map hash: invariants of both forms, primes, warm-up."""

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcap.construct import tent
from memcap.errors import ConfigurationError


def test_examples_in_docstrings():
    assert doctest.testmod(tent).failed == 0


def test_primes_agree_with_a_sieve():
    limit = 5000
    sieve = np.ones(limit, dtype=bool)
    sieve[:2] = False
    for n in range(2, limit):
        if sieve[n]:
            sieve[2 * n :: n] = False
    assert [n for n in range(limit) if tent.is_prime(n)] == np.flatnonzero(sieve).tolist()


@pytest.mark.parametrize("n", [3215031751, 3825123056546413051, 2**61 + 1, (2**31 - 1) ** 2])
def test_strong_pseudoprimes_and_squares_are_refused(n):
    assert not tent.is_prime(n)


@pytest.mark.parametrize("n", [2**61 - 1, 2**89 - 1, 10**18 + 9])
def test_large_primes(n):
    assert tent.is_prime(n)


def test_short_orbits_are_refused():
    assert not tent.orbit_is_long(2**13 - 1, 14)  # 2^13 = 1
    assert tent.orbit_is_long(2**13 - 1, 13)
    assert tent.choose_prime(8191, rounds=200) != 8191


@given(st.integers(0, 10**6), st.integers(1, 60), st.sampled_from([None, 1, 3]))
def test_chosen_primes_are_ordered_and_admissible(at_least, rounds, residue):
    first = tent.choose_prime(at_least, rounds=rounds, residue=residue)
    second = tent.choose_prime(at_least, rounds=rounds, residue=residue, skip=1)
    assert at_least <= first < second
    for p in (first, second):
        assert tent.is_prime(p)
        assert tent.orbit_is_long(p, rounds)
        assert residue is None or p % 4 == residue


def test_a_prime_that_cannot_be():
    with pytest.raises(ConfigurationError, match="residue=2"):
        tent.choose_prime(5, rounds=1, residue=2)


@given(st.integers(1, 3000), st.integers(0, 3))
def test_fold_form_is_injective_and_parity_is_the_bit(largest, skip):
    modulus = tent.choose_prime(2 * largest + 2, rounds=8, skip=skip)
    u = 2 * np.arange(largest + 1, dtype=np.int64) + 1
    for _ in range(12):
        nu = np.maximum(modulus - 2 * u, 0)
        assert np.array_equal(nu % 2 == 1, 2 * u < modulus)
        u = tent.fold_step(u, modulus)
        assert np.all(u % 2 == 1)
        assert u.min() >= 0
        assert u.max() <= modulus
        assert len(np.unique(u)) == largest + 1


@given(st.integers(0, 3000), st.integers(0, 3))
def test_centred_form_is_injective_odd_and_in_range(largest, skip):
    modulus = tent.choose_prime(2 * largest + 5, rounds=8, skip=skip)
    p = 4 * np.arange(largest + 1, dtype=np.int64) + tent.centred_offset(largest, modulus)
    for _ in range(12):
        assert np.all(p % 4 == (modulus - 2) % 4)
        assert np.abs(p).max() <= modulus
        assert len(np.unique(p)) == largest + 1
        p = tent.centred_step(p, modulus)


def test_centred_offset_refuses_a_small_modulus():
    with pytest.raises(ConfigurationError, match="25 or more"):
        tent.centred_offset(10, 23)


def test_warmup_spreads_neighbours():
    keys = 2**40 + np.arange(1000, dtype=np.int64)
    rounds = tent.safe_warmup(keys, 40)
    assert rounds >= 40 - 6 + 8
    modulus = tent.choose_prime(2 * int(keys[-1]) + 5, rounds=rounds + 40)
    p = 4 * keys + tent.centred_offset(int(keys[-1]), modulus)
    bits = tent.centred_bits(p, modulus, rounds + 40)
    assert len({row.tobytes() for row in bits[rounds:].T}) > 900  # runs of neighbours have told apart
    assert tent.safe_warmup(keys[:1], 40) == 8
    assert tent.safe_warmup(keys[:0], 40) == 8
    assert tent.quick_warmup(1) == 6
    assert tent.quick_warmup(440) == 15
