"""Attention success over many triggers of one trained state: α and β do not depend on the trigger, so redraw only it.

Used where the trigger's own randomness must be averaged out cheaply (critical sizes of the attention step).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from memcap.errors import ConfigurationError
from memcap.retrieval.embeddings import draw_embeddings, draw_trigger
from memcap.retrieval.learned import score_ranks
from memcap.retrieval.ordered import product
from memcap.retrieval.small_step import small_step
from memcap.retrieval.step_sizes import StepSizes
from memcap.retrieval.streams import source
from memcap.retrieval.task import RetrievalTask, integer
from memcap.retrieval.token_kernels import materialise


def attention_over_triggers(
    task: RetrievalTask, *, seed: int | None = None, triggers: int = 15, test_samples: int = 2048, threads: int = 1
) -> Float[np.ndarray, " triggers"]:
    """Attention success of one run under each of ``triggers`` triggers; the first is the one ``simulate`` uses.

    Raises:
        ConfigurationError: where the trigger enters the training (``trigger_in_value``), where there is no learned
            attention, or where the small-step engine does not apply (an MLP, infinite data).
    """
    if task.trigger_in_value or task.attention in ("uniform", "oracle") or task.width or task.data == "population":
        raise ConfigurationError(
            "attention_over_triggers needs learned attention, empirical data, no MLP and no trigger in the value path"
        )
    task = task if seed is None else task.replace(seed=seed)
    integer("triggers", triggers, 1, 2**31)
    embeddings = draw_embeddings(task)
    samples = source(task, embeddings.permutation, "training", task.samples, task.seed)
    learned = small_step(task, embeddings, samples, StepSizes(), steps=2, threads=threads)
    test = source(task, embeddings.permutation, "test", test_samples, task.seed)
    tokens, _ = materialise(test, 0, test_samples)
    success = np.ones(triggers)
    if task.length == 1:
        return success
    fixed = product(embeddings.tokens.T, learned.alpha)
    for index in range(triggers):
        trigger = draw_trigger(task, embeddings.tokens, task.seed, index)
        direction = fixed + learned.drive * trigger
        rank, marked = score_ranks(product(embeddings.tokens, direction), float(trigger @ direction))
        success[index] = (marked[tokens[:, 0]] > rank[tokens[:, 1:]].max(axis=1)).mean()
    return success
