"""The attention step's variance budget: the trigger's drive and every source of noise in a token's score, in formulas.

Nothing here is fitted.  Units: scores are divided by the first step size η and by γ|z_EOS|².  What follows from the
budget (attention success) is in ``attention_theory``; the frozen MLP's factors are in ``mlp_budget``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from memcap.retrieval.marchenko_pastur import moment, unit_mean_bias, unit_moment

SOURCES = {
    "pairs": "two different samples whose labels and tokens overlap",
    "counts": "unequal label counts times token noise (collisions)",
    "mean bias": "the mean embedding is not zero: all tokens of a run are pushed along one direction",
    "signal x noise": "population signal of one sample against the noise of another",
    "interference": "signal against signal through non-orthogonal embeddings; no amount of data removes it",
    "signal x counts": "tokens seen more often score higher",
    "echo": "a sample with itself",
    "norm echo": "a sample with itself where embeddings differ in length: longer ones score higher",
    "MLP pairs": "the frozen MLP's own noise on pairs",
    "MLP mean": "the frozen neurons' means: all tokens of a run are pushed along one direction",
}
"""Source of variance -> what it is."""

RUN_LEVEL = ("mean bias", "MLP mean")
"""Sources that are one direction per run; its strength follows the run's label counts."""


GRAM_POWERS = {
    "pairs": 2,
    "counts": 4,
    "mean bias": 3,
    "signal x noise": 3,
    "interference": 2,
    "signal x counts": 3,
    "echo": 2,
    "norm echo": 2,
    "MLP pairs": 2,
    "MLP mean": 3,
}
"""Source -> p, where its token scores have covariance proportional to K^p, K the Gram matrix of the embeddings."""


@dataclass(frozen=True)
class AttentionBudget:
    """Drive and variances of the attention step's scores.

    The variances are means over runs.  In one run the total is ``form`` · (rest + level + ``tilt`` x + ``bend`` x²),
    with level the sources in ``RUN_LEVEL``, x the run's excess energy of label counts and ``form`` a Gaussian form.

    Attributes:
        drive: b0 = E β, the trigger's expected score (per |z_trig|²).
        drive_variance: variance of β over runs.
        variances: source -> variance of a token's score over the tokens of a run, at x = 0.
        label_spread: variance over runs of x, which has mean 0.
        tilt: slope of the total variance in x.
        bend: its curvature.
        form_spread: variance over runs of the form, which has mean 1.
        trigger_share: variance of the trigger's score by token noise, relative to that of a token's.
    """

    drive: float
    drive_variance: float
    variances: dict[str, float] = field(default_factory=dict)
    label_spread: float = 0.0
    tilt: float = 0.0
    bend: float = 0.0
    form_spread: float = 0.0
    trigger_share: float = 1.0

    @property
    def run_variance(self) -> float:
        """Sum of the sources in ``RUN_LEVEL`` at x = 0."""
        return float(sum(v for k, v in self.variances.items() if k in RUN_LEVEL))

    @property
    def mean_energy(self) -> float:
        """Mean over runs of the sources in ``RUN_LEVEL``, relative to x = 0."""
        return 1 + self.bend * self.label_spread / self.run_variance if self.run_variance else 1.0

    @property
    def total_variance(self) -> float:
        """Variance of a token's score (without the trigger's share), on average over runs."""
        return float(sum(self.variances.values())) + self.bend * self.label_spread


def signal_counts_terms(v: float, ell: float, n: float, c: float) -> tuple[float, float, float, float]:
    """Parts of signal × counts in units of q1²/L⁴: a token's own count squared, its product with the label counts'
    average over other labels' signal, that squared, and what is smaller in V/N or V/L."""
    a = 1.0 + c
    own, mixed, labels = a, ell / v * moment(3, c), ell * ell / (4 * v * v) * a * moment(4, c)
    scale = 4 / (n * v**3)
    # the last term: how often a token is seen beside the informative one
    small = a * (6 / (n * n * v * v) + 1 / (n**3 * v)) + a / (n * ell * v**3)
    return scale * own, scale * mixed, scale * labels, small


def form_statistics(variances: dict[str, float], vocabulary: int, ratio: float) -> tuple[float, float]:
    """Relative variance over runs of the total variance of Gaussian scores, and the share of it that a trigger sees.

    Scores of covariance K^p over V tokens have a sample variance of mean μ_p and variance 2 μ_2p/V.  They come from a
    direction u, with K^p = Zᵀ E[uuᵀ] Z: a trigger, which is not in Z, sees |u|²/d, in the mean V/d · μ_(p-1).

    Args:
        variances: source -> variance.
        vocabulary: V.
        ratio: V/d, 0 for orthonormal embeddings.
    """
    total = sum(variances.values())
    if total == 0:
        return 0.0, 1.0
    shares = [(GRAM_POWERS[name], value / total) for name, value in variances.items() if value > 0]
    spread = sum(
        w * u * moment(p + q, ratio) / (moment(p, ratio) * moment(q, ratio)) for p, w in shares for q, u in shares
    )
    seen = sum(w * ratio * moment(p - 1, ratio) / moment(p, ratio) for p, w in shares)
    return 2 * spread / vocabulary, seen


def attention_budget(
    *,
    vocabulary: int,
    length: int,
    samples: float | int,
    dimension: float | int | None,
    trigger_in_value: bool = False,
    label_noise: float = 0.0,
    fixed_norm: bool = False,
) -> AttentionBudget:
    """The budget of an attention-only model at ``samples`` N (``inf`` for the population gradient).

    Args:
        vocabulary: V.
        length: L, at least 2.
        samples: N, or ``math.inf``.
        dimension: d, or None for orthonormal embeddings.
        trigger_in_value: the trigger is also in the value path.
        label_noise: probability that a training label is a uniform draw.
        fixed_norm: embeddings of norm 1 (``sphere``).

    Source: derived here: docs/theory/retrieval.md, "The attention step".
    """
    n, v, ell = float(samples), float(vocabulary), float(length)
    c = 0.0 if dimension is None else v / dimension
    per_d = 0.0 if dimension is None else 1.0 / dimension
    a = 1.0 + c
    m4, bias, norms, centring = moment(4, c), c * moment(3, c), 4.0, 1.0
    energy = 1.0
    if fixed_norm and dimension is not None:
        c = (v - 1) / dimension
        a = 1.0 + c
        m4 = unit_moment(4, vocabulary, dimension)
        energy = 1 - 1 / v  # of label counts about their mean
        bias, norms = energy * energy * unit_mean_bias(vocabulary, dimension), 0.0
        centring = energy * (1 - (2 * a - 1) / (a * v))  # of tokens and of labels
    q1 = 1.0 - 1.0 / ell
    keep = 1.0 - label_noise  # share of samples whose label is the fact's
    echo = v / n
    signal = keep * keep  # every product of two population signals
    drive = signal * q1 * (1 - 1 / v) / (ell * ell * v)  # centring over labels takes 1/V
    if trigger_in_value:
        drive += q1 * echo / (ell * ell * v)
    variances = {
        "pairs": q1 * a * a * (1 + a) / (n * n * ell**2 * v**3),
        "counts": q1 * q1 * a * m4 / (n * n * ell * v**4),
        "mean bias": q1 * q1 * bias / (n * n * v**4),
        "signal x noise": signal * q1 * q1 * 2 * a**3 / (n * ell**3 * v**4),
        "interference": signal * signal * a * per_d * (c + norms) / (ell * v) ** 4,
        "signal x counts": signal * q1 * q1 / ell**4 * sum(signal_counts_terms(v, ell, n, c)),
        "echo": (a / v) ** 2 * (1 + 1 / ell) / (n**3 * ell**2),
        "norm echo": 0.0 if fixed_norm else q1 * q1 * 2 * per_d * a / (n * n * ell**2 * v * v),
    }
    variances = {k: value * (1 if k in RUN_LEVEL else centring) for k, value in variances.items()}
    variances["counts"] *= energy
    drive_variance = q1 * a * a / (n * n * ell**3 * v * v) * (1 + ell * per_d / a) + drive**2 * (
        a * a * ell / (n * v)  # the drive's tokens seen as noise in other samples
        + ell * ell * a * c / (n * v * v)
        + 2 * per_d**2
        + norms * per_d / v
        + (0.0 if fixed_norm else 4 / n)
        + 2 * v / (n * n)
    )
    form_spread, trigger_share = form_statistics(variances, vocabulary, c)
    return AttentionBudget(
        drive=drive,
        drive_variance=drive_variance,
        variances=variances,
        label_spread=2 * a / v if n < math.inf else 0.0,
        tilt=2 * variances["mean bias"] + variances["counts"],
        bend=variances["mean bias"],
        form_spread=form_spread,
        trigger_share=trigger_share,
    )
