"""Memory folders: ``memory.json``, the weights and ``certificate.json``; written at once or not at all.

Float and int64 memories keep ``weights.safetensors`` (one dense matrix and one bias per map), exact ones
``weights.json`` (integers as hexadecimal strings).  Reading runs no code from the folder and checks all it uses.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from safetensors.numpy import save as save_tensors

from memcap.errors import FormatError, missing_folder
from memcap.exact.certificate import Certificate, read_certificate
from memcap.exact.identity import network_identity
from memcap.exact.network import Network
from memcap.exact.ranges import limit_of
from memcap.model.network_json import Fields, assemble, describe
from memcap.model.weight_files import (
    CERTIFICATE,
    FORMAT_VERSION,
    INTEGERS,
    MEMORY,
    TENSORS,
    IntegerReader,
    TensorReader,
    integers_of,
    read_json,
    read_text,
    tensors_of,
)
from memcap.version import __version__


@dataclass(frozen=True, eq=False)
class Stored:
    """What a memory folder holds.

    Attributes:
        network: put together from the stored numbers.
        header: the memory's own facts, as given to `write_folder`.
        certificate: the stored certificate, if any.
        dtype: number format of the weights.
        identity: hash of the network that was written; compare with `network_identity(network)`.
    """

    network: Network
    header: dict[str, Any]
    certificate: Certificate | None
    dtype: str
    identity: str

    @property
    def intact(self) -> bool:
        """Whether every stored number is the one that was written."""
        return network_identity(self.network) == self.identity

    def require_intact(self) -> None:
        """Refuse changed weights.

        Raises:
            FormatError: if a stored number is not the one that was written.
        """
        if not self.intact:
            raise FormatError(
                f"the stored weights are not the ones that were saved (network {network_identity(self.network)[:16]}, "
                f"expected {self.identity[:16]}); `memcap check` says which layer differs, "
                "and so does memcap.check after memcap.load(path, allow_changed=True)"
            )


def check_destination(path: str | PathLike[str]) -> None:
    """Refuse a place where `write_folder` could not or should not write.

    Raises:
        FormatError: if ``path`` is something else than a memory folder or an empty folder.
        ConfigurationError: if the folder that is to hold it does not exist.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise missing_folder(target)
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise FormatError(f"{target} exists and is not a memory folder; choose another name")
    if target.is_dir() and any(target.iterdir()) and not _is_memory(target):
        raise FormatError(f"{target} exists and is not a memory folder; choose another name or an empty folder")


def _is_memory(folder: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        record = json.loads((folder / MEMORY).read_text(encoding="utf-8"))
        return isinstance(record, dict) and record.get("format") == "memcap memory"
    return False


def write_folder(
    path: str | PathLike[str],
    network: Network,
    header: dict[str, Any],
    certificate: Certificate | None = None,
    dtype: str = "float64",
) -> None:
    """Write a memory folder; an interruption leaves what was there before.

    Args:
        path: the folder; a memory folder that is already there is replaced.
        network: its numbers are stored as they are.
        header: plain JSON, kept as given.
        certificate: kept beside the weights.
        dtype: ``float64`` | ``float32`` | ``int64`` (safetensors) or ``exact`` (hexadecimal integers).

    Raises:
        FormatError: if ``path`` is in use for something else.
        ConfigurationError: if the folder that is to hold it does not exist.
        PrecisionError: if a number does not fit ``dtype``.
    """
    limit = limit_of(dtype)
    record = {
        "format": "memcap memory",
        "format_version": FORMAT_VERSION,
        "memcap": __version__,
        "dtype": dtype,
        "weights": INTEGERS if limit is None else TENSORS,
        "identity": network_identity(network),
        "network": describe(network),
        "header": header,
    }
    files = {MEMORY: _json(record)}
    if limit is None:
        files[INTEGERS] = _json(integers_of(network))
    else:
        files[TENSORS] = save_tensors(
            tensors_of(network, dtype, limit), metadata={"format": f"memcap {FORMAT_VERSION}"}
        )
    if certificate is not None:
        files[CERTIFICATE] = _json(certificate.to_json())
    target = Path(path)
    check_destination(target)
    _write_at_once(target, files)


def _json(record: dict[str, Any]) -> bytes:
    return (json.dumps(record, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()


def _write_at_once(target: Path, files: dict[str, bytes]) -> None:
    """Write beside ``target``, then swap by renaming; nothing half-written is ever under its name."""
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
    old = fresh.with_suffix(".old")
    try:
        fresh.chmod(0o777 & ~_umask())
        for name, content in files.items():
            with open(fresh / name, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        if target.exists():
            target.rename(old)
        fresh.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read_folder(path: str | PathLike[str]) -> Stored:
    """Read a memory folder, checking every name, shape, type and value.

    Changed weights are read as they are, so that `memcap check` can say where they differ: see `Stored.require_intact`.

    Raises:
        FormatError: if it is missing, truncated, of a newer version, or inconsistent; names file and entry.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise FormatError(f"{folder}: there is no memory folder here")
    record = read_json(folder, MEMORY)
    fields = Fields(record, MEMORY)
    if record.get("format") != "memcap memory":
        raise FormatError(f"{folder / MEMORY}: this is not a memcap memory")
    version = fields.take("format_version", int)
    if not 1 <= version <= FORMAT_VERSION:
        raise FormatError(
            f"{folder / MEMORY}: format version {version}, written by memcap {record.get('memcap')!r}; this is memcap "
            f"{__version__}, which reads up to version {FORMAT_VERSION}: install a newer memcap"
        )
    dtype = fields.take("dtype", str)
    if dtype not in ("float64", "float32", "int64", "exact"):
        raise FormatError(f"{MEMORY}: dtype must be float64, float32, int64 or exact, got {dtype!r}")
    reader = IntegerReader(folder) if dtype == "exact" else TensorReader(folder, dtype)
    network = assemble(fields.take("network", dict), MEMORY, reader.affine)
    reader.finish()
    certificate = None
    if (folder / CERTIFICATE).exists():
        certificate = read_certificate(read_text(folder, CERTIFICATE))
    return Stored(network, fields.take("header", dict), certificate, dtype, fields.take("identity", str))
