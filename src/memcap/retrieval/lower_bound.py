"""What no estimator can exceed: upper bounds on recall from the information in what an estimator sees.

Read the other way round they are lower bounds on the number of samples.  The estimators themselves are in ``decoders``.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from memcap.errors import ConfigurationError, nearest
from memcap.retrieval.task import RetrievalTask, real

SEES = ("first gradient", "samples", "weights")


@dataclass(frozen=True)
class Bound:
    """An upper bound on expected recall of all V tokens.

    Attributes:
        recall: the bound, the smaller of the two below.
        information_bound: from the information alone.
        coverage_bound: from facts that no sample shows; holds for every estimator.
        information: nats about π that the observation can carry at most.
        sees: the class of estimators.
        note: what the derivation assumes.
    """

    recall: float
    information_bound: float
    coverage_bound: float
    information: float
    sees: str
    note: str

    def to_dict(self) -> dict[str, Any]:
        """Every field, ready for JSON."""
        return asdict(self)


def recall_bound(task: RetrievalTask, *, sees: str = "first gradient", bits: float | None = None) -> Bound:
    """The largest expected recall of any estimator that sees only part of the data of ``task``.

    π is uniform over permutations: ln V! nats.  With I nats about it, E[recall] ≤ (1/V) Σ_k min(1, (I + ln 2)/ln k!).

    Args:
        task: vocabulary, length, samples and dimension are used; embeddings are known to the estimator.
        sees: ``first gradient`` (class A: the d × d gradient at zero), ``samples`` (class B: every sample's label and
            averaged embedding) or ``weights`` (class S: a d × d matrix stored with ``bits`` bits an entry).
        bits: bits an entry, for ``weights`` only.

    Raises:
        ConfigurationError: for an unknown class, ``bits`` missing or superfluous, an MLP, label noise, Zipf
            frequencies, several facts a sequence or the trigger in the value path (not derived).

    Source: arXiv 2603.15923 (matching lower bound) for the question; this form derived here:
    docs/theory/retrieval.md, "Lower bounds".

    >>> task = RetrievalTask(vocabulary=128, length=8, samples=3200, dimension=16)
    >>> round(recall_bound(task).recall, 2)
    0.8
    """
    if sees not in SEES:
        raise ConfigurationError(f"sees must be one of {', '.join(SEES)}, got {sees!r}{nearest(str(sees), SEES)}")
    if (bits is not None) != (sees == "weights"):
        raise ConfigurationError("bits belongs to sees='weights', and only there: bits an entry of the stored matrix")
    if task.width or task.label_noise or task.frequencies != "uniform" or task.trigger_in_value or task.facts > 1:
        raise ConfigurationError(
            "the bound is derived for attention only, uniform frequencies, one fact a sequence, no label noise and no "
            "trigger in the values"
        )
    coverage = _coverage_bound(task.samples if task.data == "empirical" else math.inf, task.vocabulary)
    information, note = _information(task, sees, bits)
    bound = information_recall(information, task.vocabulary)
    return Bound(min(bound, coverage), bound, coverage, information, sees, note)


def samples_needed(task: RetrievalTask, recall: float, *, sees: str = "first gradient") -> int | None:
    """The smallest N at which ``recall_bound`` allows ``recall``: no estimator of the class does it with fewer.

    None if no N does (the dimension is too small).

    Raises:
        ConfigurationError: as ``recall_bound``; ``recall`` outside (0, 1]; ``weights``, where N does not enter.
    """
    level = real("recall", recall, 0.0, 1.0)
    if sees == "weights":
        raise ConfigurationError("the bound on stored weights does not depend on the samples")
    low, high = 1, 2**60

    def allowed(n: int) -> bool:
        return recall_bound(task.replace(samples=n), sees=sees).recall >= level

    if not allowed(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if allowed(middle) else (middle + 1, high)
    return low


def information_recall(information: float, vocabulary: int) -> float:
    """(1/V) Σ_{k=1..V} min(1, (I + ln 2)/ln k!), Fano's inequality level by level; the k = 1 term is 1.

    Recall of at least k/V identifies a partial permutation of k facts.

    >>> information_recall(math.inf, 5), round(information_recall(0.0, 1000), 3)
    (1.0, 0.004)
    """
    if math.isinf(information):
        return 1.0
    log_factorial = gammaln(np.arange(2.0, vocabulary + 1) + 1)
    return float((1.0 + np.minimum(1.0, (information + math.log(2.0)) / log_factorial).sum()) / vocabulary)


def _coverage_bound(samples: float | int, vocabulary: int) -> float:
    if math.isinf(samples):
        return 1.0
    log_unseen = samples * math.log1p(-1.0 / vocabulary)
    some_unseen = min(1.0, vocabulary * math.exp(log_unseen))
    return min(1.0, -math.expm1(log_unseen) + some_unseen / vocabulary)


def _information(task: RetrievalTask, sees: str, bits: float | None) -> tuple[float, str]:
    v, ell, d = task.vocabulary, task.length, task.dimension
    n = float(task.samples) if task.data == "empirical" else math.inf
    directions = min(d, v - 1)
    if sees == "weights":
        stored = real("bits", bits, 0.0, 1e6)
        return min(stored * d * d * math.log(2.0), n * math.log(v)), "strict: counting of stored bits"
    if sees == "samples":
        each = math.log(v)
        if ell > 1:
            each = min(each, 0.5 * directions * math.log1p(v / ((ell - 1) * (v - 1))))
        return n * each, "the average of the other tokens is treated as Gaussian"
    note = "count noise is treated as Gaussian with the same covariance; for dimension < vocabulary"
    if ell == 1 or math.isinf(n):
        return math.inf, note
    snr = n / ((ell - 1) * v) * (1 + v / n) * v / (v - 1)
    return 0.5 * directions**2 * math.log1p(snr), note
