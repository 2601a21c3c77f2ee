"""Where the retrieval theory is known to err, said in words for the task at hand."""

from __future__ import annotations

from memcap.retrieval.end_to_end_theory import Outcome
from memcap.retrieval.hermite import coefficient
from memcap.retrieval.task import RetrievalTask


def warnings_for(task: RetrievalTask, result: Outcome, regime: str) -> tuple[str, ...]:
    """The known errors that apply to ``task``; empty inside the range where the theory was checked."""
    found = []
    transition = 0.02 < result.attention_success < 0.98
    if task.width and transition and task.dimension < 24:
        found.append("MLP attention step in few dimensions (d < 24): critical N is predicted about a tenth too low")
    if task.width and abs(coefficient(task.activation, 1, 1.0)) < 1e-9 and task.attention in ("hard", "soft"):
        found.append(
            "even activation: only the mean embedding drives the trigger; "
            "attention success is predicted up to 0.15 too low"
        )
    if task.width and task.width < 2 * task.dimension and task.activation not in ("tanh", "h1"):
        found.append(
            "fewer neurons than twice the dimensions: recall of the value step is off by up to 0.05, either way"
        )
    if regime == "mean bias" and transition:
        found.append(f"mean bias is one number per run: recall of single runs scatters by ± {result.recall_spread:.2f}")
    if task.embeddings == "orthogonal" and task.data == "empirical" and transition:
        found.append(
            "orthonormal embeddings at few samples a fact: counts of 1-4 are not Gaussian; success and recall are "
            "predicted up to 0.2 too high"
        )
    if task.embeddings == "gaussian" and task.dimension >= task.vocabulary and task.samples < 8 * task.vocabulary:
        found.append(
            "dimension >= vocabulary at few samples a fact: discrete counts matter and are treated as Gaussian; recall "
            "is predicted up to 0.02 too low"
        )
    if task.embeddings == "sphere":
        small = task.dimension < 48 and task.attention in ("hard", "soft") and task.length > 1
        size = (
            "0.08 too low (d < 48: attention success up to 0.04, the value step the rest)" if small else "0.04 too low"
        )
        found.append(f"unit-norm embeddings: recall is predicted up to {size}")
    if task.trigger_in_value and task.vocabulary < 64 and task.embeddings == "gaussian":
        found.append("trigger in the value path, vocabulary < 64: recall is predicted up to 0.03 too low")
    if task.dimension < 8 or task.vocabulary < 16:
        found.append(
            "dimension < 8 or vocabulary < 16: Gaussian limits are rough here; the size of the error is not known"
        )
    if task.attention == "soft":
        found.append(
            "soft attention is predicted as hard attention: right for a sharp softmax (kappa >= 3), 0.15 too high at 1"
        )
    if task.attention == "uniform" and task.length > 1:
        error = "within 0.01 where L² << V" if task.embeddings == "orthogonal" else "by Gaussians"
        found.append(
            f"recall of fresh sequences under uniform attention is an estimate ({error}; about 1/length at best)"
        )
        if task.trigger_in_value:
            found.append(
                "recall of fresh sequences under uniform attention leaves the trigger in the value path out: "
                "predicted up to 0.06 too high at few samples a fact"
            )
    if task.label_noise and transition:
        found.append(
            "label noise at the attention threshold: attention success is predicted up to 0.07 too high, "
            "recall up to 0.04"
        )
    return tuple(found)
