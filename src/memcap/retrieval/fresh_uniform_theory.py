"""Fresh sequences under uniform attention: nothing marks the informative token, so recall is about 1/L at best."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from memcap.retrieval import quadrature
from memcap.retrieval.orthogonal_law import fresh_uniform_recall
from memcap.retrieval.task import RetrievalTask


def fresh_recall_uniform(task: RetrievalTask) -> float:
    """Expected recall of fresh sequences after one gradient step, trigger ignored.

    All L positions are exchangeable, so recall is the chance that some token of the sequence wins, divided by L (times
    how often the winner occurs).  The race between present and absent labels is Gaussian here.

    Source: derived here: docs/theory/retrieval.md, "The first step alone".
    """
    if task.embeddings == "orthogonal" and task.data == "empirical":
        counts = quadrature.label_count(task.samples, task.vocabulary, 15)
        discrete = fresh_uniform_recall(counts, task.vocabulary, task.length)
        if not math.isnan(discrete):
            return discrete
    v, ell, d, keep = task.vocabulary, task.length, task.dimension, 1.0 - task.label_noise
    present = v * -np.expm1(ell * np.log1p(-1.0 / v))  # distinct tokens of a sequence
    if task.data == "population":
        signal, signal_variance, row = 1.0, 0.0, 0.0
    else:
        mean = task.samples / v
        signal, signal_variance = keep * mean, keep * mean * (1 + ell / v)
        row = mean * (ell - 1) / v * ell  # counts of the sequence's tokens under one other label
    if task.embeddings == "orthogonal":
        noise = row
    else:
        strength = signal**2 + signal_variance
        cross = 0.0 if task.data == "population" else task.samples / v * ell
        q_variance = (strength + cross) * ell / d + row
        noise = q_variance + (present * strength + v * q_variance) / d
    x, x_weight = quadrature.normal(61)
    own = signal + np.sqrt(signal_variance + noise) * x
    absent = ndtr(own / np.sqrt(max(noise, 1e-300)))
    others = ndtr((own - signal) / np.sqrt(max(signal_variance + noise, 1e-300)))
    wins = absent ** max(v - present, 0.0) * others ** max(present - 1, 0.0)
    best = min(present * float(x_weight @ wins), 1.0)
    return float(best / present)
