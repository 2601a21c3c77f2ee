"""Exports that are files of memcap's own: a plain perceptron as JSON, the state of the torch module as safetensors.

A file is written beside its place, read back, asked for every item it is given, and only then kept.  ONNX is in
`onnx_export`.  Called by ``memcap export``.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memcap.data.sequences import SequenceData
from memcap.errors import ConfigurationError, PrecisionError, RunError, missing_folder
from memcap.exact.inputs import is_sequence
from memcap.exact.plain_mlp import PlainMLP, layers_from_json
from memcap.model.exports import facts_of

if TYPE_CHECKING:
    from memcap.model.memory import Memory

Progress = Callable[[int, int, str], None]
_BATCH = 4096


@dataclass(frozen=True)
class FileReport:
    """What was written, and what it answered.

    Attributes:
        path: the file.
        weights: number format of its numbers.
        items, correct: items asked of the file and answered right; (0, 0) when none were given.
        nonzero, width, depth: of the exported network: non-zero numbers, widest hidden layer, ReLU layers.
        bytes: of the file.
    """

    path: str
    weights: str
    items: int
    correct: int
    nonzero: int
    width: int
    depth: int
    bytes: int

    def __bool__(self) -> bool:
        return 0 < self.items == self.correct


def write_plain_mlp(
    memory: Memory,
    path: str | PathLike[str],
    data: SequenceData | None = None,
    *,
    neurons: int | None = None,
    progress: Progress | None = None,
) -> FileReport:
    """Write the memory without skip connections: layers of integers with ReLU between them, as JSON.

    The file is that of `PlainMLP.to_json`, with the names of the network's inputs, how a key is split into limbs, and
    the label names beside the numbers.

    Args:
        memory: of single tokens.
        path: the file.
        data: the items it must be exact for and is asked; without them it is exact for every key in range, unasked.
        neurons: see `Memory.to_plain_mlp`.

    Raises:
        ConfigurationError: for a memory of sequences or of real-valued tokens.
        RunError: if an item is answered wrong; the file is not kept.
    """
    network = memory.network
    if memory.header.encoding.projection is not None:
        raise ConfigurationError(
            "a memory of real-valued tokens has no plain MLP: its projection is not an integer map"
        )
    mlp = memory.to_plain_mlp(data, neurons=neurons)
    record = {
        **mlp.to_json(),
        "inputs": list(network.inputs),
        "key_limbs": None if network.key_limbs is None else list(network.key_limbs),
        **facts_of(memory),
    }
    with _kept_if_right(Path(path)) as fresh:
        fresh.write_text(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
        layers, unit = layers_from_json(json.loads(fresh.read_text(encoding="utf-8")))
        stored = PlainMLP(layers, unit, network, mlp.proved)
        items, correct = _asked(memory, data, lambda rows: stored.evaluate(rows), progress)
        size = fresh.stat().st_size
    return FileReport(str(path), "exact", items, correct, mlp.nonzero, mlp.width, mlp.depth, size)


def write_state(
    memory: Memory, path: str | PathLike[str], data: SequenceData | None = None, *, progress: Progress | None = None
) -> FileReport:
    """Write the state of `Memory.to_module` as safetensors: ``memory.to_module().load_state_dict(load_file(path))``.

    Raises:
        PrecisionError: for an exact memory whose weights no number format of torch holds.
        RunError: if an item is answered wrong; the file is not kept.
    """
    import torch
    from safetensors.torch import load_file, save_file

    if memory.header.weights == "exact":
        raise PrecisionError(
            "torch has no integers of any size: build with --weights float64, float32 or int64 for a torch state, or "
            "export this memory as onnx or mlp"
        )
    module = memory.to_module()
    facts = {"format": "pt", **{name: json.dumps(fact, ensure_ascii=False) for name, fact in facts_of(memory).items()}}

    def answers(rows: NDArray[np.int64]) -> NDArray[np.int64]:
        with torch.no_grad():
            parts = [module(torch.from_numpy(rows[i : i + _BATCH])).numpy() for i in range(0, len(rows), _BATCH)]
        return np.concatenate(parts)

    with _kept_if_right(Path(path)) as fresh:
        save_file(module.state_dict(), fresh, metadata=facts)
        module.load_state_dict(load_file(fresh))
        if memory.header.encoding.projection is not None and data is not None:
            raise ConfigurationError("the state of a memory of real-valued tokens is written unasked: leave --data out")
        items, correct = _asked(memory, data, answers, progress)
        size = fresh.stat().st_size
    network = memory.network
    nonzero = memory.parameters.nonzero
    return FileReport(str(path), memory.header.weights, items, correct, nonzero, network.widest, network.depth, size)


def _asked(
    memory: Memory,
    data: SequenceData | None,
    answers: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    progress: Progress | None,
) -> tuple[int, int]:
    """Items asked and answered right: all of ``data`` (at every position where that is asked), or none."""
    if data is None:
        return 0, 0
    memory.check_fits(data)
    tokens, classes = memory.tokens_of(data), memory.wanted(data)
    wanted = classes + memory.header.first_label * (classes >= 0)
    found = answers(tokens if is_sequence(memory.network) else tokens[:, 0])
    found = found[:, : wanted.shape[1]] if memory.network.per_position else found.reshape(-1, 1)
    real = wanted >= 0
    items, correct = int(real.sum()), int(((found == wanted) & real).sum())
    if progress is not None:
        progress(len(tokens), len(tokens), "asking the exported file")
    if correct != items:
        rows = data.rows[np.flatnonzero(((found != wanted) & real).any(axis=1))]
        shown = ", ".join(str(int(row)) for row in rows[:5])
        raise RunError(f"the exported file answers {items - correct} of {items} items wrong (rows {shown}); not kept")
    return items, correct


@contextlib.contextmanager
def _kept_if_right(target: Path) -> Iterator[Path]:
    """A file beside ``target`` that takes its place unless something is raised."""
    if not target.parent.is_dir():
        raise missing_folder(target)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    os.close(handle)
    try:
        yield Path(name)
        os.chmod(name, 0o644)
        os.replace(name, target)
    finally:
        Path(name).unlink(missing_ok=True)


def report_record(report: Any) -> dict[str, Any]:
    """The figures of a report as plain JSON; ``certified`` when items were asked and all are right."""
    return {**vars(report), "certified": bool(report)}
