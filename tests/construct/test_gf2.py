"""The echelon basis over GF(2) against plain elimination."""

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcap.construct import gf2
from memcap.errors import ConfigurationError


def rank_of(rows, width):
    """Rank by plain Gaussian elimination on a Boolean matrix: the independent definition."""
    matrix = np.array([[(row >> f) & 1 for f in range(width)] for row in rows], dtype=bool).reshape(len(rows), width)
    rank = 0
    for column in range(width):
        pivots = np.flatnonzero(matrix[rank:, column]) + rank
        if len(pivots):
            matrix[[rank, pivots[0]]] = matrix[[pivots[0], rank]]
            others = matrix[:, column].copy()
            others[rank] = False
            matrix[others] ^= matrix[rank]
            rank += 1
    return rank


def parity(row, z):
    return (row & z).bit_count() & 1


def test_examples_in_docstrings():
    assert doctest.testmod(gf2).failed == 0


systems = st.integers(1, 70).flatmap(
    lambda width: st.tuples(st.just(width), st.lists(st.integers(0, 2**width - 1), max_size=40))
)


@given(systems, st.integers(0, 2**40 - 1))
def test_greedy_rows_are_a_basis_and_every_right_hand_side_is_met(system, rhs):
    width, rows = system
    basis = gf2.Basis(len(rows) + 1)
    kept = []
    for row in rows:
        independent = rank_of([*kept, row], width) == len(kept) + 1
        assert basis.independent(row) == independent
        mask = basis.dependency(row)
        if independent:
            assert mask is None
        else:
            total = 0
            for i, other in enumerate(kept):
                total ^= other if mask >> i & 1 else 0
            assert total == row
        assert basis.add(row) == independent
        if independent:
            kept.append(row)
    assert basis.rank == basis.rows == len(kept)
    z = basis.solve(rhs)
    assert [parity(row, z) for row in kept] == [rhs >> i & 1 for i in range(len(kept))]
    assert z.bit_count() <= len(kept)  # free unknowns stay 0


@given(systems, st.integers(0, 40))
def test_rollback_equals_never_added(system, back):
    _, rows = system
    basis, kept = gf2.Basis(len(rows) + 1), []
    for row in rows:
        if basis.add(row):
            kept.append(row)
    back = min(back, len(kept))
    basis.rollback(back)
    fresh = gf2.Basis(len(rows) + 1)
    assert all(fresh.add(row) for row in kept[:back])
    assert [basis.independent(row) for row in rows] == [fresh.independent(row) for row in rows]
    assert basis.solve(0x155555) == fresh.solve(0x155555)


def test_misuse_is_refused():
    basis = gf2.Basis(1)
    assert basis.add(1)
    with pytest.raises(ConfigurationError, match="made for 1 rows"):
        basis.add(2)
    with pytest.raises(ConfigurationError, match="cannot go back"):
        basis.rollback(2)


@pytest.mark.parametrize("unknowns", [1, 7, 8, 9, 64, 65, 130])
def test_rows_from_bits(unknowns):
    bits = np.random.default_rng(unknowns).random((unknowns, 13)) < 0.5
    for i, row in enumerate(gf2.rows_from_bits(bits)):
        assert row == sum(1 << f for f in range(unknowns) if bits[f, i])
