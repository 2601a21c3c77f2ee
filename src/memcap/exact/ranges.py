"""The range proof: no partial sum, in any order, leaves the exact integers of the number format.

One record with one bound per layer and the kind of its proof: from the weights and input ranges alone (see
`memcap.exact.static_range`), or an upper bound over every certified item, taken while evaluating.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memcap.errors import ConfigurationError, PrecisionError, nearest
from memcap.exact.engines import Audit
from memcap.exact.network import Network
from memcap.exact.static_range import static_bounds

LIMITS: dict[str, int | None] = {"float64": 2**53, "float32": 2**24, "int64": 2**63 - 1, "exact": None}
"""Number format -> largest magnitude up to which it holds every integer; None: integers of any size."""

TOO_NARROW = {"float16": 2**11, "bfloat16": 2**8}
"""Number formats that exist but cannot hold a memory, with their exact range."""

STATIC = "from the weights"
STATIC_KEYS = "from the weights and the range of all items' keys"
ALL_ITEMS = "over all items"


def limit_of(weights: str) -> int | None:
    """The exact range of a number format.

    Raises:
        PrecisionError: for float16 and bfloat16, which cannot hold the states.
        ConfigurationError: for any other unknown format.
    """
    if weights in TOO_NARROW:
        raise PrecisionError(
            f"{weights} holds every integer only up to {TOO_NARROW[weights]}; hash states and words need at least 24 "
            "bits: use float32, float64, int64 or exact"
        )
    if weights not in LIMITS:
        hint = nearest(weights, LIMITS)
        raise ConfigurationError(f"weights must be one of {', '.join(LIMITS)}, got {weights!r}{hint}")
    return LIMITS[weights]


@dataclass(frozen=True)
class LayerRange:
    """Largest magnitude that any partial sum of a layer can reach, and how it was proved."""

    layer: str
    bound: int
    kind: str


@dataclass(frozen=True)
class RangeProof:
    """Bounds per layer against the exact integers of a number format; truthy when every layer is within.

    Attributes:
        weights: the number format.
        limit: its exact range, None for integers of any size (no proof needed, no layers listed).
        layers: one bound per affine map, in order.
    """

    weights: str
    limit: int | None
    layers: tuple[LayerRange, ...] = ()

    @property
    def largest(self) -> LayerRange | None:
        """The layer that comes closest to the limit."""
        return max(self.layers, key=lambda layer: layer.bound, default=None)

    @property
    def kinds(self) -> dict[str, int]:
        """Number of layers per kind of proof."""
        found: dict[str, int] = {}
        for layer in self.layers:
            found[layer.kind] = found.get(layer.kind, 0) + 1
        return found

    def __bool__(self) -> bool:
        return self.limit is None or (bool(self.layers) and all(r.bound <= self.limit for r in self.layers))

    def __str__(self) -> str:
        if self.limit is None:
            return "integers of any size: no range to prove"
        top = self.largest
        if top is None:
            return "no range was proved"
        kinds = ", ".join(f"{n} layers {kind}" for kind, n in self.kinds.items())
        sign = "<=" if top.bound <= self.limit else ">"
        return (
            f"largest partial sum {top.bound:,} {sign} {self.limit:,} ({self.weights}) in {top.layer}; proof: {kinds}"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; bounds are decimal strings, since they exceed what many JSON readers keep exactly."""
        return {
            "weights": self.weights,
            "limit": None if self.limit is None else str(self.limit),
            "layers": [[r.layer, str(r.bound), r.kind] for r in self.layers],
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> RangeProof:
        limit = record["limit"]
        layers = tuple(LayerRange(str(name), int(bound), str(kind)) for name, bound, kind in record["layers"])
        return cls(str(record["weights"]), None if limit is None else int(limit), layers)


def prove(network: Network, weights: str, audit: Audit | None = None) -> RangeProof:
    """The best proof of every layer.

    From the weights alone where that suffices; else from the weights and the range that the items' keys take after the
    attention (a network promises nothing for the sums of sequences it never saw); else the bound over every item.

    Args:
        audit: taken while all items were evaluated; without it only proofs from the weights are tried.

    Raises:
        ConfigurationError: for an unknown number format.
    """
    limit = limit_of(weights)
    if limit is None:
        return RangeProof(weights, None)
    proofs = [(STATIC, static_bounds(network))]
    if audit is not None:
        if audit.after_attention is not None and any(bound > limit for bound in proofs[0][1].values()):
            proofs.append((STATIC_KEYS, static_bounds(network, after_attention=audit.after_attention)))
        proofs.append((ALL_ITEMS, audit.bound))
    layers = []
    for name, _ in network.maps():
        found = [(kind, bounds[name]) for kind, bounds in proofs]
        within = [f for f in found if f[1] <= limit]
        kind, bound = within[0] if within else min(found, key=lambda f: f[1])
        layers.append(LayerRange(name, bound, kind))
    return RangeProof(weights, limit, tuple(layers))


def format_for(network: Network) -> str:
    """The narrowest of float32, float64 and int64 that provably computes what ``network`` computes.

    Raises:
        PrecisionError: if none does; says which number is too large.
    """
    widest = max((layer.largest, name) for name, layer in network.maps())
    largest = max(static_bounds(network).items(), key=lambda item: item[1])
    for weights in ("float32", "float64", "int64"):
        if max(largest[1], network.unit) <= (limit_of(weights) or 0):
            return weights
    what = f"a weight of {widest[0].bit_length()} bits in layer {widest[1]}"
    if widest[0] <= (limit_of("int64") or 0):
        what = f"a partial sum that may need {largest[1].bit_length()} bits in layer {largest[0]}"
    raise PrecisionError(
        f"this exact network has {what}; float32, float64 and int64 hold integers up to 24, 53 and 63 bits. Evaluate "
        "it in exact integers, or build with weights='float64', 'float32' or 'int64'"
    )
