"""``build`` as a measurement: random sequences with random labels in, the size and recall of the memory out.

The data depend on ``samples``, ``length``, ``vocabulary``, ``classes``, ``ordered`` and the seed alone, so cells that
differ in how they are built share them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from memcap.data.sequences import SequenceData
from memcap.errors import ConfigurationError
from memcap.random import stream
from memcap.study.measurements import Measurement


class BuildSettings(BaseModel):
    """Random data and how the memory is built; the options are those of ``memcap.build``."""

    model_config = ConfigDict(extra="forbid")

    samples: int = Field(ge=2)
    length: int = Field(default=1, ge=1)
    vocabulary: int = Field(default=2**40, ge=2, le=2**62)
    classes: int = Field(default=2, ge=2)
    ordered: bool = True
    weights: str = "float64"
    method: str = "keyless"
    selector: str = "auto"
    lanes: int = Field(default=1, ge=1)
    bits: int | None = None
    words: int | None = None
    max_depth: int | None = None
    reject_bits: int = 0
    seed: int = 0


_DATA = ("samples", "length", "vocabulary", "classes", "ordered", "seed")


def _draw(settings: dict[str, Any]) -> SequenceData:
    """Distinct uniform sequences (as multisets if not ordered) with uniform labels; every class occurs."""
    count, length, seed = settings["samples"], settings["length"], settings["seed"]
    tokens: np.ndarray = np.zeros((0, length), dtype=np.int64)
    for attempt in range(100):
        drawn = stream(seed, "study build tokens", attempt).integers(
            settings["vocabulary"], size=(count, length), dtype=np.int64
        )
        tokens = np.concatenate([tokens, drawn if settings["ordered"] else np.sort(drawn, axis=1)])
        _, first = np.unique(tokens, axis=0, return_index=True)
        tokens = tokens[np.sort(first)]
        if len(tokens) >= count:
            break
    else:
        raise ConfigurationError(
            f"{settings['vocabulary']} tokens make too few different sequences of length {length} for {count} samples"
        )
    labels = stream(seed, "study build labels").integers(settings["classes"], size=count)
    labels[: settings["classes"]] = np.arange(min(settings["classes"], count))
    return SequenceData.from_arrays(tokens[:count], labels, ordered=settings["ordered"])


def _build(settings: dict[str, Any], data: SequenceData) -> dict[str, Any]:
    from memcap.model.build import build as build_memory

    options = {name: value for name, value in settings.items() if name not in _DATA}
    memory = build_memory(data, seed=settings["seed"], **options)
    recall = memory.recall(data)
    counts = memory.parameters
    return {
        "parameters": counts.nonzero,
        "stored": counts.stored,
        "dense": counts.dense,
        "total_bits": counts.bits,
        "depth": memory.network.depth,
        "by_part": dict(counts.by_part),
        "recall": recall.correct / recall.total,
        "correct": recall.correct,
        "ties": recall.ties,
        "data_hash": data.content_hash,
    }


build = Measurement("build", BuildSettings, _build, shared=_DATA, prepare=_draw, response="recall")
