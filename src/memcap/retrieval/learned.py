"""What the gradient steps leave behind, in the few numbers that recall depends on: scores, read-out, statistics.

Produced by ``closed_form``, ``small_step`` and ``population``; read by ``recall``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int

TIE = 2.0**-40
"""Two scores, or two logits, closer than this fraction of the largest in size are a tie: rounding cannot break it."""


@dataclass(frozen=True)
class Learned:
    """The state after some gradient steps.

    Attributes:
        readout: (d, d) or (d, m): W_V, or the gradient read in its place; logits are Z_outᵀ · readout · ψ.
        direction: (d,) u, so that W_KQ ∝ u z_EOSᵀ; in units of η in the small-step limit; zeros before the step.
        token_scores: (V,) σ_t = z_in[t]ᵀu.
        trigger_score: τ = z_trigᵀu.
        scale: factor from u·key to attention scores; ``inf`` for hard attention.
        alpha: (V,) α of the attention step.
        drive: β of the attention step.
        seen: (V,) whether a token was the informative one of some training sequence.
        reading: how the read-out is queried: ``uniform``, ``trained`` (soft or hard by ``scale``) or ``oracle``.
        largest_first_logit: largest |logit| of W_V1 over the training sequences; 0 in the limit.
        other_trigger_scores: (K - 1,) what the triggers of the other facts of a sequence add at positions 1 … K - 1.
    """

    readout: Float[np.ndarray, "dimension columns"]
    direction: Float[np.ndarray, " dimension"]
    token_scores: Float[np.ndarray, " vocabulary"]
    trigger_score: float
    scale: float
    alpha: Float[np.ndarray, " vocabulary"]
    drive: float
    seen: Bool[np.ndarray, " vocabulary"]
    reading: str
    largest_first_logit: float = 0.0
    other_trigger_scores: Float[np.ndarray, " others"] = field(default_factory=lambda: np.zeros(0))

    @property
    def trigger_scores(self) -> Float[np.ndarray, " facts"]:
        """(K,) what triggers add at positions 0 … K - 1: the one asked for, then the others."""
        return np.concatenate([[self.trigger_score], self.other_trigger_scores])


def score_ranks(
    token_scores: Float[np.ndarray, " vocabulary"], *trigger_scores: float
) -> tuple[Int[np.ndarray, " vocabulary"], ...]:
    """Ranks of every token's score without and with a trigger, equal for ties; hard attention compares only these.

    Returns:
        (rank of σ_t, rank of σ_t + τ for each trigger score τ), in one common order.
    """
    every = np.concatenate([token_scores, *(token_scores + score for score in trigger_scores)])
    order = np.argsort(every, kind="stable")
    gaps = np.diff(every[order]) > TIE * np.abs(every).max()
    ranks = np.empty(len(every), np.int64)
    ranks[order] = np.concatenate([[0], np.cumsum(gaps)])
    return tuple(np.split(ranks, 1 + len(trigger_scores)))


def token_weights(
    token_scores: Float[np.ndarray, " vocabulary"], trigger_score: float, scale: float
) -> tuple[Float[np.ndarray, " vocabulary"], Float[np.ndarray, " vocabulary"]]:
    """Unnormalised softmax weights exp(scale·score - largest) of every token without and with the trigger.

    A weight may underflow to 0; a sequence all of whose weights do is redone with its own maximum by the engines.
    """
    plain = scale * token_scores
    with_trigger = plain + scale * trigger_score
    top = max(plain.max(), with_trigger.max())
    return np.exp(plain - top), np.exp(with_trigger - top)
