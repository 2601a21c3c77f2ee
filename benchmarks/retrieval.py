"""Three gradient steps at V = 512, L = 64, d = 128: autograd, exact closed form and small-step engine, one thread each.

Ratios are paired (engines take turns, medians) and memory is the process's own peak as each engine first runs, in the
order of their appetite.  Refuses to report when results differ.
"""

from __future__ import annotations

import resource
import statistics
import time

import numpy as np
import torch

import memcap
from memcap.retrieval.closed_form import closed_form
from memcap.retrieval.embeddings import draw_embeddings
from memcap.retrieval.ordered import one_torch_thread
from memcap.retrieval.reference import ReferenceModel, three_steps
from memcap.retrieval.small_step import chosen_form, small_step
from memcap.retrieval.streams import draw, source

SAMPLES, MANY, ROUNDS = 20_000, 1_000_000, 5
ETA = 1e-3  # small enough for the limit to show, large enough for 1/V - p to keep its digits
SIZES = memcap.StepSizes(first=ETA, attention=1.0, second=1.0)


def peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def timed(function):
    began = time.perf_counter()
    result = function()
    return result, time.perf_counter() - began


def difference(a, b) -> float:
    return float(np.abs(np.asarray(a) - np.asarray(b)).max() / np.abs(np.asarray(b)).max())


def engines(samples: int) -> None:
    task = memcap.RetrievalTask(vocabulary=512, length=64, samples=samples, dimension=128)
    embeddings = draw_embeddings(task)
    origin = source(task, embeddings.permutation, "training", samples, task.seed)
    warm = source(task, embeddings.permutation, "training", 10, task.seed)  # load compiled code outside the timing
    small_step(task, embeddings, warm, memcap.StepSizes())
    closed_form(task, embeddings, warm, SIZES)
    base = peak_gib()
    small, _ = timed(lambda: small_step(task, embeddings, origin, memcap.StepSizes()))
    small_peak = peak_gib()
    exact, _ = timed(lambda: closed_form(task, embeddings, origin, SIZES))
    exact_peak = peak_gib()
    gradient = exact.readout - closed_form(task, embeddings, origin, SIZES, steps=1).readout
    times = {"small-step": [], "closed form": [], "autograd": []}
    for _ in range(ROUNDS):
        times["small-step"].append(timed(lambda: small_step(task, embeddings, origin, memcap.StepSizes()))[1])
        times["closed form"].append(timed(lambda: closed_form(task, embeddings, origin, SIZES))[1])

    def autograd():
        with one_torch_thread():
            model = ReferenceModel(task, embeddings, attention="hard")
            return three_steps(model, draw(task, embeddings.permutation), first=ETA, attention=1.0, second=1.0)

    weights, seconds = timed(autograd)
    times["autograd"].append(seconds)
    autograd_peak = peak_gib()
    second_gradient = torch.as_tensor(weights.value - weights.value_first)
    exact_error = difference(exact.readout, weights.value)
    small_error = difference(small.readout, second_gradient)
    if exact_error > 1e-10 or small_error > 1e-3 or difference(gradient, second_gradient) > 1e-10:
        raise SystemExit(f"refusing to report: results differ by {exact_error:.1e} (exact), {small_error:.1e} (limit)")
    middle = {name: statistics.median(values) for name, values in times.items()}
    print(f"V = 512, L = 64, d = 128, N = {samples:,}, hard attention, float64, one thread; form {chosen_form(task)}")
    print(f"interpreter and libraries {base:.2f} GiB")
    for name, peak in (("autograd", autograd_peak), ("closed form", exact_peak), ("small-step", small_peak)):
        ratio = middle["autograd"] / middle[name]
        print(f"  {name:12} {middle[name]:8.3f} s   {ratio:7.1f} x   peak {peak:.2f} GiB")
    print(f"  largest relative difference: closed form {exact_error:.1e}; small-step, η = {ETA:g}: {small_error:.1e}")


def many(samples: int) -> None:
    task = memcap.RetrievalTask(vocabulary=512, length=64, samples=samples, dimension=128)
    memcap.simulate(task.replace(samples=10))  # load compiled code outside the timing
    before = peak_gib()
    for threads in (1, 2):
        computing = time.process_time()
        run, seconds = timed(lambda: memcap.simulate(task, threads=threads))  # noqa: B023
        computing = time.process_time() - computing
        print(
            f"N = {samples:,}, {threads} thread(s): {seconds:.2f} s in all ({computing:.2f} s of computing), "
            f"recall {run.recall:.4f}, peak {peak_gib():.2f} GiB of which {before:.2f} were there before"
        )


def main() -> None:
    many(MANY)
    engines(SAMPLES)
