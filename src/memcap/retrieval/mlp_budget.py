"""What the frozen MLP does to the attention step's budget: factors from Hermite coefficients at variance 1/L.

The attention-only budget comes in, the MLP's comes out.  Known to err for ReLU at large L and V
(docs/theory/retrieval.md, "Where it fails").
"""

from __future__ import annotations

from dataclasses import replace

from memcap.retrieval.budget import AttentionBudget
from memcap.retrieval.hermite import slopes
from memcap.retrieval.marchenko_pastur import moment


def with_mlp(
    budget: AttentionBudget,
    *,
    activation: str,
    width: int,
    vocabulary: int,
    length: int,
    samples: float | int,
    dimension: int,
    gaussian_ratio: float,
) -> AttentionBudget:
    """The budget of an attention-MLP model from that of attention alone.

    Args:
        budget: of attention only.
        activation: name of φ.
        width: m, number of frozen neurons.
        vocabulary: V.
        length: L; averaged sequences have squared norm 1/L.
        samples: N, or ``math.inf``.
        dimension: d.
        gaussian_ratio: V/d of the embeddings, 0 for orthonormal ones.

    Source: derived here: docs/theory/retrieval.md, "The frozen MLP".
    """
    s = slopes(activation, 1.0 / length)
    linear = s.slope**2  # A1 = (E φ')²
    if linear < 1e-12 * max(s.slope_square, 1e-300):  # an even activation: no linear part drives the trigger
        linear = 0.0
    crossed = s.curvature * s.value  # B = E φ'' E φ
    d_over_m = dimension / width
    q1 = 1.0 - 1.0 / length
    v = budget.variances
    slope_noise = s.slope_square - linear
    per_pair = d_over_m * length
    finite_width = linear**2 + per_pair * s.variance * linear  # linear² · f
    mixed = (linear + crossed) ** 2  # linear² · (1 + ra)²
    ratio_f = 1 + per_pair * s.variance / linear if linear else 1.0
    out = {
        "pairs": v["pairs"] * ((linear**2 + crossed**2) * ratio_f if linear else crossed**2),
        "counts": v["counts"] * mixed * ratio_f,
        "mean bias": v["mean bias"] * (s.half_square_curvature**2 + d_over_m * linear**2),
        "signal x noise": v["signal x noise"] * finite_width,
        "interference": v["interference"] * finite_width,
        "signal x counts": v["signal x counts"] * linear**2,
        "echo": v["echo"] * linear**2,
        "norm echo": v["norm echo"] * linear**2,
        "MLP pairs": v["pairs"]
        * per_pair
        * (
            s.value**2 * slope_noise * (1 + length / dimension)
            + s.value**2 * linear
            + s.variance * slope_noise * (1 + length / dimension)
        ),
        "MLP mean": q1
        * q1
        * moment(3, gaussian_ratio)
        / (vocabulary**2 * dimension)
        * d_over_m
        * s.value_slope**2
        / (samples * samples),
    }
    return replace(budget, drive=budget.drive * linear, drive_variance=budget.drive_variance * linear**2, variances=out)
