"""Which network is this: SHA-256 over every stored number, and where two networks first differ.

Evaluation cannot pin down weights (about one change in seven alters no recalled label); this hash does.  It covers the
structure and every entry of every map as an integer.  A zero is covered by its absence: the serialisation lists every
non-zero entry with its position, so turning any zero into something else changes it; -0.0 is the integer 0.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from memcap.exact.affine import Affine
from memcap.exact.network import Block, Network

BIAS = -1
"""Column number that stands for the bias in a `Difference`."""

_DIGEST = 8  # hex digits of a row or column digest: they locate a change, the layer's SHA-256 proves it


def _canonical(layer: Affine) -> list[tuple[int, int, int]]:
    """(row, column, value) of every non-zero entry, the bias as column -1, sorted."""
    entries = [(int(r), int(c), int(w)) for r, c, w in zip(layer.row, layer.column, layer.weight, strict=True)]
    entries += [(r, BIAS, int(b)) for r, b in enumerate(layer.bias)]
    return sorted(e for e in entries if e[2])


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def layer_identity(layer: Affine) -> str:
    """SHA-256 of one affine map: its shape and every entry as an integer."""
    entries = ";".join(f"{r},{c},{w:x}" for r, c, w in _canonical(layer))
    return _sha(f"{layer.outputs}x{layer.inputs}:{entries}")


def structure_of(network: Network) -> dict[str, Any]:
    """Everything of a network but its numbers, as plain JSON; integers that may be large are hexadecimal strings."""
    stages: list[dict[str, Any]] = []
    for stage in network.stages:
        if isinstance(stage, Block):
            stages.append({"block": stage.name, "layers": len(stage.layers), "grouped": sorted(stage.grouped)})
        else:
            stages.append({"attention": stage.name})
    return {
        "inputs": list(network.inputs),
        "input_range": [[hex(low), hex(high)] for low, high in network.input_range],
        "length": network.length,
        "channels": list(network.channels),
        "stages": stages,
        "unit": hex(network.unit),
        "per_position": network.per_position,
        "key_limbs": list(network.key_limbs) if network.key_limbs else None,
    }


def network_identity(network: Network) -> str:
    """SHA-256 (64 hex digits) over the structure and every stored number of ``network``.

    Source: derived here; specification of the certificate, part (a), identity.
    """
    layers = [[name, layer_identity(layer)] for name, layer in network.maps()]
    text = json.dumps(["memcap network 1", structure_of(network), layers], sort_keys=True, separators=(",", ":"))
    return _sha(text)


@dataclass(frozen=True)
class LayerPrint:
    """What a certificate keeps of one layer: its hash, and short digests that locate a change.

    Attributes:
        shape: (outputs, inputs).
        sha256: `layer_identity`.
        rows, columns: index -> short digest of every row (bias included) and column (the bias is column -1) that is
            not zero throughout.
    """

    shape: tuple[int, int]
    sha256: str
    rows: dict[int, str]
    columns: dict[int, str]

    def to_json(self) -> dict[str, Any]:
        def packed(digests: dict[int, str]) -> str:
            return " ".join(f"{i}:{d}" for i, d in sorted(digests.items()))

        return {
            "shape": list(self.shape),
            "sha256": self.sha256,
            "rows": packed(self.rows),
            "columns": packed(self.columns),
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> LayerPrint:
        def unpacked(text: str) -> dict[int, str]:
            pairs = (part.split(":", 1) for part in text.split())
            return {int(i): digest for i, digest in pairs}

        outputs, inputs = record["shape"]
        return cls((outputs, inputs), record["sha256"], unpacked(record["rows"]), unpacked(record["columns"]))


def layer_print(layer: Affine) -> LayerPrint:
    """The print of one layer."""
    entries = _canonical(layer)
    digests: list[dict[int, str]] = []
    for axis in (0, 1):
        lines: dict[int, list[str]] = {}
        for entry in entries:
            lines.setdefault(entry[axis], []).append(f"{entry[1 - axis]},{entry[2]:x}")
        digests.append({i: _sha(";".join(line))[:_DIGEST] for i, line in lines.items()})
    return LayerPrint((layer.outputs, layer.inputs), layer_identity(layer), digests[0], digests[1])


def network_prints(network: Network) -> dict[str, LayerPrint]:
    """Layer name -> print, for every map of ``network``."""
    return {name: layer_print(layer) for name, layer in network.maps()}


@dataclass(frozen=True)
class Difference:
    """One layer that is not the certified one.

    Attributes:
        layer: its name.
        row, column: the first entry that differs (column -1: the bias), None where it cannot be told from the digests.
        detail: the same in words.
    """

    layer: str
    row: int | None
    column: int | None
    detail: str

    def __str__(self) -> str:
        return f"layer {self.layer}: {self.detail}"


def differences(network: Network, prints: dict[str, LayerPrint]) -> tuple[Difference, ...]:
    """The layers of ``network`` that differ from the ``prints`` of a certified one; empty when every number agrees."""
    found = []
    layers = dict(network.maps())
    for name in [*prints, *(n for n in layers if n not in prints)]:
        if name not in layers:
            found.append(Difference(name, None, None, "is missing"))
        elif name not in prints:
            found.append(Difference(name, None, None, "was not certified"))
        elif layer_identity(layers[name]) != prints[name].sha256:
            found.append(_locate(name, layer_print(layers[name]), prints[name]))
    return tuple(found)


def _locate(name: str, new: LayerPrint, old: LayerPrint) -> Difference:
    if new.shape != old.shape:
        return Difference(name, None, None, f"expected shape {old.shape}, found {new.shape}")
    rows = _changed(new.rows, old.rows)
    columns = _changed(new.columns, old.columns)
    if not rows or not columns:  # only the sort order of short digests could hide a line: one chance in 2^32
        return Difference(name, None, None, "an entry differs")
    more = "" if len(rows) == len(columns) == 1 else f" (first of entries in {len(rows)} rows, {len(columns)} columns)"
    if len(rows) == 1 or len(columns) == 1:  # all changes share a line, so its first crossing is one of them
        column = min(columns, key=lambda c: (c == BIAS, c))
        what = f"bias of output {rows[0]}" if column == BIAS else f"weight [{rows[0]}, {column}]"
        return Difference(name, rows[0], column, f"the {what} differs{more}")
    return Difference(name, rows[0], None, f"row {rows[0]} differs{more}")


def _changed(new: dict[int, str], old: dict[int, str]) -> list[int]:
    return sorted(i for i in new.keys() | old.keys() if new.get(i) != old.get(i))
