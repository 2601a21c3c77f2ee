"""The numbers of a memory folder: dense tensors in safetensors, or integers of any size as hexadecimal strings.

Only bytes to layers and back; folders, headers and certificates are in `memcap.model.files`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors

from memcap.errors import FormatError, PrecisionError
from memcap.exact.affine import Affine, integers
from memcap.exact.network import Network
from memcap.exact.ranges import limit_of
from memcap.model.network_json import PAIRS, Fields, dense_arrays, from_dense, grouped_names
from memcap.version import __version__

FORMAT_VERSION = 1
"""Version of the folder format; this and all earlier ones are read."""

MEMORY, TENSORS, INTEGERS, CERTIFICATE = "memory.json", "weights.safetensors", "weights.json", "certificate.json"


def tensors_of(network: Network, dtype: str, limit: int) -> dict[str, NDArray[Any]]:
    """``NAME.weight`` and ``NAME.bias`` of every map in ``dtype``.

    Raises:
        PrecisionError: if a number does not fit.
    """
    grouped = grouped_names(network)
    tensors: dict[str, NDArray[Any]] = {}
    for name, layer in network.maps():
        if layer.largest > limit:
            raise PrecisionError(
                f"layer {name}: a weight of {layer.largest.bit_length()} bits does not fit {dtype}; save it as 'exact'"
            )
        weight, bias = dense_arrays(layer, PAIRS if name in grouped else "dense")
        tensors[f"{name}.weight"], tensors[f"{name}.bias"] = weight.astype(dtype), bias.astype(dtype)
    return tensors


def integers_of(network: Network) -> dict[str, Any]:
    """Every map as [row, column, hex] triples and a list of hex biases."""
    maps = {
        name: {
            "weight": [
                [int(r), int(c), hex(int(w))] for r, c, w in zip(layer.row, layer.column, layer.weight, strict=True)
            ],
            "bias": [hex(int(b)) for b in layer.bias],
        }
        for name, layer in network.maps()
    }
    return {"format": "memcap integers", "format_version": FORMAT_VERSION, "maps": maps}


def read_text(folder: Path, name: str) -> str:
    """A text file of the folder; `FormatError` if it is missing or unreadable."""
    try:
        return (folder / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FormatError(f"{folder / name} is missing; this is not a complete memory folder") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{folder / name} cannot be read: {error}") from None


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """A JSON object of the folder; `FormatError` if it is truncated or something else."""
    try:
        record = json.loads(read_text(folder, name))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise FormatError(f"{folder / name}: truncated or not JSON ({where}: {error.msg})") from None
    except (RecursionError, ValueError) as error:
        raise FormatError(f"{folder / name}: not usable JSON ({error})") from None
    return Fields(record, name).record


class TensorReader:
    """Layers out of ``weights.safetensors``: right names, shapes and type, finite, whole and in the exact range."""

    def __init__(self, folder: Path, dtype: str) -> None:
        self.dtype, self.limit = dtype, limit_of(dtype)
        file = folder / TENSORS
        try:
            self.tensors: dict[str, NDArray[Any]] = load_tensors(file.read_bytes())
        except FileNotFoundError:
            raise FormatError(f"{file} is missing; this is not a complete memory folder") from None
        except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
            raise FormatError(f"{file}: truncated or not safetensors ({error})") from None

    def affine(self, name: str, shape: tuple[int, int], storage: str) -> Affine:
        if storage == PAIRS and shape[1] != 2 * shape[0]:
            raise FormatError(f"{MEMORY}: layer {name!r} of shape {shape} cannot be stored as pairs")
        weight = self._take(f"{name}.weight", (shape[0], 2) if storage == PAIRS else shape)
        return from_dense(shape, storage, weight, self._take(f"{name}.bias", (shape[0],)))

    def _take(self, name: str, shape: tuple[int, ...]) -> NDArray[np.int64]:
        if name not in self.tensors:
            raise FormatError(f"{TENSORS}: the entry {name!r} is missing")
        array = self.tensors.pop(name)
        if array.shape != shape or array.dtype != np.dtype(self.dtype):
            raise FormatError(
                f"{TENSORS}: entry {name!r} must be {self.dtype} of shape {shape}, got {array.dtype} {array.shape}"
            )
        if array.dtype != np.int64:
            good = np.isfinite(array) & (array == np.rint(array)) & (np.abs(array) <= float(self.limit or 0))
            if not good.all():
                value = float(array[~good].reshape(-1)[0])
                raise FormatError(f"{TENSORS}: entry {name!r} holds {value!r}, not an exact integer of {self.dtype}")
        return array.astype(np.int64)

    def finish(self) -> None:
        if self.tensors:
            raise FormatError(f"{TENSORS}: unknown entry {next(iter(self.tensors))!r}")


class IntegerReader:
    """Layers out of ``weights.json``: integers of any size as hexadecimal strings."""

    def __init__(self, folder: Path) -> None:
        fields = Fields(read_json(folder, INTEGERS), INTEGERS)
        if fields.record.get("format") != "memcap integers":
            raise FormatError(f"{folder / INTEGERS}: these are not memcap weights")
        version = fields.take("format_version", int)
        if not 1 <= version <= FORMAT_VERSION:
            raise FormatError(
                f"{folder / INTEGERS}: format version {version}; this memcap, {__version__}, reads up to "
                f"{FORMAT_VERSION}"
            )
        self.maps = dict(fields.take("maps", dict))

    def affine(self, name: str, shape: tuple[int, int], storage: str) -> Affine:
        if name not in self.maps:
            raise FormatError(f"{INTEGERS}: the entry {name!r} is missing")
        entry = Fields(self.maps.pop(name), INTEGERS, name)
        bias = [entry.integer(b, "bias") for b in entry.take("bias", list)]
        if len(bias) != shape[0]:
            raise FormatError(f"{INTEGERS}: {name}.bias must hold {shape[0]} numbers, got {len(bias)}")
        seen: dict[tuple[int, int], int] = {}
        for item in entry.take("weight", list):
            if not isinstance(item, list) or len(item) != 3 or not all(type(v) is int for v in item[:2]):
                raise FormatError(f"{INTEGERS}: {name}.weight must list [row, column, number], got {item!r}")
            row, column = item[0], item[1]
            if not (0 <= row < shape[0] and 0 <= column < shape[1]) or (row, column) in seen:
                raise FormatError(f"{INTEGERS}: {name}.weight [{row}, {column}] is outside {shape} or given twice")
            if storage == PAIRS and column // 2 != row:
                raise FormatError(f"{INTEGERS}: {name}.weight [{row}, {column}] is not one of a pair layer")
            seen[row, column] = entry.integer(item[2], "weight")
        return Affine.from_entries(*shape, [(r, c, w) for (r, c), w in seen.items()], integers(bias))

    def finish(self) -> None:
        if self.maps:
            raise FormatError(f"{INTEGERS}: unknown entry {next(iter(self.maps))!r}")
