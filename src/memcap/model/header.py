"""What a memory knows besides its weights: how raw items become tokens, what labels are called, how it was made.

It is the content of ``memory.json``; everything in it is plain JSON.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields
from typing import Any

from memcap.data.encoding import Encoding
from memcap.errors import FormatError, nearest

Label = str | int | bool


def _digest(record: dict[str, Any]) -> str:
    """SHA-256 of the facts in canonical JSON: labels and encodings decide what an answer means."""
    text = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Header:
    """The facts of a memory.

    Attributes:
        encoding: raw items -> token ids.
        label_names: class index -> label, as read.
        ordered: whether the order of tokens matters.
        method: ``keyless`` | ``keyed`` | ``interpolator``.
        selector: how the words of a key are found.
        weights: ``float64`` | ``float32`` | ``int64`` | ``exact``.
        structure: facts of the construction.
        seed: the seed given to `build`.
        items: distinct items (sequences, or context-token pairs) memorised, N.
        entropy: empirical entropy of the labels in bits, H.
        data_hash: content hash of the data.
        first_label: network output of class 0 (1 for keyed memories, whose output 0 means unknown).
        reject_from: outputs from here on mean unknown (fingerprint bits), or None.
        options: the options given to `build`.
        reading: the options the data file was read with, so that ``memcap check`` reads it the same way.
    """

    encoding: Encoding
    label_names: tuple[Label, ...]
    ordered: bool
    method: str
    selector: str
    weights: str
    structure: dict[str, Any]
    seed: int
    items: int
    entropy: float
    data_hash: str
    first_label: int = 0
    reject_from: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    reading: dict[str, Any] = field(default_factory=dict)

    @property
    def classes(self) -> int:
        return len(self.label_names)

    @property
    def tells_strangers(self) -> bool:
        """Whether no label means an unknown item: a keyed memory, or one with fingerprint bits."""
        return self.first_label > 0 or self.reject_from is not None

    def to_json(self) -> dict[str, Any]:
        record = {f.name: getattr(self, f.name) for f in fields(self)}
        record["encoding"] = self.encoding.to_json()
        record["label_names"] = list(self.label_names)
        record["digest"] = _digest(record)
        return record

    @staticmethod
    def unchanged(record: dict[str, Any]) -> bool:
        """Whether the facts in ``record`` are the ones that `to_json` wrote."""
        return record.get("digest") == _digest({name: value for name, value in record.items() if name != "digest"})

    @classmethod
    def from_json(cls, record: dict[str, Any], *, allow_changed: bool = False) -> Header:
        """The header written by `to_json`.

        Raises:
            FormatError: for a missing, unknown or mistyped field, or (unless ``allow_changed``) a changed one.
        """
        if not allow_changed and not cls.unchanged(record):
            raise FormatError(
                "memory.json: the facts of the memory (labels, encoding, method, ...) are not the ones that were saved"
            )
        record = {name: value for name, value in record.items() if name != "digest"}
        names = {f.name for f in fields(cls)}
        for key in record:
            if key not in names:
                raise FormatError(f"memory.json: unknown field {key!r}{nearest(key, names)}")
        for name in names - set(record):
            raise FormatError(f"memory.json: the field {name!r} is missing")
        values = dict(record)
        values["encoding"] = Encoding.from_json(record["encoding"])
        labels = record["label_names"]
        if not isinstance(labels, list) or not all(isinstance(v, str | int | bool) for v in labels):
            raise FormatError("memory.json: label_names must be a list of strings, integers or booleans")
        values["label_names"] = tuple(labels)
        kinds: dict[str, type | tuple[type, ...]] = {
            "ordered": bool,
            "method": str,
            "selector": str,
            "weights": str,
            "structure": dict,
            "seed": int,
            "items": int,
            "entropy": (int, float),
            "data_hash": str,
            "first_label": int,
            "reject_from": (int, type(None)),
            "options": dict,
            "reading": dict,
        }
        for name, kind in kinds.items():
            if not isinstance(values[name], kind):
                raise FormatError(f"memory.json: {name} has the wrong type, {type(values[name]).__name__}")
        values["entropy"] = float(values["entropy"])
        return cls(**values)
