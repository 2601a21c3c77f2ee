"""Large and special runs: 10⁸ samples in flat memory, large vocabularies without tables, a CUDA device."""

import itertools
import threading

import numpy as np
import pytest
import torch

from memcap.retrieval.closed_form import closed_form
from memcap.retrieval.embeddings import draw_embeddings
from memcap.retrieval.reference import ReferenceModel, three_steps
from memcap.retrieval.simulate import simulate
from memcap.retrieval.small_step import block_ranges, chosen_form, small_step
from memcap.retrieval.step_sizes import StepSizes
from memcap.retrieval.streams import draw, source
from memcap.retrieval.task import RetrievalTask
from memcap.retrieval.training import Training

SIZES = {"first": 30.0, "attention": 400.0, "second": 7.0}


def test_form_is_chosen_by_cost_and_memory():
    def form(**fields):
        defaults = {"vocabulary": 512, "length": 64, "samples": 20_000, "dimension": 128}
        return chosen_form(RetrievalTask(**{**defaults, **fields}))

    assert form() == "table"
    assert form(samples=1_000_000) == "table"
    assert form(vocabulary=4096, samples=3000, dimension=16, length=16) == "vectors"
    assert form(vocabulary=100_000, samples=10**8) == "vectors"  # a table would take 80 GB


def test_blocks_are_fixed_by_the_number_of_samples():
    for count in (1, 4096, 4097, 10**6, 10**8):
        ranges = block_ranges(count)
        assert len(ranges) <= 32
        assert ranges[0][0] == 0
        assert ranges[-1][1] == count
        assert all(a[1] == b[0] for a, b in itertools.pairwise(ranges))


def peak_megabytes(work):
    """Result of ``work`` and how far resident memory rose while it ran, sampled."""

    def resident():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

    before, highest, done = resident(), [0.0], threading.Event()

    def watch():
        while not done.wait(0.01):
            highest[0] = max(highest[0], resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        result = work()
    finally:
        done.set()
        watcher.join()
    return result, highest[0] - before


@pytest.mark.slow
def test_a_hundred_million_samples_in_flat_memory():
    task = RetrievalTask(vocabulary=64, length=4, samples=10**8, dimension=32)
    simulate(task.replace(samples=1000), test_samples=100)
    run, rise = peak_megabytes(lambda: simulate(task, threads=2))
    assert rise < 64  # a byte a token would be 400
    limit = simulate(task.replace(data="population"))
    assert run.recall == pytest.approx(limit.recall, abs=0.02)
    assert run.attention["drive"] == pytest.approx(limit.attention["drive"], rel=1e-3)


def test_a_large_vocabulary_never_makes_a_table():
    task = RetrievalTask(vocabulary=12_000, length=4, samples=20_000, dimension=8)
    run, rise = peak_megabytes(lambda: simulate(task, test_samples=200))
    assert run.engine == "small-step"
    assert rise < 500  # a table of int64 would be 1,152
    assert 0 <= run.recall <= 0.1


CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.gpu
@CUDA
@pytest.mark.parametrize("fields", [{}, {"width": 20, "activation": "gelu"}, {"attention": "hard"}], ids=str)
def test_closed_form_on_cuda_equals_the_reference_on_cpu(fields):
    task = RetrievalTask(
        **{"vocabulary": 33, "length": 7, "samples": 501, "dimension": 12, "attention": "soft", **fields}
    )
    embeddings = draw_embeddings(task)
    weights = three_steps(
        ReferenceModel(task, embeddings, attention=task.attention), draw(task, embeddings.permutation), **SIZES
    )
    samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
    learned = closed_form(task, embeddings, samples, StepSizes(**SIZES), device="cuda")
    expected = weights.value.numpy()
    assert np.abs(learned.readout - expected).max() < 1e-11 * np.abs(expected).max()


@pytest.mark.gpu
@CUDA
def test_data_recall_and_training_agree_between_cuda_and_cpu():
    task = RetrievalTask(vocabulary=64, length=8, samples=1000, dimension=24, width=32)
    here, there = (simulate(task, device=device, test_samples=1000) for device in ("cpu", "cuda"))
    assert here.data_hash == there.data_hash
    assert here.recall == pytest.approx(there.recall, abs=2e-3)
    training = Training(steps=20)
    here, there = (simulate(task, training=training, device=device, test_samples=500) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(np.array(here.trace), np.array(there.trace), rtol=1e-6)


def test_an_unknown_device_is_one_clear_message():
    from memcap.errors import ConfigurationError

    task = RetrievalTask(vocabulary=8, length=2, samples=10, dimension=4, width=3)
    with pytest.raises(ConfigurationError, match="device must be one that torch can use here, got 'cdua'"):
        simulate(task, device="cdua")


def test_reference_stays_the_definition_of_the_engine():
    """The small-step engine against autograd itself, at a small step: same direction to first order in η."""
    task = RetrievalTask(vocabulary=33, length=7, samples=300, dimension=12)
    embeddings = draw_embeddings(task)
    samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
    learned = small_step(task, embeddings, samples, StepSizes())
    model = ReferenceModel(task, embeddings, attention="hard")
    weights = three_steps(model, draw(task, embeddings.permutation), first=1e-4, attention=1.0, second=1.0)
    gradient = (weights.value - weights.value_first).numpy()
    assert np.abs(gradient - learned.readout).max() < 1e-5 * np.abs(learned.readout).max()
