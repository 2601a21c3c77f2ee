"""One cell of a study: everything that defines it, and the hash of all that, which is its name.

A cell says what to compute, never how it went; how it went is a ``Record`` (record.py).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

FORMAT = 1
"""Version of the store's format and of the identity; part of every identity."""


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: one text for one value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True)
class Cell:
    """One setting of one measurement.

    Attributes:
        task: the measurement's name.
        version: the measurement's version; raised by its author when the same settings mean another number.
        settings: every setting of the measurement, defaults included, the seed apart; plain JSON values.
        seed: of every random stream in the cell.
        place: where the measurement is imported from; not part of the identity (the same code may move).
        group: cells with equal ``group`` share an expensive part; not part of the identity.
    """

    task: str
    version: int
    settings: Mapping[str, Any]
    seed: int
    place: str = field(default="", metadata={"defines": False})
    group: str = field(default="", metadata={"defines": False})

    @cached_property
    def identity(self) -> str:
        """128 bits of SHA-256 over every defining field and the format version, in hexadecimal.

        >>> Cell("toy", 1, {"x": 1}, 0).identity == Cell("toy", 1, {"x": 1}, 0, place="toys:toy").identity
        True
        """
        defining = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.metadata.get("defines", True)}
        defining["settings"] = dict(self.settings)
        defining["format"] = FORMAT
        return hashlib.sha256(canonical(defining).encode()).hexdigest()[:32]

    def describe(self) -> str:
        """Settings and seed in one line, for people."""
        return " ".join(f"{k}={v}" for k, v in [*self.settings.items(), ("seed", self.seed)])
