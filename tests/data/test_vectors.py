"""Real-valued tokens: separated on a grid, projected to integers, refused when too close."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcap.data.encoding import Encoding
from memcap.data.projection import VectorProjection, fit_projection
from memcap.data.sequences import SequenceData
from memcap.errors import DataError, DomainError, FormatError


def pool(tokens, dimension, seed=0):
    return np.random.default_rng(seed).normal(size=(tokens, dimension))


@given(st.integers(1, 60), st.integers(1, 9), st.integers(0, 10**6), st.sampled_from([1e-6, 1.0, 1e5]))
def test_distinct_vectors_get_distinct_integers(tokens, dimension, seed, scale):
    vectors = pool(tokens, dimension, seed) * scale
    projection = fit_projection(vectors, [str(i) for i in range(tokens)])
    numbers = projection.project(vectors)
    assert len(np.unique(numbers)) == tokens
    assert numbers.min() >= 0
    assert numbers.max() < projection.size
    assert VectorProjection.from_json(projection.to_json()) == projection


def test_sequences_of_vectors_round_trip():
    vectors = pool(50, 8)
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 50, size=(200, 5))
    data = SequenceData.from_vectors(vectors[ids], rng.integers(0, 3, size=200))
    assert data.length == 5
    assert data.encoding.kind == "vectors"
    tokens, lengths = data.encode([vectors[ids[0]], vectors[ids[1][:3]]])
    assert lengths.tolist() == [5, 3]
    assert np.array_equal(tokens[0], data.tokens[0])
    assert tokens[1, 3] == data.vocabulary_size
    assert Encoding.from_json(data.encoding.to_json()) == data.encoding


def test_too_close_names_the_pair():
    rows = [[[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1e-3, 0.0]]]
    with pytest.raises(
        DataError, match=r"row 1, position 1 and row 2, position 2: two tokens are 0.001 apart, less than"
    ):
        SequenceData.from_vectors(rows, ["a", "b"], separation=0.1)
    rows[1][1] = [1e-15, 0.0]
    with pytest.raises(DataError, match="more than 2\\^40 points a coordinate"):
        SequenceData.from_vectors(rows, ["a", "b"])


def test_radius_is_checked():
    with pytest.raises(DataError, match="row 2, position 1: a token has norm 5, more than the radius r = 2"):
        SequenceData.from_vectors([[[1.0, 0.0]], [[3.0, 4.0]]], ["a", "b"], radius=2.0)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], "0 rows"),
        ([[1.0, 2.0]], "row 1: expected vectors of shape"),
        ([[[1.0]], [[1.0, 2.0]]], "row 2: vectors of 2 coordinates among ones of 1"),
        ([[[1.0]], [[float("nan")]]], "row 2, position 1: a coordinate is not a finite number"),
        ([[["x"]]], "row 1: expected numbers"),
    ],
)
def test_bad_vectors_are_refused(tokens, message):
    with pytest.raises(DataError, match=message):
        SequenceData.from_vectors(tokens, ["a"] * len(tokens))


def test_strange_vectors_are_refused_when_asked():
    data = SequenceData.from_vectors(pool(20, 3)[:, None, :], list(range(20)))
    with pytest.raises(DomainError, match="expected vectors of 3 coordinates"):
        data.encode([[[1.0, 2.0]]])
    with pytest.raises(DomainError, match="far outside"):
        data.encode([[[1e30, 0.0, 0.0]]])
    with pytest.raises(DomainError, match="outside the region"):
        data.encode([[[40.0, -40.0, 40.0]]])


def test_broken_projection_is_refused():
    record = fit_projection(pool(3, 2), ["a", "b", "c"]).to_json()
    with pytest.raises(FormatError, match="keys"):
        VectorProjection.from_json({**record, "extra": 1})
    with pytest.raises(FormatError, match="not an integer"):
        VectorProjection.from_json({**record, "weights": [1.5, 2]})


@pytest.mark.parametrize("scale", [1e-250, 1e-200, 1e-100, 1e100, 1e200, 1e295])
def test_any_ordinary_magnitude_works(scale):
    vectors = pool(40, 3) * scale
    data = SequenceData.from_vectors(vectors[:, None, :], [i % 3 for i in range(40)])
    assert len(np.unique(data.tokens)) == 40
    assert data.encode([data.item(i) for i in range(40)])[0].tolist() == data.tokens.tolist()
    two = SequenceData.from_vectors(np.array([[[0.0]], [[scale]]]), [0, 1])
    assert len(np.unique(two.tokens)) == 2
    with pytest.raises(DomainError, match="far outside"):
        two.encode([[[scale * 1e13]]])


def test_a_magnitude_past_every_grid_is_refused():
    with pytest.raises(DataError, match=r"coordinates reach 1e\+305; multiply all vectors by one constant"):
        SequenceData.from_vectors(np.array([[[0.0]], [[1e305]]]), [0, 1])
    with pytest.raises(DataError, match="row 1, position 1 and row 2, position 1: .* only 1e-310 apart; multiply all"):
        SequenceData.from_vectors(np.array([[[0.0]], [[1e-310]]]), [0, 1])
    with pytest.raises(DataError, match=r"only 1e-200 apart while coordinates reach 1; a grid .* more than 2\^40"):
        SequenceData.from_vectors(np.array([[[0.0]], [[1e-200]], [[1.0]]]), [0, 1, 0])
    record = fit_projection(pool(3, 2), ["a", "b", "c"]).to_json()
    with pytest.raises(FormatError, match="scale_bits must be within 1000, got 5000"):
        VectorProjection.from_json({**record, "scale_bits": 5000})


def test_an_item_of_vectors_is_its_vectors():
    vectors = pool(30, 4)
    ids = np.random.default_rng(2).integers(0, 30, size=(50, 3))
    data = SequenceData.from_vectors(vectors[ids], [i % 2 for i in range(50)])
    for made in (data, data.with_labels([i % 5 for i in range(len(data))])):
        assert all(np.array_equal(made.item(i), vectors[ids[made.rows[i] - 1]]) for i in range(len(made)))
    ragged = SequenceData.from_vectors([vectors[:3], vectors[:2]], ["a", "b"])
    assert ragged.item(1).tolist() == vectors[:2].tolist()
