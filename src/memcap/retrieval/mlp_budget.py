"""What the frozen MLP does to the attention step's budget: expectations over pre-activations that share a mean.

The attention-only budget comes in, the MLP's comes out.  Not here: the expectations (``shared_mean``).
"""

from __future__ import annotations

from dataclasses import replace

from memcap.retrieval.budget import AttentionBudget, form_statistics, signal_counts_terms
from memcap.retrieval.marchenko_pastur import moment
from memcap.retrieval.shared_mean import shared_mean


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
        length: L; an averaged sequence is the mean embedding, of squared norm 1/V, and noise of squared norm 1/L.
        samples: N, or ``math.inf``.
        dimension: d.
        gaussian_ratio: V/d of the embeddings, 0 for orthonormal ones.

    Source: derived here: docs/theory/retrieval.md, "The frozen MLP".
    """
    v, ell, m, n, c = float(vocabulary), float(length), float(width), float(samples), gaussian_ratio
    a, q1 = 1.0 + c, 1.0 - 1.0 / ell
    m3, m4 = moment(3, c), moment(4, c)
    s = shared_mean(activation, (1 - 1 / v) / ell, 1 / v)
    linear, joint = s.linear, s.linear + s.crossed
    old = budget.variances
    first, cross, second, rest = signal_counts_terms(v, ell, n, c)
    steep = linear**2 * (first + rest) + linear * joint * cross + joint**2 * second
    both = s.both_noise * (1 + ell * m3 / (v * a))
    mean = q1 * q1 * c * m3 / v**4  # of a push along the mean embedding, at strength 1
    push = q1 * q1 * m3 / (v * v) / m  # of a random direction per neuron, at mean square 1
    # the N samples themselves push by 1/N each; what facts have in common pushes however large N is
    fact = budget.drive * ell * ell * v / (q1 * (1 - 1 / v)) / (v * ell * ell)
    along = s.own_slope / n + fact * s.fact_slope
    own_push = s.own_push / n**2 + 2 * fact / n * s.own_fact_push + fact**2 * s.fact_push
    mixed_push = s.mixed_push / n**2 + fact / n * s.pair_fact_push
    out = {
        "pairs": old["pairs"] * (linear**2 + s.crossed**2),
        "counts": old["counts"] * (joint**2 + v * ell * m3 / (m4 * m) * s.sum_noise),
        "mean bias": mean * along**2,
        "signal x noise": old["signal x noise"] * (linear**2 + dimension * ell / m * s.value_noise),
        "interference": old["interference"] * (linear**2 + dimension / m * s.linear_square),
        "signal x counts": old["signal x counts"] * steep / (first + cross + second + rest)
        if n < float("inf")
        else 0.0,
        "echo": old["echo"] * s.own_slope**2,
        "norm echo": old["norm echo"] * s.own_slope**2,
        "MLP pairs": old["pairs"] * ell * v / ((1 + a) * m) * (s.value_noise + s.pair_push + s.slope_noise + both),
        "MLP mean": push * own_push,
    }
    bare = budget.drive**2
    pairs = q1 * a * a / (n * n * ell**3 * v * v)
    neurons = s.value_noise + s.pair_push + s.slope_noise + s.both_noise
    drive_variance = (
        linear**2 * budget.drive_variance
        + pairs * (s.crossed**2 + ell * v / (a * m) * neurons)
        + bare * (s.linear_square * (1 + 2 / dimension) - linear**2) / m
    )
    form_spread, trigger_share = form_statistics(out, vocabulary, c)
    return replace(
        budget,
        drive=budget.drive * linear,
        drive_variance=drive_variance,
        variances=out,
        tilt=2 * (mean * along * joint / n + push * mixed_push) + out["counts"],
        bend=(mean * joint**2 + push * s.pair_push) / n**2,
        form_spread=form_spread,
        trigger_share=trigger_share,
    )
