"""ONNX export (extra ``onnx``): write the graph, run it through onnxruntime on every item, and only then keep the file.

The graph itself is in `memcap.model.onnx_graph`.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memcap.errors import (
    ConfigurationError,
    DomainError,
    FormatError,
    PrecisionError,
    RunError,
    missing_folder,
    require_extra,
)
from memcap.exact.evaluate import Progress
from memcap.exact.identity import network_identity
from memcap.exact.network import Network
from memcap.exact.ranges import format_for, limit_of
from memcap.version import __version__

EXTRA = "onnx"


@dataclass(frozen=True)
class OnnxReport:
    """What was exported and what onnxruntime answered.

    Attributes:
        path: the file.
        weights: number format of the graph.
        items, correct: items asked through onnxruntime and answered right; (0, 0) when none were given.
        wrong: the first rows (1-based) that were not.
        opset, bytes: of the file.
        onnxruntime: its version.
    """

    path: str
    weights: str
    items: int
    correct: int
    wrong: tuple[int, ...]
    opset: int
    bytes: int
    onnxruntime: str

    def __bool__(self) -> bool:
        return 0 < self.items == self.correct

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "certified": bool(self)}


def export_onnx(
    network: Network,
    path: str | PathLike[str],
    weights: str,
    *,
    rows: NDArray[np.int64] | None = None,
    wanted: NDArray[np.int64] | None = None,
    metadata: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> OnnxReport:
    """Write ``network`` as an ONNX file and certify that file on every item through onnxruntime.

    The batch size is dynamic, and so is the length of sequences up to the network's; longer rows are refused by the
    graph.  Nothing is left behind when the certification fails.

    Args:
        network: what to export.
        path: the ``.onnx`` file.
        weights: ``float64`` | ``float32`` | ``int64``; ``exact`` takes the narrowest format that provably suffices.
        rows: every item: token ids (rows, length), padded or not, or keys (rows,).
        wanted: its labels as `memcap.exact.evaluate` gives them, -1 where nothing is asked.
        metadata: kept in the file as JSON strings.

    Raises:
        MissingExtraError: if onnx or onnxruntime is not installed.
        ConfigurationError: if the folder that is to hold the file does not exist.
        PrecisionError: if no number format holds the network, or the runtime lacks a kernel for it.
        RunError: if the runtime answers an item wrong.
    """
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        raise require_extra(str(error.name), EXTRA) from None
    from memcap.model.onnx_graph import OPSET, onnx_model

    if (rows is None) != (wanted is None):
        raise ConfigurationError("give both rows and wanted labels, or neither")
    target = Path(path)
    if not target.parent.is_dir():
        raise missing_folder(target)
    chosen = format_for(network) if weights == "exact" else weights
    if limit_of(chosen) is None:
        raise ConfigurationError(f"ONNX has no number format {chosen!r}: choose float64, float32 or int64")
    facts = {"memcap": __version__, "network_hash": network_identity(network), "weights": chosen, **(metadata or {})}
    model = onnx_model(network, chosen, {k: v if isinstance(v, str) else json.dumps(v) for k, v in facts.items()})
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    os.close(handle)
    try:
        onnx.save(model, name)
        session = OnnxNetwork(name)
        correct, wrong, asked = 0, np.zeros(0, dtype=np.int64), 0
        if rows is not None and wanted is not None:
            asked, correct, wrong = _recall(session, rows, wanted, network.per_position, progress)
            if correct != asked:
                shown = ", ".join(str(r + 1) for r in wrong[:5])
                raise RunError(
                    f"onnxruntime {onnxruntime.__version__} answers {asked - correct} of {asked} items wrong in "
                    f"{chosen} (rows {shown}); the file was not kept"
                )
        size = os.path.getsize(name)
        os.chmod(name, 0o644)
        os.replace(name, target)
    finally:
        Path(name).unlink(missing_ok=True)
    found = tuple(int(r) + 1 for r in wrong)
    return OnnxReport(str(target), chosen, asked, correct, found, OPSET, size, onnxruntime.__version__)


class OnnxNetwork:
    """An exported network in onnxruntime, one thread, CPU.

    Raises:
        MissingExtraError: if onnxruntime is not installed.
        PrecisionError: if it has no kernel for an operation in the file's number format.
        FormatError: if the file is not an ONNX model it can read.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise require_extra(str(error.name), EXTRA) from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        if not Path(path).is_file():
            raise FormatError(f"{path}: there is no such file")
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the runtime raises its own family, one class per status code
            reason = str(error).splitlines()[0]
            if "NOT_IMPLEMENTED" in reason or "NotImplemented" in type(error).__name__:
                raise PrecisionError(
                    f"onnxruntime {onnxruntime.__version__} lacks a kernel this number format needs ({reason}); "
                    "export in another one"
                ) from None
            raise FormatError(f"{path}: onnxruntime cannot read it ({reason})") from None
        (self._input,) = self._session.get_inputs()

    def predict(
        self, rows: NDArray[np.int64] | Sequence[Any], *, batch: int = 1024, progress: Progress | None = None
    ) -> NDArray[np.int64]:
        """Label numbers of token rows (rows, any length up to the network's) or keys (rows,).

        Raises:
            DomainError: if the rows do not fit the graph.
        """
        array = np.asarray(rows, dtype=np.int64)
        if array.ndim != len(self._input.shape):
            raise DomainError(f"this graph reads {self._input.name} of shape {self._input.shape}, got {array.shape}")
        parts = []
        for start in range(0, len(array), batch):
            some = np.ascontiguousarray(array[start : start + batch])
            try:
                parts.append(self._session.run(["labels"], {self._input.name: some})[0])
            except Exception as error:  # the runtime raises its own family, one class per status code
                raise DomainError(
                    f"rows of shape {array.shape} do not fit the exported graph (longer than its network?): "
                    f"{str(error).splitlines()[0]}"
                ) from None
            if progress is not None:
                progress(min(start + batch, len(array)), len(array), "evaluating in onnxruntime")
        empty = np.zeros(array.shape if "length" in self._session.get_outputs()[0].shape else 0, dtype=np.int64)
        return np.concatenate([empty[:0], *parts])


def _recall(
    session: OnnxNetwork,
    rows: NDArray[np.int64],
    wanted: NDArray[np.int64],
    per_position: bool,
    progress: Progress | None,
) -> tuple[int, int, NDArray[np.int64]]:
    """Items asked, items right, and the row indices with a wrong item."""
    found = session.predict(rows, progress=progress)
    asked = wanted != -1 if per_position else np.ones(len(wanted), dtype=bool)
    found = found[:, : wanted.shape[1]] if per_position else found
    right = (found == wanted) & asked
    wrong = np.flatnonzero((asked & ~right).reshape(len(wanted), -1).any(axis=1))
    return int(asked.sum()), int(right.sum()), wrong
