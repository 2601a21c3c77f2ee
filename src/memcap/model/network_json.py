"""A network taken apart for storage and put together again: structure as JSON, numbers as named arrays.

Knows nothing of files; `memcap.model.files` writes and reads them.  Every check here names the entry that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memcap.errors import ConfigurationError, FormatError, MemcapError
from memcap.exact.affine import Affine
from memcap.exact.identity import structure_of
from memcap.exact.network import Attention, Block, Network

PAIRS, DENSE = "pairs", "dense"


def describe(network: Network) -> dict[str, Any]:
    """Structure of ``network`` and the name, shape and storage of every map, in order."""
    grouped = grouped_names(network)
    maps = [
        {"name": name, "shape": [layer.outputs, layer.inputs], "storage": PAIRS if name in grouped else DENSE}
        for name, layer in network.maps()
    ]
    return {**structure_of(network), "maps": maps}


def grouped_names(network: Network) -> set[str]:
    """Names of the maps that are stored as (outputs, 2) pairs."""
    return {
        f"{number:04d}.{stage.name}.{depth}"
        for number, stage in enumerate(network.stages)
        if isinstance(stage, Block)
        for depth in stage.grouped
    }


class Fields:
    """Checked access to a JSON object; every error names the file and the field."""

    def __init__(self, record: Any, file: str, where: str = "") -> None:
        self.file, self.where = file, where
        if not isinstance(record, dict):
            raise FormatError(f"{file}: {where or 'the content'} must be a JSON object, got {type(record).__name__}")
        self.record = record

    def take(self, name: str, *kinds: type) -> Any:
        if name not in self.record:
            raise FormatError(f"{self.file}: the field {self.path(name)} is missing")
        value = self.record[name]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = " or ".join(k.__name__ for k in kinds)
            raise FormatError(f"{self.file}: {self.path(name)} must be {wanted}, got {type(value).__name__}")
        return value

    def integer(self, value: Any, name: str) -> int:
        """A hexadecimal string as an integer."""
        digits = value.removeprefix("-").removeprefix("0x") if isinstance(value, str) else ""
        if not digits or not all(d in "0123456789abcdef" for d in digits):
            raise FormatError(
                f"{self.file}: {self.path(name)} must be a hexadecimal integer like '0x1f', got {value!r}"
            )
        return int(value, 16)

    def path(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name


def assemble(record: Any, file: str, affine: Callable[[str, tuple[int, int], str], Affine]) -> Network:
    """The network described by ``record``, its numbers taken from ``affine(name, shape, storage)``.

    Raises:
        FormatError: for anything missing, mistyped or inconsistent; names ``file`` and the field.
    """
    fields = Fields(record, file, "network")
    maps: dict[str, tuple[tuple[int, int], str]] = {}
    for number, item in enumerate(fields.take("maps", list)):
        entry = Fields(item, file, f"network.maps[{number}]")
        shape, storage = entry.take("shape", list), entry.take("storage", str)
        if len(shape) != 2 or not all(isinstance(s, int) and 0 <= s < 2**31 for s in shape):
            raise FormatError(f"{file}: {entry.path('shape')} must be two sizes, got {shape!r}")
        if storage not in (PAIRS, DENSE):
            raise FormatError(f"{file}: {entry.path('storage')} must be 'dense' or 'pairs', got {storage!r}")
        maps[entry.take("name", str)] = ((shape[0], shape[1]), storage)

    def layer(name: str) -> Affine:
        if name not in maps:
            raise FormatError(f"{file}: network.maps has no entry {name!r}")
        shape, storage = maps.pop(name)
        return affine(name, shape, storage)

    embed = layer("embed")
    stages: list[Block | Attention] = []
    for number, item in enumerate(fields.take("stages", list)):
        stage = Fields(item, file, f"network.stages[{number}]")
        if "attention" in stage.record:
            name = stage.take("attention", str)
            value, output = layer(f"{number:04d}.{name}.value"), layer(f"{number:04d}.{name}.output")
            stages.append(Attention(name, value, output))
            continue
        name, layers = stage.take("block", str), stage.take("layers", int)
        grouped = stage.take("grouped", list)
        if not all(isinstance(g, int) and 0 <= g < layers for g in grouped):
            raise FormatError(f"{file}: {stage.path('grouped')} must be indices of layers, got {grouped!r}")
        parts = tuple(layer(f"{number:04d}.{name}.{depth}") for depth in range(layers))
        stages.append(Block(name, parts, frozenset(grouped)))
    read = layer("read")
    if maps:
        raise FormatError(f"{file}: network.maps lists {next(iter(maps))!r}, which no stage uses")
    limbs = fields.take("key_limbs", list, type(None))
    if limbs is not None and (len(limbs) != 2 or not all(isinstance(v, int) and 0 <= v < 64 for v in limbs)):
        raise FormatError(f"{file}: network.key_limbs must be two small integers or null, got {limbs!r}")
    try:
        return Network(
            inputs=_names(fields, "inputs"),
            input_range=_ranges(fields),
            length=fields.take("length", int),
            channels=_names(fields, "channels"),
            embed=embed,
            stages=tuple(stages),
            read=read,
            unit=fields.integer(fields.take("unit", str), "unit"),
            per_position=fields.take("per_position", bool),
            key_limbs=None if limbs is None else (limbs[0], limbs[1]),
        )
    except FormatError:
        raise
    except MemcapError as error:
        raise FormatError(f"{file}: {error}") from None


def _names(fields: Fields, name: str) -> tuple[str, ...]:
    value = fields.take(name, list)
    if not all(isinstance(v, str) for v in value):
        raise FormatError(f"{fields.file}: {fields.path(name)} must be a list of names")
    return tuple(value)


def _ranges(fields: Fields) -> tuple[tuple[int, int], ...]:
    found = []
    for item in fields.take("input_range", list):
        if not isinstance(item, list) or len(item) != 2:
            raise FormatError(f"{fields.file}: network.input_range must list (low, high) pairs, got {item!r}")
        found.append((fields.integer(item[0], "input_range"), fields.integer(item[1], "input_range")))
    if len(found) != len(fields.take("inputs", list)):
        raise FormatError(f"{fields.file}: network.input_range must give one range per input")
    return tuple(found)


def dense_arrays(layer: Affine, storage: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Weight, (outputs, inputs) or (outputs, 2) for pairs, and bias of a layer, as integers.

    Raises:
        ConfigurationError: if an entry of a pair layer lies elsewhere.
    """
    if storage == DENSE:
        return layer.to_dense(), layer.bias
    if layer.inputs != 2 * layer.outputs or bool(np.any(layer.column // 2 != layer.row)):
        raise ConfigurationError("a grouped layer reads inputs 2j and 2j+1 for output j; an entry lies elsewhere")
    pairs = np.zeros((layer.outputs, 2), dtype=layer.weight.dtype)
    pairs[layer.row, layer.column % 2] = layer.weight
    return pairs, layer.bias


def from_dense(shape: tuple[int, int], storage: str, weight: NDArray[np.int64], bias: NDArray[np.int64]) -> Affine:
    """The layer whose stored arrays are given."""
    row, column = np.nonzero(weight)
    values = weight[row, column]
    return Affine.from_arrays(*shape, row, column + 2 * row if storage == PAIRS else column, values, bias)
