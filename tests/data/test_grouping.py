"""Grouping of equal rows against sorted Python tuples, at sizes and ranges that do not divide."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memcap.data.grouping import group_rows


def check(table):
    groups = group_rows(table)
    rows = [tuple(row) for row in table.tolist()]
    distinct = sorted(set(rows))
    assert groups.order.tolist() == sorted(range(len(rows)), key=lambda i: (rows[i], i))
    assert groups.group.tolist() == [distinct.index(row) for row in rows]
    assert groups.first.tolist() == [rows.index(row) for row in distinct]
    assert groups.size.tolist() == [rows.count(row) for row in distinct]


@given(
    st.tuples(st.integers(0, 40), st.integers(1, 9)).flatmap(
        lambda shape: st.sampled_from([0, 1, 2, 1000, 2**31, 2**62]).flatmap(
            lambda top: arrays(np.int64, shape, elements=st.integers(0, top))
        )
    )
)
def test_groups_equal_the_reference(table):
    check(table)


@pytest.mark.parametrize("shape", [(1, 1), (63, 1), (100, 33), (257, 7)])
@pytest.mark.parametrize("top", [1, 3, 2**40])
def test_awkward_sizes(shape, top):
    draw = np.random.default_rng(len(shape) + top)
    table = draw.integers(top + 1, size=shape)
    check(np.concatenate([table, table[::-3]]))


def test_a_wide_table_and_one_with_only_equal_rows():
    check(np.zeros((50, 130), dtype=np.int64))
    check(np.full((3, 2), 2**62, dtype=np.int64))
