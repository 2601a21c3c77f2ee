"""Several facts a sequence: streams, autograd = closed form, queries one by one, training, and what refuses."""

import dataclasses
import json

import numpy as np
import pytest
import torch

from memcap.errors import ConfigurationError, DataError
from memcap.retrieval.closed_form import closed_form, closed_forms
from memcap.retrieval.decoders import decode
from memcap.retrieval.embeddings import draw_embeddings
from memcap.retrieval.lower_bound import recall_bound
from memcap.retrieval.prediction import predict
from memcap.retrieval.recall import evaluate, joined, strict_margin
from memcap.retrieval.reference import ReferenceModel, three_steps
from memcap.retrieval.simulate import simulate
from memcap.retrieval.small_step import small_step
from memcap.retrieval.step_sizes import StepSizes, nominal_drive
from memcap.retrieval.streams import Sequences, check_answers, draw, given, source
from memcap.retrieval.task import RetrievalTask
from memcap.retrieval.token_kernels import materialise
from memcap.retrieval.training import Training, train
from memcap.retrieval.trigger_draws import attention_over_triggers

SIZES = {"first": 30.0, "attention": 400.0, "second": 7.0}


def make(**fields):
    defaults = {"vocabulary": 33, "length": 7, "samples": 101, "dimension": 12, "seed": 3, "facts": 3}
    return RetrievalTask(**{"attention": "soft", **defaults, **fields})


def training_source(task, embeddings):
    return source(task, embeddings.permutation, "training", task.samples, task.seed)


def relative(a, b):
    return float(np.abs(np.asarray(a) - np.asarray(b)).max() / max(np.abs(np.asarray(b)).max(), 1e-300))


def key_query(states, embeddings):
    """W_KQ in units of its step, from what the queries see of it: W_KQ z_EOS,k = |z_EOS,k|² direction_k."""
    ends = np.vstack([embeddings.end, *embeddings.other_ends])
    seen = np.stack([state.direction * (end @ end) for state, end in zip(states, ends, strict=True)])
    return seen.T @ np.linalg.pinv(ends.T)


@pytest.mark.parametrize(
    "fields", [{}, {"facts": 7}, {"facts": 2, "vocabulary": 2, "length": 2}, {"facts": 5}], ids=str
)
def test_every_row_and_fact_has_exactly_one_right_answer(fields):
    task = make(**fields, samples=300)
    permutation = draw_embeddings(task).permutation
    for purpose in ("training", "test"):
        sequences = draw(task, permutation, purpose)
        assert sequences.position.shape == sequences.labels.shape == (300, task.facts)
        assert sequences.marked.shape == (300, task.facts, task.length)
        assert np.array_equal(check_answers(sequences, permutation), sequences.labels)
        assert all(len(set(row)) == task.facts for row in sequences.position.tolist())
        one = draw(task.replace(facts=1), permutation, purpose, canonical=True)
        assert np.array_equal(draw(task, permutation, purpose, canonical=True).tokens, one.tokens)


def test_positions_of_facts_are_uniform():
    task = make(samples=20_000, length=5, facts=2)
    position = draw(task, draw_embeddings(task).permutation).position
    counts = np.zeros((5, 5))
    np.add.at(counts, (position[:, 0], position[:, 1]), 1)
    off = counts[~np.eye(5, dtype=bool)]
    assert off.sum() == 20_000
    assert ((off - 1000) ** 2 / 1000).sum() < 50  # 20 pairs, chi-squared with 19 degrees of freedom


@pytest.mark.parametrize("fields", [{}, {"label_noise": 0.4, "frequencies": "zipf"}, {"facts": 7}], ids=str)
def test_a_source_looks_at_one_fact_as_plain_numpy_does(fields):
    task = make(**fields)
    embeddings = draw_embeddings(task)
    sequences = draw(task, embeddings.permutation, canonical=True)
    moved = draw(task, embeddings.permutation)
    assert np.array_equal(moved.labels, sequences.labels)
    for fact in range(task.facts):
        streamed = dataclasses.replace(training_source(task, embeddings), fact=fact)
        tokens, labels = materialise(streamed, 0, task.samples)
        expected = sequences.tokens.copy()
        expected[:, [0, fact]] = expected[:, [fact, 0]]
        assert np.array_equal(tokens, expected)
        assert np.array_equal(labels, sequences.labels[:, fact])
        handed = dataclasses.replace(given(moved, embeddings.permutation), fact=fact)
        again, same = materialise(handed, 0, task.samples)
        assert np.array_equal(again[:, : task.facts], tokens[:, : task.facts])
        assert np.array_equal(np.sort(again, axis=1), np.sort(tokens, axis=1))
        assert np.array_equal(same, labels)
    if task.label_noise:
        wrong = sequences.labels != embeddings.permutation[sequences.tokens[:, : task.facts]]
        assert 0.2 < wrong.mean() < 0.6
        assert not np.array_equal(wrong[:, 0], wrong[:, 1])  # every fact has a coin of its own


def test_the_checker_finds_broken_rows():
    permutation = np.array([2, 0, 1])
    tokens = np.array([[0, 1, 2]])
    assert check_answers(Sequences(tokens, np.array([[0, 2]]), np.array([[2, 1]])), permutation).tolist() == [[2, 1]]
    with pytest.raises(DataError, match="row 0, fact 1: expected exactly one marked token, got 0"):
        check_answers(Sequences(tokens, np.array([[0, 9]]), np.array([[2, 1]])), permutation)
    with pytest.raises(DataError, match="row 0: position 2 carries the triggers of several facts"):
        check_answers(Sequences(tokens, np.array([[2, 2]]), np.array([[1, 1]])), permutation)


CASES = [
    {},
    {"facts": 1},
    {"facts": 7},
    {"length": 2, "facts": 2},
    {"vocabulary": 2, "facts": 2},
    {"dimension": 50},
    {"trigger_in_value": True},
    {"attention": "hard", "trigger_in_value": True},
    {"attention": "oracle"},
    {"attention": "uniform", "trigger_in_value": True},
    {"embeddings": "orthogonal", "dimension": 36, "label_noise": 0.3},
    {"embeddings": "sphere", "frequencies": "zipf", "width": 20, "activation": "tanh"},
    {"width": 70, "activation": "relu", "trigger_in_value": True, "dimension": 40},
]


@pytest.mark.parametrize("fields", CASES, ids=str)
def test_closed_form_equals_autograd(fields):
    task = make(**fields)
    embeddings = draw_embeddings(task)
    model = ReferenceModel(task, embeddings, attention=task.attention)
    weights = three_steps(model, draw(task, embeddings.permutation), **SIZES)
    samples = training_source(task, embeddings)
    for block in (1024, 16):
        first = closed_forms(task, embeddings, samples, StepSizes(**SIZES), steps=1, block=block)
        final = closed_forms(task, embeddings, samples, StepSizes(**SIZES), block=block)
        assert len(final) == task.facts
        assert relative(first[0].readout, weights.value_first) < 1e-12
        if task.attention == "uniform":
            continue
        assert all(relative(state.readout, weights.value) < 1e-12 for state in final)
        if task.attention != "oracle":
            assert relative(SIZES["attention"] * key_query(final, embeddings), weights.key_query) < 1e-12
            assert np.linalg.matrix_rank(weights.key_query.numpy()) == min(task.facts, task.dimension)


@pytest.mark.parametrize("attention", ["soft", "hard", "uniform", "oracle"])
@pytest.mark.parametrize("in_value", [False, True])
def test_recall_equals_the_reference_model_query_by_query(attention, in_value):
    task = make(attention=attention, trigger_in_value=in_value, samples=800)
    embeddings = draw_embeddings(task)
    sizes = StepSizes(**SIZES) if attention == "soft" else StepSizes()
    states = closed_forms(task, embeddings, training_source(task, embeddings), sizes)
    model = ReferenceModel(task, embeddings, attention=attention)
    model.value = torch.tensor(states[0].readout)
    step = SIZES["attention"] if attention == "soft" else 1.0
    model.key_query = torch.tensor(step * key_query(states, embeddings))
    test = draw(task, embeddings.permutation, "test", 0, 200)
    marked = torch.tensor(test.marked, dtype=torch.float64)
    logits = model.logits(torch.tensor(test.tokens), marked)
    scores = model.scores(torch.tensor(test.tokens), marked)
    origin = source(task, embeddings.permutation, "test", 200, task.seed)
    found = []
    for k, state in enumerate(states):
        at = dataclasses.replace(origin, fact=k)
        answers = evaluate(task, embeddings.for_fact(k), (state,), at, seed=0)
        margin, recalled = strict_margin(logits[:, k], torch.tensor(test.labels[:, k]))
        np.testing.assert_allclose(answers.margin, margin, rtol=1e-9, atol=1e-13)
        assert np.array_equal(answers.recalled, recalled)
        if attention in ("soft", "hard"):
            own = scores[:, k].gather(1, torch.tensor(test.position[:, k : k + 1]))
            others = scores[:, k].scatter(1, torch.tensor(test.position[:, k : k + 1]), -np.inf)
            assert np.array_equal(answers.attended, (own[:, 0] > others.amax(dim=1)).numpy())
        found.append(answers)
    both = joined(found)
    assert len(both.recalled) == 600
    assert both.recalled.mean() == pytest.approx(np.mean([a.recalled.mean() for a in found]))
    assert np.array_equal(both.clean_recalled, found[1].clean_recalled)


def test_permuting_positions_changes_nothing():
    task = make()
    embeddings = draw_embeddings(task)
    sequences = draw(task, embeddings.permutation)
    order = np.random.default_rng(0).permuted(np.tile(np.arange(7), (101, 1)), axis=1)
    moved = Sequences(
        np.take_along_axis(sequences.tokens, order, axis=1),
        np.stack([(order == sequences.position[:, k : k + 1]).argmax(axis=1) for k in range(3)], axis=1),
        sequences.labels,
    )
    assert np.array_equal(check_answers(moved, embeddings.permutation), sequences.labels)
    one, two = (
        closed_forms(task, embeddings, given(data, embeddings.permutation), StepSizes(**SIZES))
        for data in (sequences, moved)
    )
    for a, b in zip(one, two, strict=True):
        assert relative(a.readout, b.readout) < 1e-12
        assert relative(a.direction, b.direction) < 1e-11


def test_gradient_descent_equals_plain_autograd_on_the_reference():
    task = make(trigger_in_value=True, width=10, activation="tanh")
    embeddings = draw_embeddings(task)
    trained = train(task, embeddings, training_source(task, embeddings), Training(steps=4, learning_rate=20.0))
    model = ReferenceModel(task, embeddings)
    sequences = draw(task, embeddings.permutation)
    tokens, labels = torch.tensor(sequences.tokens), torch.tensor(sequences.labels)
    marked = torch.tensor(sequences.marked, dtype=torch.float64)
    for _ in range(4):
        value, query = (w.detach().requires_grad_() for w in (model.value, model.key_query))
        model.value, model.key_query = value, query
        loss = torch.nn.functional.cross_entropy(model.logits(tokens, marked).flatten(end_dim=1), labels.flatten())
        gradients = torch.autograd.grad(loss, (value, query))
        model.value, model.key_query = value.detach() - 20 * gradients[0], query.detach() - 20 * gradients[1]
    for k, (head,) in enumerate(trained.states):
        np.testing.assert_allclose(head.readout, model.value, rtol=1e-10, atol=1e-14)
        end = torch.tensor(embeddings.for_fact(k).end)
        np.testing.assert_allclose(head.direction, model.key_query @ end, rtol=1e-9, atol=1e-14)
        assert len(head.trigger_scores) == 3
    assert trained.trace[0][1] == pytest.approx(np.log(33), rel=1e-12)


def test_training_learns_every_query():
    task = make(vocabulary=24, dimension=24, samples=600, length=6, facts=2)
    early = simulate(task, test_samples=400)
    late = simulate(task, test_samples=400, training=Training(optimiser="adam", steps=250))
    assert late.recall > 0.95 > early.recall
    assert late.attention_success > 0.95
    assert late.seen_tokens == 24


def test_with_perfect_attention_facts_count_like_samples():
    one = make(facts=1, attention="oracle", vocabulary=64, dimension=24, samples=600, length=8)
    several = one.replace(facts=4, samples=150)
    recalls = [[simulate(t, seed=s, test_samples=500).recall for s in range(8)] for t in (one, several)]
    assert abs(np.mean(recalls[0]) - np.mean(recalls[1])) < 4 * np.hypot(*np.std(recalls, axis=1)) / np.sqrt(8)
    assert 0.2 < np.mean(recalls[0]) < 0.95


def test_one_record_on_any_number_of_threads_and_strict_json():
    task = make(samples=3000)
    one, eight = (simulate(task, test_samples=200, threads=threads) for threads in (1, 8))
    assert one.record() == eight.record()
    assert one.engine == "closed-form"
    record = json.loads(json.dumps(one.to_dict(), allow_nan=False))
    assert record["task"]["facts"] == 3
    assert record["test_samples"] == 200
    assert one.attention["nominal_drive"] == pytest.approx(nominal_drive(task.replace(facts=1)) / 3)


def test_embeddings_of_facts():
    task = make(embeddings="orthogonal", dimension=36)
    e = draw_embeddings(task)
    frame = np.vstack([e.tokens, e.trigger, e.other_triggers])
    np.testing.assert_allclose(frame @ frame.T, np.eye(36), atol=1e-12)
    alone = draw_embeddings(make(facts=1))
    several = draw_embeddings(make())
    for name in ("tokens", "labels", "trigger", "end", "permutation"):
        assert np.array_equal(getattr(alone, name), getattr(several, name))
    other = several.for_fact(2)
    assert np.array_equal(other.trigger, several.other_triggers[1])
    assert np.array_equal(other.other_ends[1], several.end)
    assert np.array_equal(several.other_ends[0], other.other_ends[0])


def test_one_fact_keeps_its_name():
    task = RetrievalTask(vocabulary=64, length=16, samples=2_000, dimension=24)
    assert task.identity.startswith("6ee93ebe")
    assert task.replace(facts=2).identity != task.identity


REFUSED = [
    (lambda: make(facts=8), "facts must be <= length = 7, got 8"),
    (lambda: make(facts=0), "facts must be an integer in [1, 65536], got 0"),
    (
        lambda: make(embeddings="orthogonal", dimension=35),
        "dimension >= vocabulary + facts = 36 (every trigger needs a direction of its own), got dimension = 35",
    ),
    (lambda: simulate(make(), engine="small-step"), "the small-step engine is for one fact a sequence, got 3"),
    (
        lambda: simulate(make(attention="uniform"), engine="multinomial"),
        "multinomial engine is for one fact a sequence",
    ),
    (lambda: simulate(make(data="population")), "population gradients are for one fact a sequence, got 3"),
    (lambda: attention_over_triggers(make()), "the small-step engine is for one fact a sequence, got 3"),
    (lambda: predict(make(attention="hard")), "the theory does not cover several facts a sequence"),
    (lambda: recall_bound(make()), "the bound is derived for attention only, uniform frequencies, one fact a sequence"),
    (lambda: decode(make()), "decoders need length >= 2, attention only, empirical data, one fact a sequence"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_refuses_several_facts_says_so(call, message):
    with pytest.raises(ConfigurationError) as error:
        call()
    assert message in str(error.value)


def test_one_state_or_several():
    task = make()
    e = draw_embeddings(task)
    with pytest.raises(ConfigurationError, match="closed_form is for one fact a sequence, got 3; use closed_forms"):
        closed_form(task, e, training_source(task, e), StepSizes())
    with pytest.raises(ConfigurationError, match="use closed-form"):
        small_step(task, e, training_source(task, e), StepSizes())
