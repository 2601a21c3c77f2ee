"""Memories in other forms: an ONNX file, a plain perceptron.  Called by `Memory.to_onnx` and `Memory.to_plain_mlp`."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any

from memcap.data.sequences import SequenceData
from memcap.exact.inputs import is_sequence
from memcap.exact.plain_mlp import PlainMLP, to_plain_mlp
from memcap.model.onnx_export import OnnxReport, export_onnx

if TYPE_CHECKING:
    from memcap.model.memory import Memory

Progress = Callable[[int, int, str], None]


def memory_to_onnx(
    memory: Memory, path: str | PathLike[str], data: SequenceData | None, progress: Progress | None = None
) -> OnnxReport:
    """Write ``memory`` as ONNX; with ``data`` every item is asked through onnxruntime before the file is kept.

    The file carries the label names and the encoding as JSON metadata, and the number of the first label.
    """
    header, network = memory.header, memory.network
    rows = wanted = None
    if data is not None:
        memory.check_fits(data)
        tokens, classes = memory.tokens_of(data), memory.wanted(data)
        shifted = classes + header.first_label * (classes >= 0)
        rows = tokens if is_sequence(network) else tokens[:, 0]
        wanted = shifted if network.per_position else shifted[:, 0]
    facts = facts_of(memory)
    return export_onnx(network, path, header.weights, rows=rows, wanted=wanted, metadata=facts, progress=progress)


def facts_of(memory: Memory) -> dict[str, Any]:
    """What a reader of the exported numbers needs beside them: label names, numbering, encoding."""
    header = memory.header
    return {
        "label_names": list(header.label_names),
        "first_label": header.first_label,
        "reject_from": header.reject_from,
        "ordered": header.ordered,
        "encoding": header.encoding.to_json(),
        "data_hash": header.data_hash,
    }


def memory_to_plain_mlp(memory: Memory, data: SequenceData | None, neurons: int | None) -> PlainMLP:
    """``memory`` without skip connections, exact for the items of ``data`` or, without it, for every key in range."""
    keys = None
    if data is not None:
        memory.check_fits(data)
        keys = memory.tokens_of(data)[:, 0]
    return to_plain_mlp(memory.network, keys, neurons=neurons)
