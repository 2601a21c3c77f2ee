"""How a cell went: what a worker hands back (``Outcome``) and what a store keeps (``Record``); JSON that keeps NaN."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """Where a cell stands.  ``lost``: it was running when its worker or its driver was killed from outside."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"


@dataclass(frozen=True)
class Outcome:
    """What came of one attempt at a cell.

    Attributes:
        state: done, failed or lost.
        result: what the measurement returned; empty unless done.
        error_type: class name of the exception, or ``"WorkerDied"``, ``"MemoryLimit"``.
        error: its message.
        trace: where it was raised, without values of variables.
        started: Unix time, seconds.
        finished: Unix time, seconds.
        seconds: wall time of the measurement alone.
        cpu_seconds: processor time of the worker during it.
        peak_memory: largest resident size of the worker so far, bytes.
        host: name of the machine.
        device: ``"cpu"`` unless the measurement says otherwise.
        versions: of memcap, Python and the libraries that make numbers.
        data_hash: of the data that the measurement used, if it says so.
    """

    state: State
    result: dict[str, Any] = field(default_factory=dict)
    error_type: str = ""
    error: str = ""
    trace: str = ""
    started: float = 0.0
    finished: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory: int = 0
    host: str = ""
    device: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    data_hash: str = ""


@dataclass(frozen=True)
class Record:
    """One row of a store: the cell and its latest outcome.

    Attributes:
        identity: the cell's hash.
        task: name of the measurement.
        task_version: version of the measurement.
        settings: as in the cell.
        seed: as in the cell.
        place: where the measurement was imported from.
        state: where the cell stands.
        attempts: how often it was started.
        owner: the driver that runs or ran it.
        lease: Unix time until which that driver holds it.
        outcome: of the latest finished attempt; ``None`` before the first.
    """

    identity: str
    task: str
    task_version: int
    settings: dict[str, Any]
    seed: int
    place: str
    state: State
    attempts: int
    owner: str
    lease: float
    outcome: Outcome | None


MARK = "$float"
"""The one key of the dict that stands for NaN or an infinity in JSON."""


def plain(value: Any) -> Any:
    """``value`` as JSON types, NaN and infinities included; NumPy scalars and arrays become numbers and lists.

    Raises:
        TypeError: for anything that is not data.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return {MARK: "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    import numpy as np  # here: a worker whose cells need no arrays starts in half the time

    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    raise TypeError(f"a result holds numbers, texts, truth values, lists and dicts; got {type(value).__name__}")


def _restore(pairs: dict[str, Any]) -> Any:
    return float(pairs[MARK]) if len(pairs) == 1 and MARK in pairs else pairs


def dumps(value: Any) -> str:
    """Strict JSON that ``loads`` turns back into the same value, NaN and infinities included.

    >>> loads(dumps({"recall": float("nan"), "top": float("inf")}))
    {'recall': nan, 'top': inf}
    """
    return json.dumps(plain(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def loads(text: str) -> Any:
    """The inverse of ``dumps``."""
    return json.loads(text, object_hook=_restore) if MARK in text else json.loads(text)
