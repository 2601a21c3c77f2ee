"""What every construction on integer keys returns: the network and how it was made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from memcap.exact.network import Network


@dataclass(frozen=True, eq=False)
class Construction:
    """A network from integer keys to labels, with the facts of its making.

    Attributes:
        network: length 1, inputs ``("key",)`` or the limbs ``("sel", "q")``; it returns the class index of every key.
        method: ``keyless`` | ``keyed`` | ``interpolator``.
        selector: how a key's words are found: ``one-hot`` | ``packed`` | ``step`` | ``ramp`` | ``bucket`` | ``none``.
        weights: ``float64`` | ``float32`` | ``int64`` | ``exact``.
        structure: JSON-able facts (words, bits, lanes, chunks, primes, seed tried, ...).
        relabelable: True when new labels change word weights only.
    """

    network: Network
    method: str
    selector: str
    weights: str
    structure: dict[str, Any] = field(default_factory=dict)
    relabelable: bool = False
