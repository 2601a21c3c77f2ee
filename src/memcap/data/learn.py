"""Encode all items of a source at once, making the symbol table from them where the encoding has one.

Symbols are numbered in code-point order of everything read, so ids do not depend on the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from jaxtyping import Int64

from memcap.data.encoding import Encoding
from memcap.data.origin import Origin, shorten
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
    names = [kind for kind in KINDS if kind != "tokenizer"]
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
    split: Callable[[object], Sequence[object]]
    if isinstance(encoding, Encoding):
        split = encoding.encode
    else:
        kind = encoding

        def split(raw: object) -> Sequence[object]:
            return split_item(kind, raw)

    parts: list[Sequence[object]] = []
    for i, raw in enumerate(items):
        try:
            symbols = split(raw)
        except (DataError, DomainError) as error:
            raise type(error)(f"{origin.at(int(rows[i]))}: {error}") from None
        if not symbols:
            got = f" (from {shorten(repr(raw))})" if raw else ""
            raise DataError(f"{origin.at(int(rows[i]))}: empty sequence{got}")
        parts.append(symbols)
        if progress is not None and (i + 1) % EVERY == 0:
            progress(i + 1, len(items), "encoding")
    lengths = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts))
    flat, learnt = _number(chain.from_iterable(parts), int(lengths.sum()), encoding)
    if progress is not None:
        progress(len(items), len(items), "encoding")
    return flat, lengths, learnt


def _number(
    symbols: chain[object], count: int, encoding: str | Encoding
) -> tuple[Int64[np.ndarray, " tokens"], Encoding]:
    if isinstance(encoding, Encoding) or encoding == "integers":
        flat = np.fromiter(symbols, dtype=np.int64, count=count)
        return flat, encoding if isinstance(encoding, Encoding) else Encoding.of_integers(int(flat.max()) + 1)
    listed = [str(symbol) for symbol in symbols]
    learnt = Encoding.of_symbols(encoding, sorted(set(listed)))
    return np.fromiter(map(learnt.index.__getitem__, listed), dtype=np.int64, count=count), learnt
