"""The attention step's variance budget: the trigger's drive and every source of noise in a token's score, in formulas.

Nothing here is fitted.  Units: scores are divided by the first step size η and by γ|z_EOS|².  What follows from the
budget (attention success) is in ``attention_theory``; the frozen MLP's factors are in ``mlp_budget``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memcap.retrieval.marchenko_pastur import moment

SOURCES = {
    "pairs": "two different samples whose labels and tokens overlap",
    "counts": "unequal label counts times token noise (collisions)",
    "mean bias": "the mean embedding is not zero; one random number per run",
    "signal x noise": "population signal of one sample against the noise of another",
    "interference": "signal against signal through non-orthogonal embeddings; no amount of data removes it",
    "signal x counts": "tokens seen more often score higher",
    "echo": "a sample with itself",
    "norm echo": "a sample with itself where embeddings differ in length: longer ones score higher",
    "MLP pairs": "the frozen MLP's own noise on pairs",
    "MLP mean": "the frozen MLP's mean output; one random number per run",
}
"""Source of variance -> what it is."""

RUN_LEVEL = ("mean bias", "MLP mean")
"""Sources that are one random number per run, shared by all tokens."""


@dataclass(frozen=True)
class AttentionBudget:
    """Drive and variances of the attention step's scores.

    Attributes:
        drive: b0 = E β, the trigger's expected score (per |z_trig|²).
        drive_variance: variance of β over runs.
        variances: source -> variance of a token's score over the tokens of a run, on average over runs.
        mean_energy: mean of the run-level factor on the sources in ``RUN_LEVEL``.
        mean_energy_variance: its variance over runs.
        orthogonal: whether the embeddings are orthonormal (then the trigger's score carries no token noise).
    """

    drive: float
    drive_variance: float
    variances: dict[str, float] = field(default_factory=dict)
    mean_energy: float = 1.0
    mean_energy_variance: float = 0.0
    orthogonal: bool = False

    @property
    def run_variance(self) -> float:
        """Sum of the run-level sources at energy 1."""
        return float(sum(v for k, v in self.variances.items() if k in RUN_LEVEL))

    @property
    def token_variance(self) -> float:
        """Sum of all other sources."""
        return float(sum(v for k, v in self.variances.items() if k not in RUN_LEVEL))

    @property
    def total_variance(self) -> float:
        """Variance of a token's score (without the trigger's share), on average over runs."""
        return self.token_variance + self.run_variance * self.mean_energy


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
    n, v, ell = samples, float(vocabulary), float(length)
    c = 0.0 if dimension is None else v / dimension
    per_d = 0.0 if dimension is None else 1.0 / dimension
    a = 1.0 + c
    m3, m4, m6 = (moment(p, c) for p in (3, 4, 6))
    q1 = 1.0 - 1.0 / ell
    keep = 1.0 - label_noise  # share of samples whose label is the fact's
    echo = v / n
    signal = keep * keep  # every product of two population signals
    drive = signal * q1 / (ell * ell * v)
    if trigger_in_value:
        drive += q1 * echo / (ell * ell * v)
    variances = {
        "pairs": q1 * a * a * (1 + a) / (n * n * ell**2 * v**3),
        "counts": q1 * q1 * a * m4 / (n * n * ell * v**4),
        "mean bias": q1 * q1 * c * m3 / (n * n * v**4),
        "signal x noise": signal * q1 * q1 * 2 * a**3 * (1 + echo) / (n * ell**3 * v**4),
        "interference": signal * signal * a * per_d * (c + 4) * (1 + echo) ** 2 / (ell * v) ** 4,
        "signal x counts": signal
        * q1
        * q1
        / ell**4
        * (
            4 / (n * v**3) * (a + ell / v * m3 + ell * ell / (4 * v * v) * a * m4)
            + a * (6 / (n * n * v * v) + 1 / (n**3 * v))
            + a / (n * ell * v**3)  # how often a token is seen beside the informative one
        ),
        "echo": (a / v) ** 2 * (1 + 1 / ell) / (n**3 * ell**2),
        "norm echo": 0.0 if fixed_norm else q1 * q1 * 2 * per_d * a / (n * n * ell**2 * v * v),
    }
    drive_variance = q1 * a * a / (n * n * ell**3 * v * v) * (1 + ell * per_d / a) + drive**2 * (
        ell * ell * a * c / (n * v * v) + 2 * per_d**2 + 4 * per_d / v + 4 / n + 2 * v / (n * n)
    )
    return AttentionBudget(
        drive=drive,
        drive_variance=drive_variance,
        variances=variances,
        mean_energy=1 + 2 * a / v if dimension is not None else 1.0,
        mean_energy_variance=8 * a / v + 2 * m6 / (v * m3 * m3) if dimension is not None else 0.0,
        orthogonal=dimension is None,
    )
