"""Three steps with orthonormal embeddings: counts in the value step, the budget's gaps before it."""

from __future__ import annotations

import numpy as np

from memcap.retrieval import quadrature
from memcap.retrieval.attention_theory import Gaps, beats, success, success_given
from memcap.retrieval.end_to_end_theory import OWN_NODES, Outcome, at_gaps, gap_grid, spread_over_runs, two_point
from memcap.retrieval.orthogonal_law import value_step_recall


def orthogonal_outcome(
    law: Gaps,
    counts: quadrature.Rule,
    vocabulary: int,
    length: int,
    *,
    keep: float = 1.0,
    carries_trigger: bool = False,
) -> Outcome:
    """Recall after three steps with hard attention and orthonormal embeddings.

    Args:
        law: of the runs' gaps.
        counts: rule for a fact's count.
        vocabulary: V.
        length: L.
        keep: share of training labels that are the fact's.
        carries_trigger: the trigger is in the value path, so a fresh sequence's query carries it.

    Source: derived here: docs/theory/retrieval.md, "Orthonormal embeddings".
    """
    z = gap_grid(law)
    own, own_weight = quadrature.normal(OWN_NODES)
    chance, share = two_point(z, own, vocabulary, length)
    weight = share * own_weight[None, :, None]
    present = -np.expm1((length - 1) * np.log1p(-1.0 / vocabulary))
    # a wrong position is chosen only where the informative one lost
    capture = present * beats(np.broadcast_to(own, (len(z), len(own))), vocabulary, length)
    capture = capture * (1 - success_given(z, np.zeros(1), vocabulary, length))
    amplitude = np.round(keep * chance, 3).ravel()
    rate = np.broadcast_to(capture[:, :, None], chance.shape) + (1 - keep) * chance / vocabulary
    # three significant digits of the rate are plenty for a recall to three decimals
    digits = np.power(10.0, np.floor(np.log10(np.maximum(rate, 1e-9))) - 1)
    rate = (np.round(rate / digits) * digits).ravel()
    settings, where = np.unique(np.stack([amplitude, rate]), axis=1, return_inverse=True)

    def recall_of(trigger: bool) -> np.ndarray:
        values = value_step_recall(
            counts, vocabulary, amplitude=settings[0], competitor_rate=settings[1], carries_trigger=trigger
        )
        return np.asarray(values[where].reshape(chance.shape))

    fresh_by_token = recall_of(carries_trigger)
    clean_by_token = recall_of(False) if carries_trigger else fresh_by_token
    attention = success(law, vocabulary, length)
    fresh = at_gaps(z, np.einsum("zgp,zgp->z", chance * fresh_by_token, weight), law)
    clean = at_gaps(z, np.einsum("zgp,zgp->z", clean_by_token, weight), law)
    return Outcome(
        recall=float(law.weights @ fresh),
        clean_recall=float(law.weights @ clean),
        attention_success=float(law.weights @ attention),
        recall_spread=spread_over_runs(fresh, law),
        attention_spread=spread_over_runs(attention, law),
    )
