"""Continued training: the same model as the reference, optimisers, stopping, heads, learned embeddings."""

import numpy as np
import pytest
import torch

from memcap.errors import RunError
from memcap.retrieval.embeddings import draw_embeddings
from memcap.retrieval.reference import ReferenceModel
from memcap.retrieval.simulate import simulate
from memcap.retrieval.streams import draw, source
from memcap.retrieval.task import RetrievalTask
from memcap.retrieval.training import TrainableModel, Training, batch_rows, train


def make(**fields):
    defaults = {"vocabulary": 24, "length": 6, "samples": 300, "dimension": 12, "seed": 4, "attention": "soft"}
    return RetrievalTask(**{**defaults, **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"width": 10, "activation": "tanh"},
        {"trigger_in_value": True},
        {"attention": "oracle"},
        {"attention": "uniform"},
    ],
    ids=str,
)
def test_gradient_descent_equals_plain_autograd_on_the_reference(fields):
    task = make(**fields)
    embeddings = draw_embeddings(task)
    samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
    trained = train(task, embeddings, samples, Training(steps=4, learning_rate=20.0))
    model = ReferenceModel(task, embeddings, attention=task.attention)
    sequences = draw(task, embeddings.permutation)
    tokens, labels = torch.tensor(sequences.tokens), torch.tensor(sequences.labels)
    marked = torch.tensor(sequences.marked, dtype=torch.float64)
    losses = []
    for _ in range(4):
        value, key_query = (w.detach().requires_grad_() for w in (model.value, model.key_query))
        model.value, model.key_query = value, key_query
        loss = torch.nn.functional.cross_entropy(model.logits(tokens, marked), labels)
        gradients = torch.autograd.grad(loss, (value, key_query), allow_unused=True)
        losses.append(float(loss.detach()))
        model.value = value.detach() - 20.0 * gradients[0]
        if gradients[1] is not None:
            model.key_query = key_query.detach() - 20.0 * gradients[1]
    (head,) = trained.heads
    np.testing.assert_allclose(head.readout, model.value, rtol=1e-10, atol=1e-14)
    direction = model.key_query.detach() @ torch.tensor(embeddings.end)
    np.testing.assert_allclose(head.direction, direction, rtol=1e-9, atol=1e-14)
    assert [update for update, _, _ in trained.trace] == [0, 1, 2, 3]
    np.testing.assert_allclose([loss for _, loss, _ in trained.trace], losses, rtol=1e-12)
    assert trained.trace[0][1] == pytest.approx(np.log(24), rel=1e-12)


def test_two_heads_add_up():
    task = make(trigger_in_value=True)
    embeddings = draw_embeddings(task)
    model = TrainableModel(task, embeddings, Training(heads=2, optimiser="adam"), "cpu")
    assert not torch.equal(model.key_query[0], model.key_query[1])
    with torch.no_grad():
        model.value.normal_(generator=torch.Generator().manual_seed(0))
    sequences = draw(task, embeddings.permutation, canonical=True)
    tokens = torch.tensor(sequences.tokens)
    total = 0
    for head in range(2):
        reference = ReferenceModel(task, embeddings)
        reference.value, reference.key_query = model.value[head].detach(), model.key_query[head].detach()
        total = total + reference.logits(tokens, torch.tensor(sequences.marked, dtype=torch.float64))
    torch.testing.assert_close(model.logits(tokens).detach(), total)


def test_training_goes_far_beyond_the_early_phase():
    task = RetrievalTask(vocabulary=64, dimension=24, length=16, samples=2000)
    early = simulate(task)
    late = simulate(task, training=Training(steps=150))
    assert early.recall < 0.6
    assert late.recall > 0.95
    assert late.engine == "training"
    assert late.trace[-1][1] < 0.2 < 4 < late.trace[0][1]
    assert late.settings["learning_rate"] == 100.0


def test_learned_embeddings_recall_where_frozen_ones_have_no_room():
    task = RetrievalTask(vocabulary=32, dimension=5, length=4, samples=600)
    frozen, learned = (
        simulate(task, training=Training(optimiser="adam", steps=150, learned_embeddings=flag), test_samples=1000)
        for flag in (False, True)
    )
    assert frozen.recall < 0.5
    assert learned.recall > 0.95


def test_stopping_rule_and_heads_with_stochastic_batches():
    task = RetrievalTask(vocabulary=16, dimension=12, length=4, samples=500)
    training = Training(optimiser="sgd", batch=100, steps=400, heads=2, until_loss=0.3, learning_rate=20.0)
    run = simulate(task, training=training, test_samples=500)
    assert run.steps < 400
    assert run.trace[-1][1] <= 0.3
    assert run.trace[-1][0] == run.steps
    assert run.recall > 0.9


def test_batches_are_epochs_without_replacement():
    rows = [batch_rows(3, 10, 3, update) for update in range(6)]
    first, second = np.concatenate(rows[:3]), np.concatenate(rows[3:])
    assert len(set(first.tolist())) == len(set(second.tolist())) == 9
    assert first.tolist() != second.tolist()
    assert batch_rows(3, 10, 10, 0) is None


def test_a_diverging_loss_is_a_failed_run():
    task = make()
    training = Training(learned_embeddings=True, learning_rate=1e6, steps=50)
    with pytest.raises(RunError, match="failed: the loss is (nan|inf) at update [0-9]+; is the learning rate too"):
        simulate(task, training=training)
