"""Reference = closed form at any step size; small-step engine = the closed form's limit; symmetries of both."""

import numpy as np
import pytest
import torch
from hypothesis import given as randomly
from hypothesis import settings
from hypothesis import strategies as st

from memcap.errors import ConfigurationError, RunError
from memcap.retrieval.closed_form import closed_form
from memcap.retrieval.embeddings import draw_embeddings
from memcap.retrieval.reference import ReferenceModel, three_steps
from memcap.retrieval.small_step import small_step
from memcap.retrieval.step_sizes import StepSizes
from memcap.retrieval.streams import Sequences, draw, given, source
from memcap.retrieval.task import RetrievalTask

SIZES = {"first": 30.0, "attention": 400.0, "second": 7.0}


def make(**fields):
    defaults = {"vocabulary": 33, "length": 7, "samples": 101, "dimension": 12, "seed": 3, "attention": "soft"}
    return RetrievalTask(**{**defaults, **fields})


def relative(a, b):
    return float(np.abs(np.asarray(a) - np.asarray(b)).max() / max(np.abs(np.asarray(b)).max(), 1e-300))


def run_reference(task, embeddings, sequences, **sizes):
    model = ReferenceModel(task, embeddings, attention=task.attention)
    return three_steps(model, sequences, **sizes)


CASES = [
    {},
    {"length": 1},
    {"length": 2},
    {"vocabulary": 2},
    {"dimension": 50},
    {"trigger_in_value": True},
    {"attention": "hard"},
    {"attention": "hard", "trigger_in_value": True},
    {"embeddings": "sphere", "frequencies": "zipf"},
    {"embeddings": "orthogonal", "dimension": 34, "label_noise": 0.3},
    *[{"width": 20, "activation": name} for name in ("relu", "gelu", "tanh", "he2", "h1+h2", "0.5*h0-2*h3")],
    {"width": 5, "activation": "gelu", "trigger_in_value": True, "length": 2, "vocabulary": 2},
    {"width": 70, "activation": "relu", "trigger_in_value": True, "dimension": 40},
]


@pytest.mark.parametrize("fields", CASES, ids=str)
def test_closed_form_equals_autograd(fields):
    task = make(**fields)
    embeddings = draw_embeddings(task)
    weights = run_reference(task, embeddings, draw(task, embeddings.permutation), **SIZES)
    samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
    for block in (1024, 16):  # 101 is not a multiple
        first = closed_form(task, embeddings, samples, StepSizes(**SIZES), steps=2, block=block)
        final = closed_form(task, embeddings, samples, StepSizes(**SIZES), block=block)
        assert relative(first.readout, weights.value_first) < 1e-12
        assert relative(final.readout, weights.value) < 1e-12
        key_query = SIZES["attention"] * np.outer(final.direction, embeddings.end)
        if task.length > 1:  # with one position there is nothing to attend to
            assert relative(key_query, weights.key_query) < 1e-12
        else:
            assert np.abs(key_query).max() < 1e-12
            assert np.abs(np.asarray(weights.key_query)).max() < 1e-12


@pytest.mark.parametrize("attention", ["uniform", "oracle"])
def test_first_step_alone_and_perfect_attention(attention):
    task = make(attention=attention, width=9, trigger_in_value=True)
    embeddings = draw_embeddings(task)
    weights = run_reference(task, embeddings, draw(task, embeddings.permutation), **SIZES)
    samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
    learned = closed_form(task, embeddings, samples, StepSizes(**SIZES))
    expected = weights.value_first if attention == "uniform" else weights.value
    if attention == "oracle":  # the first step sees uniform attention, the last one the oracle
        assert learned.reading == "oracle"
    assert relative(learned.readout, expected) < 1e-12


LIMITS = [
    {},
    {"length": 1},
    {"length": 2},
    {"vocabulary": 2},
    {"dimension": 50},
    {"trigger_in_value": True},
    {"frequencies": 1.5, "label_noise": 0.25},
    {"samples": 9000},
    {"embeddings": "sphere"},
]


@pytest.mark.parametrize("attention", ["hard", "soft", "uniform", "oracle"])
@pytest.mark.parametrize("fields", LIMITS, ids=str)
def test_small_step_engine_equals_the_limit_of_the_closed_form(fields, attention):
    task = make(**fields, attention=attention)
    embeddings = draw_embeddings(task)
    samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
    exact = closed_form(task, embeddings, samples, StepSizes())
    for form in ("table", "vectors"):
        fast = small_step(task, embeddings, samples, StepSizes(), form=form)
        for name in ("readout", "direction", "token_scores", "alpha"):
            expected = getattr(exact, name)
            if np.abs(expected).max() > 1e-18:
                assert relative(getattr(fast, name), expected) < 1e-11, name
        assert np.array_equal(fast.seen, exact.seen)
        assert fast.drive == pytest.approx(exact.drive, rel=1e-11, abs=1e-18)
        assert fast.reading == exact.reading


@pytest.mark.parametrize("fields", [{}, {"width": 15, "activation": "tanh"}, {"trigger_in_value": True}], ids=str)
def test_the_limit_is_what_small_steps_tend_to(fields):
    task = make(**fields, samples=200)
    embeddings = draw_embeddings(task)
    samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
    limit = closed_form(task, embeddings, samples, StepSizes())
    errors = []
    for eta in (1e-1, 1e-2, 1e-3):
        finite = closed_form(task, embeddings, samples, StepSizes(first=eta))
        errors.append(relative(finite.readout, limit.readout))
        assert finite.scale * eta == pytest.approx(limit.scale, rel=1e-12)
    assert errors[1] < 0.2 * errors[0]
    assert errors[2] < 0.2 * errors[1]
    assert errors[2] < 1e-4


def test_permuting_positions_changes_nothing():
    task = make()
    embeddings = draw_embeddings(task)
    sequences = draw(task, embeddings.permutation)
    order = np.random.default_rng(0).permuted(np.tile(np.arange(task.length), (len(sequences), 1)), axis=1)
    moved = Sequences(
        np.take_along_axis(sequences.tokens, order, axis=1),
        (order == sequences.position[:, None]).argmax(axis=1),
        sequences.labels,
    )
    one = run_reference(task, embeddings, sequences, **SIZES)
    two = run_reference(task, embeddings, moved, **SIZES)
    assert relative(two.value, one.value) < 1e-12
    assert relative(two.key_query, one.key_query) < 1e-12
    for data in (sequences, moved):
        samples = given(data, embeddings.permutation)
        assert relative(closed_form(task, embeddings, samples, StepSizes(**SIZES)).readout, one.value) < 1e-12


def test_relabelling_tokens_and_labels_together_changes_nothing():
    task = make(attention="hard")
    embeddings = draw_embeddings(task)
    sequences = draw(task, embeddings.permutation)
    rng = np.random.default_rng(1)
    token_name, label_name = rng.permutation(task.vocabulary), rng.permutation(task.vocabulary)
    tokens, labels = np.empty_like(embeddings.tokens), np.empty_like(embeddings.labels)
    tokens[token_name], labels[label_name] = embeddings.tokens, embeddings.labels
    permutation = np.empty_like(embeddings.permutation)
    permutation[token_name] = label_name[embeddings.permutation]
    renamed = type(embeddings)(tokens, labels, embeddings.trigger, embeddings.end, permutation, None)
    other = Sequences(token_name[sequences.tokens], sequences.position, label_name[sequences.labels])
    for engine in (small_step, closed_form):
        one = engine(task, embeddings, given(sequences, embeddings.permutation), StepSizes())
        two = engine(task, renamed, given(other, permutation), StepSizes())
        assert relative(two.readout, one.readout) < 1e-11
        assert relative(two.token_scores[token_name], one.token_scores) < 1e-11


def test_same_bits_on_any_number_of_threads():
    task = make(samples=20_000, attention="soft")
    embeddings = draw_embeddings(task)
    samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
    before = torch.get_num_threads()
    for engine, options in (
        (small_step, {"form": "table"}),
        (small_step, {"form": "vectors"}),
        (closed_form, {}),
    ):
        runs = [engine(task, embeddings, samples, StepSizes(), threads=threads, **options) for threads in (1, 2, 8)]
        for run in runs[1:]:
            for name in ("readout", "direction", "token_scores", "alpha"):
                assert np.array_equal(getattr(run, name), getattr(runs[0], name))
    assert torch.get_num_threads() == before


def test_float32_costs_little():
    task = make(width=30, samples=500)
    embeddings = draw_embeddings(task)
    samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
    exact = closed_form(task, embeddings, samples, StepSizes(**SIZES))
    single = closed_form(task, embeddings, samples, StepSizes(**SIZES), dtype="float32")
    assert 1e-9 < relative(single.readout, exact.readout) < 1e-5


def test_the_small_step_engine_refuses_what_it_cannot_do():
    task = make(width=4)
    embeddings = draw_embeddings(task)
    samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
    with pytest.raises(ConfigurationError, match="small-step engine has no MLP and no step sizes; use the closed form"):
        small_step(task, embeddings, samples, StepSizes())
    with pytest.raises(ConfigurationError, match=r"form must be one of auto, table, vectors, got 'tabel' \(did you"):
        small_step(make(), embeddings, samples, StepSizes(), form="tabel")


def test_overflow_is_a_failed_run_not_a_recall_of_zero():
    task = make()
    embeddings = draw_embeddings(task)
    samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
    huge = type(embeddings)(
        embeddings.tokens * 1e200,
        embeddings.labels,
        embeddings.trigger,
        embeddings.end,
        embeddings.permutation,
        None,
    )
    for engine in (small_step, closed_form):
        with pytest.raises(RunError, match=r"failed: a (weight|number) is not finite"):
            engine(task, huge, samples, StepSizes())


@settings(max_examples=40)
@randomly(
    vocabulary=st.integers(2, 40),
    length=st.integers(1, 9),
    samples=st.integers(1, 60),
    dimension=st.integers(1, 45),
    width=st.sampled_from([None, 1, 8, 33]),
    activation=st.sampled_from(["relu", "gelu", "tanh", "he2", "h1+h3"]),
    in_value=st.booleans(),
    block=st.integers(1, 70),
    seed=st.integers(0, 2**40),
)
def test_closed_form_equals_autograd_at_any_size(
    vocabulary, length, samples, dimension, width, activation, in_value, block, seed
):
    task = make(
        vocabulary=vocabulary,
        length=length,
        samples=samples,
        dimension=dimension,
        width=width,
        activation=activation,
        trigger_in_value=in_value,
        seed=seed,
    )
    embeddings = draw_embeddings(task)
    sizes = {"first": 3.0, "attention": 20.0, "second": 2.0}
    weights = run_reference(task, embeddings, draw(task, embeddings.permutation), **sizes)
    origin = source(task, embeddings.permutation, "training", task.samples, task.seed)
    learned = closed_form(task, embeddings, origin, StepSizes(**sizes), block=block)
    assert relative(learned.readout, weights.value) < 1e-12
    key_query = sizes["attention"] * np.outer(learned.direction, embeddings.end)
    largest = float(weights.key_query.abs().max())
    assert np.abs(key_query - weights.key_query.numpy()).max() <= 1e-12 * largest + 1e-15
