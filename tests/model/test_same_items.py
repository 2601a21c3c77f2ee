"""Relabelling takes the same items and nothing else."""

import numpy as np
import pytest

import memcap
from memcap.errors import DataError


def sequences(seed=0, *, per_position=False, ordered=True):
    rng = np.random.default_rng(seed)
    tokens = np.unique(np.sort(rng.integers(0, 12, size=(40, 3)), axis=1), axis=0)
    labels = tokens % 2 if per_position else rng.integers(0, 2, size=len(tokens))
    return memcap.SequenceData.from_arrays(tokens.tolist(), labels.tolist(), ordered=ordered)


@pytest.mark.parametrize(
    "kind", [{}, {"ordered": False}, {"per_position": True}], ids=["ordered", "multisets", "per position"]
)
def test_the_same_items_are_known_with_and_without_the_data(tmp_path, kind):
    data = sequences(**kind)
    memory = memcap.build(data)
    memory.save(tmp_path / "m")
    loaded = memcap.load(tmp_path / "m")
    flipped = data.with_labels(
        [[1 - t % 2 for t in row] for row in data.tokens.tolist()]
        if data.per_position
        else [1 - int(v) for v in data.labels]
    )
    for asked in (memory, loaded):
        other = asked.relabel(flipped)
        assert other.recall(flipped).correct == other.recall(flipped).total
    again = loaded.relabel(flipped, data=data)
    assert again.recall(flipped).correct == again.recall(flipped).total


def test_other_items_are_refused(tmp_path):
    keys = np.random.default_rng(1).choice(1000, 200, replace=False)
    data = memcap.SequenceData.from_arrays(keys, (keys % 2).tolist())
    memory = memcap.build(data)
    memory.save(tmp_path / "m")
    few = memcap.SequenceData.from_arrays([1, 2, 3], [0, 1, 0])
    fewer = memcap.SequenceData.from_arrays(keys[:-1], (keys[:-1] % 2).tolist())
    for asked in (memory, memcap.load(tmp_path / "m")):
        for wrong in (few, fewer):
            expected = "expected the 200 items this memory was built from, with other labels; got"
            with pytest.raises(DataError, match=f"{expected} {len(wrong)} sequences that are not the same"):
                asked.relabel(wrong)
            with pytest.raises(DataError, match=expected):
                asked.relabel([0, 1, 0], data=wrong)
    longer = memcap.SequenceData.from_arrays([[1, 2], [2, 1]], [0, 1])
    with pytest.raises(DataError, match="got items of 2 tokens where it reads 1"):
        memory.relabel(longer)
    with pytest.raises(DataError, match="got multisets where it was built from ordered sequences"):
        memory.relabel(memcap.SequenceData.from_arrays([1, 2], [0, 1], ordered=False))
    with pytest.raises(DataError, match="with other labels; 1 items hold a integer this memory does not know"):
        memory.relabel(memcap.SequenceData.from_arrays([1, 5000], [0, 1]))
