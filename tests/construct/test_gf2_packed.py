"""The packed basis gives what the reference basis gives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memcap.construct.gf2 import Basis
from memcap.construct.gf2_packed import packed_basis, rank_of


@given(
    st.integers(0, 2**31),
    st.integers(1, 150),
    st.sampled_from([1, 7, 31, 47, 57]),
    st.integers(1, 5),
    st.integers(0, 3),
)
def test_rows_rank_and_solutions_agree_with_the_reference(seed, items, bits, first, second):
    draw = np.random.default_rng(seed)
    beta = draw.integers(0, 2**bits, size=items, dtype=np.uint64)
    offsets = np.stack([bits * (second + draw.integers(0, first, size=items)), np.full(items, -1)])
    if second:
        offsets[1] = bits * draw.integers(-1, second, size=items)
        offsets[1][offsets[1] < 0] = -1
    unknowns = bits * (first + second)
    basis, rows = Basis(items), []
    for i in range(items):
        row = 0
        for at in offsets[:, i]:
            row ^= int(beta[i]) << int(at) if at >= 0 else 0
        rows.append(row)
        if not basis.add(row):
            break
    packed = packed_basis(beta, offsets, unknowns)
    assert (packed is None) == (basis.rank < items)
    if packed is not None:
        rhs = draw.random(items) < 0.5
        z = sum(int(word) << (64 * w) for w, word in enumerate(packed.solve(rhs)))
        assert z == basis.solve(sum(1 << i for i in range(items) if rhs[i]))
    reference = Basis(items + 1)
    assert rank_of(beta) == sum(reference.add(int(b)) for b in beta)
