"""``simulate``: recall rules, ties, failures, determinism, contrasts, and figures measured elsewhere."""

import dataclasses
import json
import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from memcap.errors import ConfigurationError, RunError
from memcap.retrieval.embeddings import draw_embeddings
from memcap.retrieval.learned import Learned, score_ranks
from memcap.retrieval.recall import evaluate, strict_margin
from memcap.retrieval.reference import ReferenceModel, three_steps
from memcap.retrieval.simulate import simulate
from memcap.retrieval.small_step import small_step
from memcap.retrieval.step_sizes import StepSizes
from memcap.retrieval.streams import draw, source
from memcap.retrieval.task import RetrievalTask, require_task
from memcap.retrieval.training import Training
from memcap.retrieval.trigger_draws import attention_over_triggers


def make(**fields):
    defaults = {"vocabulary": 33, "length": 7, "samples": 400, "dimension": 24, "seed": 5}
    return RetrievalTask(**{**defaults, **fields})


def test_recall_by_hand_from_the_reference():
    """Queries of the reference model, compared item by item with ``evaluate`` on the fast engine's state."""
    for attention in ("soft", "hard", "uniform", "oracle"):
        for in_value in (False, True):
            task = make(attention=attention, trigger_in_value=in_value)
            embeddings = draw_embeddings(task)
            samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
            learned = small_step(task, embeddings, samples, StepSizes())
            model = ReferenceModel(task, embeddings, attention=attention)
            model.value = torch.tensor(learned.readout)
            gain = 1.0 if math.isinf(learned.scale) else learned.scale / float(embeddings.end @ embeddings.end)
            model.key_query = torch.tensor(gain * np.outer(learned.direction, embeddings.end))
            test = draw(task, embeddings.permutation, "test", 0, 300)
            marked = torch.tensor(test.marked, dtype=torch.float64)
            margin, recalled = strict_margin(model.logits(torch.tensor(test.tokens), marked), torch.tensor(test.labels))
            origin = source(task, embeddings.permutation, "test", 300, task.seed)
            answers = evaluate(task, embeddings, (learned,), origin, seed=0)
            np.testing.assert_allclose(answers.margin, margin, rtol=1e-9, atol=1e-15)
            assert np.array_equal(answers.recalled, recalled)
            model.attention = "soft"
            everything = torch.arange(task.vocabulary)[:, None]
            clean = model.logits(everything, torch.zeros(everything.shape, dtype=torch.float64))
            _, good = strict_margin(clean, torch.tensor(embeddings.permutation))
            assert np.array_equal(answers.clean_recalled, good)
            if attention in ("soft", "hard"):
                scores = model.scores(torch.tensor(test.tokens), marked).numpy()
                own = scores[np.arange(300), test.position]
                scores[np.arange(300), test.position] = -np.inf
                assert np.array_equal(answers.attended, own > scores.max(axis=1))


def untrained(task, scale=0.0, readout=None):
    zeros = np.zeros(task.vocabulary)
    shape = (task.dimension, task.dimension)
    return Learned(
        readout=np.zeros(shape) if readout is None else readout,
        direction=np.zeros(task.dimension),
        token_scores=zeros,
        trigger_score=0.0,
        scale=scale,
        alpha=zeros,
        drive=0.0,
        seen=zeros > 0,
        reading="trained",
    )


@pytest.mark.parametrize("scale", [0.0, math.inf])
def test_exact_ties_are_never_recalled(scale):
    task = make()
    embeddings = draw_embeddings(task)
    test = source(task, embeddings.permutation, "test", 500, 0)
    answers = evaluate(task, embeddings, (untrained(task, scale),), test, seed=0)
    assert answers.recalled.sum() == 0
    assert answers.clean_recalled.sum() == 0
    assert answers.attended.sum() == 0
    assert (answers.margin == 0).all()
    assert answers.mass.mean() == pytest.approx(1 / task.length)


def test_an_untrained_model_with_random_readout_recalls_one_in_vocabulary():
    task = make(vocabulary=10)
    recalled, queries = 0, 0
    for seed in range(40):
        embeddings = draw_embeddings(task, seed)
        readout = np.random.default_rng(seed).standard_normal((task.dimension, task.dimension))
        test = source(task, embeddings.permutation, "test", 1, seed)
        answers = evaluate(task, embeddings, (untrained(task, 1.0, readout),), test, seed=0)
        recalled, queries = recalled + answers.clean_recalled.sum(), queries + len(answers.clean_recalled)
    assert abs(recalled / queries - 0.1) < 4 * math.sqrt(0.09 / queries)


def test_score_ranks_merge_ties_and_keep_order():
    scores = np.array([1.0, 1.0 + 1e-15, 2.0, -3.0])
    rank, marked = score_ranks(scores, 1.0)
    assert rank.tolist() == [2, 2, 3, 0]
    assert marked.tolist() == [3, 3, 4, 1]  # 1 + 1 ties with 2
    rank, marked = score_ranks(np.zeros(3), 0.0)
    assert len({*rank.tolist(), *marked.tolist()}) == 1


def test_a_second_copy_of_the_informative_token_beats_a_negative_trigger():
    task = make(vocabulary=2, length=9, dimension=6)
    embeddings = draw_embeddings(task)
    learned = dataclasses.replace(
        untrained(task, math.inf), token_scores=np.array([1.0, 0.0]), trigger_score=-0.25, readout=np.eye(6)
    )
    test = source(task, embeddings.permutation, "test", 400, 0)
    answers = evaluate(task, embeddings, (learned,), test, seed=0)
    tokens = draw(task, embeddings.permutation, "test", 0, 400, seed=0, canonical=True).tokens
    own = np.where(tokens[:, 0] == 0, 0.75, -0.25)
    best = np.where((tokens[:, 1:] == 0).any(axis=1), 1.0, 0.0)
    assert np.array_equal(answers.attended, own > best)


def test_nan_is_a_failed_run():
    run = simulate(make(), test_samples=50)
    for broken in ({"recall": math.nan}, {"margins": {"0.5": math.inf}}, {"trace": ((1, math.nan, 0.5),)}):
        with pytest.raises(RunError, match=r"failed: \S+ is not a finite number; a run with a NaN has no recall"):
            dataclasses.replace(run, **broken)


def test_the_record_is_strict_json_and_complete():
    run = simulate(make(attention="soft"), seed=3, test_samples=200)
    record = json.loads(json.dumps(run.to_dict(), allow_nan=False))
    assert record["identity"] == make(attention="soft", seed=3).identity
    assert record["task"]["seed"] == 3
    assert 0 <= record["recall_interval"][0] <= record["recall"] <= record["recall_interval"][1] <= 1
    assert set(record["versions"]) == {"memcap", "python", "numpy", "torch", "numba"}
    assert record["attention"]["nominal_drive"] == pytest.approx((1 - 1 / 7) / (49 * 33))
    assert list(record["margins"]) == ["0", "0.05", "0.25", "0.5", "0.75", "0.95", "1"]
    assert (record["engine"], record["threads"], record["steps"]) == ("small-step", 1, 3)


ENGINES = [
    {},
    {"attention": "soft", "trigger_in_value": True},
    {"width": 16},
    {"data": "population"},
    {"attention": "uniform"},
]


@pytest.mark.parametrize("fields", ENGINES, ids=str)
def test_one_record_on_one_and_eight_threads(fields):
    task = make(**fields, samples=9000)
    state = np.random.get_state()[1].copy(), torch.get_rng_state()
    one, eight = (simulate(task, test_samples=300, threads=threads) for threads in (1, 8))
    assert one.record() == eight.record()
    assert (one.threads, eight.threads) == (1, 8)
    assert np.array_equal(np.random.get_state()[1], state[0])
    assert torch.equal(torch.get_rng_state(), state[1])


def test_one_record_in_another_process_with_other_thread_settings():
    code = (
        "import json; from memcap.retrieval.simulate import simulate;"
        "from memcap.retrieval.task import RetrievalTask;"
        "from memcap.retrieval.training import Training;"
        "t = RetrievalTask(vocabulary=33, length=7, samples=400, dimension=40, seed=5, embeddings='orthogonal');"
        "print(json.dumps([simulate(t, test_samples=100).record(),"
        "simulate(t.replace(data='population', attention='soft'), test_samples=100).record(),"
        "simulate(t, test_samples=100, training=Training(optimiser='sgd', steps=5, batch=64)).record()]))"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4"}
    command = [sys.executable, "-c", code]
    there = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    task = make(dimension=40, embeddings="orthogonal")
    here = [
        simulate(task, test_samples=100),
        simulate(task.replace(data="population", attention="soft"), test_samples=100),
        simulate(task, test_samples=100, training=Training(optimiser="sgd", steps=5, batch=64)),
    ]
    assert json.loads(there) == json.loads(json.dumps([run.record() for run in here]))


def test_test_items_do_not_depend_on_how_many_are_asked():
    task = make()
    embeddings = draw_embeddings(task)
    samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
    learned = small_step(task, embeddings, samples, StepSizes())
    answers = [
        evaluate(task, embeddings, (learned,), source(task, embeddings.permutation, "test", n, 5), seed=0)
        for n in (1, 7, 64, 1000, 1500)
    ]
    for fewer in answers:
        n = len(fewer.recalled)
        assert np.array_equal(fewer.recalled, answers[-1].recalled[:n])
        np.testing.assert_allclose(fewer.margin, answers[-1].margin[:n], rtol=1e-9, atol=1e-16)


def test_seen_and_unseen_tokens_are_reported_apart():
    run = simulate(make(vocabulary=64, samples=40, dimension=60, attention="oracle"))
    assert 0 < run.seen_tokens < 40
    assert run.recall_seen > 0.9
    assert run.recall_unseen < 0.2
    share = run.recall_seen * run.seen_tokens / 64
    assert run.recall == pytest.approx(share, abs=0.05)
    assert simulate(make(samples=20_000), test_samples=100).recall_unseen is None


def test_one_two_and_three_steps():
    task = make(samples=5000, dimension=40)
    first, second, third = (simulate(task, steps=steps) for steps in (1, 2, 3))
    alone = simulate(task.replace(attention="uniform"))
    assert first.recall == alone.recall
    assert first.attention_success == 0
    assert first.attention_mass == pytest.approx(1 / 7)
    assert first.clean_recall == second.clean_recall  # the same read-out, asked without a trigger
    assert second.recall > first.recall
    assert third.recall >= second.recall
    assert first.attention == {}
    assert third.attention["snr"] > 0


def test_length_one_needs_no_attention():
    for attention in ("hard", "soft", "uniform", "oracle"):
        run = simulate(make(length=1, attention=attention, samples=3000, dimension=60), test_samples=500)
        assert (run.attention_success, run.attention_mass) == (1.0, 1.0)
        assert run.recall > 0.95


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 4}, "steps must be an integer in [1, 3], got 4"),
        ({"test_samples": 0}, "test_samples must be an integer in [1, "),
        ({"threads": 0}, "threads must be an integer in [1, 1024], got 0"),
        ({"engine": "smallstep"}, "got 'smallstep' (did you mean 'small-step'?)"),
        ({"engine": "population"}, "engine 'population' does not fit data='empirical'"),
        ({"engine": "multinomial"}, "the multinomial engine knows the first step"),
        ({"engine": "small-step", "step_sizes": StepSizes(first=1.0)}, "no MLP and no step sizes"),
        ({"engine": "small-step", "training": Training()}, "training takes its own steps"),
        ({"step_sizes": StepSizes(sharpness=2.0)}, "or sharpness needs attention='soft', got attention='hard'"),
        ({"step_sizes": StepSizes(first=1.0, attention=1.0)}, "an attention step size or sharpness needs attention="),
        ({"seed": -1}, "seed must be an integer in [0, "),
    ],
)
def test_wrong_calls(options, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        simulate(make(), **options)


def test_simulate_takes_a_task():
    with pytest.raises(ConfigurationError, match="simulate takes a RetrievalTask, got dict"):
        require_task({}, "simulate")


def test_finite_steps_go_through_the_closed_form_and_match_the_reference():
    task = make(attention="soft", width=12, activation="gelu")
    sizes = {"first": 50.0, "attention": 300.0, "second": 9.0}
    run = simulate(task, step_sizes=StepSizes(**sizes), test_samples=400)
    embeddings = draw_embeddings(task)
    model = ReferenceModel(task, embeddings, attention="soft")
    three_steps(model, draw(task, embeddings.permutation), **sizes)
    test = draw(task, embeddings.permutation, "test", 0, 400)
    logits = model.logits(torch.tensor(test.tokens), torch.tensor(test.marked, dtype=torch.float64))
    _, recalled = strict_margin(logits, torch.tensor(test.labels))
    assert run.recall == float(recalled.double().mean())
    assert run.engine == "closed-form"
    assert run.largest_first_logit > 0.01


MEASURED = [  # task, recall over seeds, tolerance: figures of an independent prototype
    ({"vocabulary": 128, "dimension": 56, "length": 16, "samples": 4000}, 0.788, 0.03),
    ({"vocabulary": 256, "dimension": 64, "length": 32, "samples": 20_000}, 0.64, 0.03),
    ({"vocabulary": 256, "dimension": 136, "length": 16, "samples": 8000}, 0.991, 0.006),
    ({"vocabulary": 256, "dimension": 64, "length": 32, "samples": 20_000, "trigger_in_value": True}, 0.215, 0.06),
]


@pytest.mark.parametrize(("fields", "expected", "tolerance"), MEASURED, ids=str)
def test_recall_measured_elsewhere(fields, expected, tolerance):
    recalls = [simulate(RetrievalTask(**fields), seed=seed, test_samples=4000).recall for seed in range(6)]
    assert np.mean(recalls) == pytest.approx(expected, abs=tolerance)


def test_sharpness_follows_the_measured_curve():
    task = RetrievalTask(vocabulary=128, dimension=56, length=16, samples=4000, attention="soft")
    recalls = {
        kappa: np.mean(
            [simulate(task, seed=s, step_sizes=StepSizes(sharpness=kappa), test_samples=3000).recall for s in range(4)]
        )
        for kappa in (0.5, 1, 2, 4)
    }
    assert recalls[0.5] == pytest.approx(0.345, abs=0.08)
    assert recalls[1] == pytest.approx(0.655, abs=0.07)
    assert recalls[2] == pytest.approx(0.78, abs=0.05)
    assert recalls[4] == pytest.approx(0.80, abs=0.04)


def test_orthogonal_first_step_equals_the_closed_form_known_exactly():
    """Counts alone decide: recall = E[F(j-1)^(V-1)], strictly, at (V, L, N) = (64, 16, 256): 0.476."""
    task = RetrievalTask(
        vocabulary=64, length=16, samples=256, dimension=65, embeddings="orthogonal", attention="uniform"
    )
    recalls = [simulate(task, seed=seed, test_samples=1).clean_recall for seed in range(60)]
    error = np.std(recalls) / math.sqrt(len(recalls))
    assert np.mean(recalls) == pytest.approx(0.476, abs=4 * error)
    assert error < 0.012


def test_attention_over_triggers():
    task = make(length=20, samples=200, dimension=10)
    success = attention_over_triggers(task, triggers=12, test_samples=400)
    assert success[0] == simulate(task, test_samples=400).attention_success
    assert len(set(success.tolist())) > 3
    assert (attention_over_triggers(task.replace(length=1), triggers=2) == 1).all()
    with pytest.raises(ConfigurationError, match="needs learned attention, empirical data, no MLP and no trigger in"):
        attention_over_triggers(task.replace(attention="oracle"))


def test_a_large_first_step_helps_and_then_destroys():
    task = RetrievalTask(vocabulary=128, dimension=56, length=16, samples=4000)
    recalls = {
        eta: np.mean(
            [simulate(task, seed=s, step_sizes=StepSizes(first=eta), test_samples=2000).recall for s in (0, 1)]
        )
        for eta in (3e3, 1e5)
    }
    assert recalls[3e3] == pytest.approx(0.869, abs=0.04)
    assert recalls[1e5] == pytest.approx(0.14, abs=0.05)
