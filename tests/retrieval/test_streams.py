"""Token streams: known answers, plain = compiled, any order, one right answer a row, the law of the data."""

import hashlib
import itertools
import json
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given as randomly
from hypothesis import settings
from hypothesis import strategies as st

from memcap.errors import ConfigurationError, DataError
from memcap.retrieval import token_kernels
from memcap.retrieval.embeddings import data_hash, draw_embeddings, draw_trigger
from memcap.retrieval.philox import philox_plain
from memcap.retrieval.streams import Sequences, check_answers, draw, given, source
from memcap.retrieval.task import RetrievalTask
from memcap.retrieval.token_kernels import materialise, materialise_rows


def make(**fields):
    defaults = {"vocabulary": 33, "length": 7, "samples": 101, "dimension": 12, "seed": 7}
    return RetrievalTask(**{**defaults, **fields})


def test_philox_known_answers():
    cases = [  # counter, key, words: the generator's published known answers
        ([0] * 4, (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([0xFFFFFFFF] * 4, (0xFFFFFFFF, 0xFFFFFFFF), "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ]
    for counter, key, words in cases:
        drawn = philox_plain(np.array([counter], np.uint32), key)[0]
        assert " ".join(f"{word:08x}" for word in drawn) == words


VARIANTS = [
    {},
    {"length": 1},
    {"length": 4},
    {"length": 65},
    {"vocabulary": 2},
    {"vocabulary": 2**31, "length": 3},
    {"frequencies": "zipf"},
    {"frequencies": 2.5, "label_noise": 0.4},
    {"label_noise": 0.2},
]


@pytest.mark.parametrize("fields", VARIANTS, ids=str)
def test_compiled_streams_equal_plain_ones(fields):
    task = make(**fields)
    permutation = np.random.default_rng(0).permutation(min(task.vocabulary, 1000))
    if task.vocabulary > 1000:  # a permutation of 2^31 tokens is not needed to compare tokens
        task = task.replace(vocabulary=1000)
    for purpose in ("training", "test"):
        plain = draw(task, permutation, purpose, canonical=True)
        tokens, labels = materialise(source(task, permutation, purpose, task.samples, task.seed), 0, task.samples)
        assert np.array_equal(tokens, plain.tokens)
        assert np.array_equal(labels, plain.labels)


def test_samples_beyond_32_bits():
    task = make(samples=2**40)
    permutation = draw_embeddings(task).permutation
    start = 2**33 - 5
    plain = draw(task, permutation, "training", start, start + 10, canonical=True)
    tokens, _ = materialise_rows(
        source(task, permutation, "training", task.samples, task.seed), np.arange(start, start + 10)
    )
    assert np.array_equal(tokens, plain.tokens)
    assert len(np.unique(plain.tokens, axis=0)) == 10


@settings(max_examples=25)
@randomly(st.lists(st.integers(0, 100), min_size=0, max_size=6))
def test_any_order_and_chunk_gives_the_same_samples(cuts):
    task = make()
    permutation = draw_embeddings(task).permutation
    whole = draw(task, permutation)
    edges = [0, *sorted(cuts), task.samples]
    parts = [draw(task, permutation, "training", a, b) for a, b in itertools.pairwise(edges)][::-1]
    for name in ("tokens", "position", "labels"):
        joined = np.concatenate([getattr(part, name) for part in parts[::-1]])
        assert np.array_equal(joined, getattr(whole, name))


@pytest.mark.parametrize(
    "fields", [{}, {"length": 1}, {"vocabulary": 2, "length": 30}, {"frequencies": "zipf"}], ids=str
)
def test_every_row_has_exactly_one_right_answer(fields):
    task = make(**fields, samples=500)
    permutation = draw_embeddings(task).permutation
    for purpose in ("training", "test"):
        sequences = draw(task, permutation, purpose)
        assert np.array_equal(check_answers(sequences, permutation), sequences.labels)
        if task.length > 7:  # the informative token does repeat elsewhere, and that changes nothing
            own = sequences.tokens[np.arange(500), sequences.position]
            assert ((sequences.tokens == own[:, None]).sum(axis=1) > 1).any()


def test_the_checker_finds_broken_rows():
    permutation = np.array([2, 0, 1])
    tokens = np.array([[0, 1], [1, 2]])
    good = Sequences(tokens, np.array([0, 1]), np.array([2, 1]))
    assert check_answers(good, permutation).tolist() == [2, 1]
    with pytest.raises(DataError, match="row 1: expected exactly one marked token, got 0"):
        check_answers(Sequences(tokens, np.array([0, 5]), good.labels), permutation)
    with pytest.raises(DataError, match="row 1: token 3 lies outside the vocabulary 0 … 2"):
        check_answers(Sequences(np.array([[0, 1], [1, 3]]), good.position, good.labels), permutation)
    with pytest.raises(DataError, match="not a permutation: two tokens share an answer"):
        check_answers(good, np.array([0, 0, 1]))


def test_label_noise_has_its_rate_and_only_in_training():
    task = make(samples=20_000, label_noise=0.3, vocabulary=10)
    permutation = draw_embeddings(task).permutation
    training, test = (draw(task, permutation, purpose) for purpose in ("training", "test"))
    wrong = (check_answers(training, permutation) != training.labels).mean()
    assert wrong == pytest.approx(0.3 * 0.9, abs=0.015)
    assert np.array_equal(check_answers(test, permutation), test.labels)
    quiet = draw(task.replace(label_noise=0.0), permutation)
    assert np.array_equal(quiet.tokens, training.tokens)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
def test_frequencies_and_positions_have_their_law(exponent):
    task = make(samples=20_000, frequencies=exponent, vocabulary=20)
    sequences = draw(task, draw_embeddings(task).permutation)
    counts = np.bincount(sequences.tokens.ravel(), minlength=20)
    expected = sequences.tokens.size * task.token_probabilities()
    assert (((counts - expected) ** 2 / expected).sum()) < 50  # chi-square with 19 degrees of freedom
    places = np.bincount(sequences.position, minlength=7)
    assert ((places - 20_000 / 7) ** 2 / (20_000 / 7)).sum() < 30


def test_streams_of_different_purpose_and_seed_differ():
    task = make()
    permutation = draw_embeddings(task).permutation
    drawn = [draw(task, permutation, p, seed=s).tokens for p in ("training", "test") for s in (0, 1)]
    for i, one in enumerate(drawn):
        for two in drawn[:i]:
            assert (one == two).mean() < 0.1
    with pytest.raises(ConfigurationError, match=r"purpose must be one of training, test, got 'trianing' \(did you"):
        draw(task, permutation, "trianing")
    with pytest.raises(ConfigurationError, match="needs 0 <= start <= stop, got start=3, stop=2"):
        draw(task, permutation, "training", 3, 2)


def test_given_sequences_are_read_back_in_canonical_order():
    task = make()
    permutation = draw_embeddings(task).permutation
    sequences = draw(task, permutation)
    tokens, labels = materialise(given(sequences, permutation), 0, len(sequences))
    assert np.array_equal(labels, sequences.labels)
    assert np.array_equal(tokens[:, 0], sequences.tokens[np.arange(len(labels)), sequences.position])
    assert np.array_equal(np.sort(tokens, axis=1), np.sort(sequences.tokens, axis=1))


@pytest.mark.parametrize("kind", ["gaussian", "sphere", "orthogonal"])
def test_embeddings_have_their_law(kind):
    task = make(embeddings=kind, dimension=200, vocabulary=150, width=3)
    drawn = draw_embeddings(task)
    assert drawn.mlp.shape == (3, 200)
    assert sorted(drawn.permutation) == list(range(150))
    gram = drawn.tokens @ drawn.tokens.T
    if kind == "orthogonal":
        np.testing.assert_allclose(gram, np.eye(150), atol=1e-13)
        np.testing.assert_allclose(drawn.labels @ drawn.labels.T, np.eye(150), atol=1e-13)
        np.testing.assert_allclose(drawn.tokens @ drawn.trigger, 0, atol=1e-13)
    if kind != "gaussian":
        np.testing.assert_allclose(np.diag(gram), 1, atol=1e-13)
        assert np.linalg.norm(drawn.trigger) == pytest.approx(1, abs=1e-13)
    assert drawn.tokens.var() == pytest.approx(1 / 200, rel=0.05)
    assert not np.array_equal(drawn.trigger, draw_trigger(task, drawn.tokens, task.seed, 1))


def fingerprint(seed):
    task = make(seed=seed, width=4)
    return data_hash(task, draw_embeddings(task), seed)


def test_one_hash_in_parent_and_spawned_workers_and_global_state_untouched():
    before = np.random.get_state()[1].copy()
    here = fingerprint(7)
    assert np.array_equal(np.random.get_state()[1], before)
    assert fingerprint(8) != here
    code = (
        "from memcap.retrieval.task import RetrievalTask;"
        "from memcap.retrieval.embeddings import data_hash, draw_embeddings;"
        "t = RetrievalTask(vocabulary=33, length=7, samples=101, dimension=12, seed=7, width=4);"
        "print(data_hash(t, draw_embeddings(t), 7))"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert there == here


@pytest.mark.slow
def test_one_hash_on_eight_workers():
    with ProcessPoolExecutor(8, mp_context=get_context("spawn")) as pool:
        assert set(pool.map(fingerprint, [7] * 16)) == {fingerprint(7)}


def test_the_numbers_of_seed_seven_never_change():
    """Golden values: a change here changes every published run and must raise ``task.FORMAT``."""
    task = make()
    drawn = draw_embeddings(task)
    sequences = draw(task, drawn.permutation)
    text = json.dumps([sequences.tokens[:3].tolist(), sequences.position[:5].tolist(), drawn.permutation[:5].tolist()])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "d12fe22f18022180"
    np.testing.assert_allclose(drawn.tokens[0, :2], [-0.19492502633633604, -0.3350211092026012], rtol=1e-15)


def test_compiled_code_works_where_no_cache_can_be_written(monkeypatch):
    real, asked = token_kernels.numba.njit, []

    def without_cache(cache=False, **options):
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function 'f': no locator available for file 'f.py'")
        return real(**options)

    monkeypatch.setattr(token_kernels.numba, "njit", without_cache)
    assert token_kernels.compiled()(lambda x: x + 1)(2) == 3
    assert asked == [True, False]

    def broken(**options):
        raise RuntimeError("something else")

    monkeypatch.setattr(token_kernels.numba, "njit", broken)
    with pytest.raises(RuntimeError, match="something else"):
        token_kernels.compiled()(lambda x: x)
