"""What a key network answers on given inputs, in integer arithmetic from its stored entries: every build's check."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from memcap.errors import RunError
from memcap.exact.engines import Int64Engine, apply_block
from memcap.exact.network import Block, Network

_BATCH = 4096


def recalled(network: Network, inputs: Int[np.ndarray, "items inputs"]) -> Int[np.ndarray, " items"]:
    """Labels of a network without attention; -1 where the output is not a multiple of its unit.

    Args:
        network: of length 1.
        inputs: its raw inputs, one column each (limbs already split).
    """
    engine = Int64Engine()
    answers = np.empty(len(inputs), dtype=np.int64)
    for start in range(0, len(inputs), _BATCH):
        part = inputs[start : start + _BATCH]
        state = engine.linear("embed", network.embed, engine.state(list(part.T)))
        for number, stage in enumerate(network.stages):
            if not isinstance(stage, Block):
                raise RunError("a key network has no attention")
            state = apply_block(engine, number, stage, state)
        out = engine.linear("read", network.read, state)[0]
        answers[start : start + _BATCH] = np.where(out % network.unit == 0, out // network.unit, -1)
    return answers
