"""Encode all items of a source at once, making the symbol table from them where the encoding has one.

Symbols are numbered in code-point order of everything read, so ids do not depend on the order of rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from memcap.data.encoding import Encoding
from memcap.data.origin import Origin, brief
from memcap.data.symbols import KINDS, split_item
from memcap.errors import ConfigurationError, DataError, DomainError, nearest

Progress = Callable[[int, int, str], None]
"""Called with (done, total, what) now and then; may print, must not raise."""
EVERY = 1 << 15


def resolve_encoding(encoding: str | Path | Encoding) -> str | Encoding:
    """The name of an encoding that is learnt from data, or an `Encoding` that is ready (bytes, a tokenizer.json).

    Raises:
        ConfigurationError: if it is neither a known name nor a path to a tokenizer.json.
        MissingExtraError: if a tokenizer is asked for and the package is not installed.
    """
    if isinstance(encoding, Encoding):
        return encoding
    names = [kind for kind in KINDS if kind not in ("tokenizer", "vectors")]
    if encoding in names:
        return Encoding.of_bytes() if encoding == "bytes" else str(encoding)
    if isinstance(encoding, Path) or str(encoding).endswith(".json") or Path(encoding).is_file():
        return Encoding.from_tokenizer_file(encoding)
    hint = nearest(str(encoding), names)
    raise ConfigurationError(
        f"no encoding {encoding!r}{hint}; expected {', '.join(names)} or the path of a tokenizer.json"
    )


def encode_items(
    items: Sequence[object],
    encoding: str | Encoding,
    rows: Int64[np.ndarray, " rows"],
    origin: Origin,
    progress: Progress | None = None,
) -> tuple[Int64[np.ndarray, " tokens"], Int64[np.ndarray, " rows"], Encoding]:
    """Ids of all items one after the other, the length of each, and the encoding (learnt if it was given by name).

    Raises:
        DataError: an item of the wrong type, or an empty one; names the place.
        DomainError: a symbol that a given encoding does not know; names the place.
    """
    split = encoding.encode if isinstance(encoding, Encoding) else partial(split_item, encoding)
    numbered = _Numbering(encoding)
    pieces: list[Int64[np.ndarray, " tokens"]] = []
    lengths = np.empty(len(items), dtype=np.int64)
    for start in range(0, len(items), EVERY):  # a block at a time: millions of small lists would slow the interpreter
        symbols: list[object] = []
        for i in range(start, min(start + EVERY, len(items))):
            before = len(symbols)
            try:
                symbols.extend(split(items[i]))
            except (DataError, DomainError) as error:
                raise type(error)(f"{origin.at(int(rows[i]))}: {error}") from None
            lengths[i] = len(symbols) - before
            if len(symbols) == before:
                got = f" (from {brief(items[i])})" if items[i] else ""
                raise DataError(f"{origin.at(int(rows[i]))}: empty sequence{got}")
        pieces.append(numbered.ids(symbols))
        if progress is not None:
            progress(min(start + EVERY, len(items)), len(items), "encoding")
    flat, learnt = numbered.finish(np.concatenate(pieces))
    return flat, lengths, learnt


class _Numbering:
    """Numbers symbols as they come; `finish` renumbers them in code-point order."""

    def __init__(self, encoding: str | Encoding) -> None:
        self.encoding = encoding
        self.provisional: defaultdict[object, int] = defaultdict()
        self.provisional.default_factory = self.provisional.__len__

    @property
    def learns(self) -> bool:
        return not isinstance(self.encoding, Encoding) and self.encoding != "integers"

    def ids(self, symbols: list[Any]) -> Int64[np.ndarray, " tokens"]:
        numbers = map(self.provisional.__getitem__, symbols) if self.learns else symbols
        return np.fromiter(numbers, dtype=np.int64, count=len(symbols))

    def finish(self, flat: Int64[np.ndarray, " tokens"]) -> tuple[Int64[np.ndarray, " tokens"], Encoding]:
        if isinstance(self.encoding, Encoding):
            return flat, self.encoding
        if not self.learns:
            return flat, Encoding.of_integers(int(flat.max()) + 1)
        learnt = Encoding.of_symbols(self.encoding, sorted(map(str, self.provisional)))
        rank = np.array([learnt.index[str(symbol)] for symbol in self.provisional], dtype=np.int64)
        return rank[flat], learnt
