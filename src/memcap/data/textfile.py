"""A file as text: UTF-8 with or without a byte-order mark, line ends as they are, and the place of a wrong byte."""

from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path

from memcap.errors import DataError, nearest


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a file.

    Raises:
        DataError: if there is no such file (with the nearest name), it is a folder, unreadable or empty.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        near = [e.name for e in path.parent.iterdir() if _alike(e.stem, path.stem)] if path.parent.is_dir() else []
        raise DataError(f"{path}: no such file{nearest(path.name, near)}") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder, expected a file") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if not content:
        raise DataError(f"{path}: the file is empty")
    return content


def _alike(stem: str, other: str) -> bool:
    """Names without their suffix, which alone makes short names look alike."""
    return SequenceMatcher(None, stem, other).ratio() >= 0.7


def decode_text(content: bytes, name: str) -> str:
    """``content`` as UTF-8 text without a byte-order mark; nothing is normalised.

    Raises:
        DataError: if it is not UTF-8; names the line and the byte.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{name}, line 1: looks like UTF-16, expected UTF-8; save the file as UTF-8")
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - (content.rfind(b"\n", 0, error.start) + 1) + 1
        raise DataError(
            f"{name}, line {line}: byte {column} of the line (0x{content[error.start]:02X}) is not UTF-8; "
            "save the file as UTF-8"
        ) from None
    if not text:
        raise DataError(f"{name}: the file is empty")
    return text


def read_text(path: str | Path) -> str:
    """A whole file as UTF-8 text.

    Raises:
        DataError: as `read_bytes` and `decode_text`.
    """
    return decode_text(read_bytes(path), str(path))
