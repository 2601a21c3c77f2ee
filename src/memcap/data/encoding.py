"""How a raw item (text, list of words, integers) becomes a sequence of token ids, and back.

An `Encoding` is small, immutable and stored inside a saved memory, so that the memory needs nothing else.  Tables are
made from data in ``learn.py``; this file only applies them.  Text is never normalised: two spellings of ``é`` are two
symbols.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int64

from memcap.data.origin import brief, shorten
from memcap.data.padding import pad_rows
from memcap.data.projection import VectorProjection
from memcap.data.symbols import KINDS, LARGEST_VOCABULARY, UNITS, one_text, split_item
from memcap.data.textfile import read_text
from memcap.data.tokenizer import load_tokenizer
from memcap.errors import ConfigurationError, DataError, DomainError, FormatError, nearest

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True, eq=True)
class Encoding:
    """How raw items become token ids in ``[0, vocabulary_size)``.

    Attributes:
        kind: ``words`` (pattern ``\\w+|[^\\w\\s]``, or lists of strings as they are), ``characters`` (code points),
            ``bytes`` (of the UTF-8 text), ``integers`` (ids given directly), ``tokenizer`` or ``vectors``.
        vocabulary_size: number of ids V; the padding id is V itself.
        symbols: id -> symbol, for words and characters; empty otherwise.
        tokenizer_json: the whole text of tokenizer.json, for kind ``tokenizer``; empty otherwise.
        projection: real vectors to integers, for kind ``vectors``; None otherwise.

    >>> encoding = Encoding.of_symbols("words", ["a", "b"])
    >>> encoding.encode("b a b"), encoding.decode([1, 0, 1])
    ([1, 0, 1], ['b', 'a', 'b'])
    """

    kind: str
    vocabulary_size: int
    symbols: tuple[str, ...] = ()
    tokenizer_json: str = ""
    projection: VectorProjection | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigurationError(f"no encoding {self.kind!r}{nearest(self.kind, KINDS)}; known: {', '.join(KINDS)}")
        if not 1 <= self.vocabulary_size <= LARGEST_VOCABULARY:
            raise DataError(f"vocabulary size must be in [1, 2^62], got {self.vocabulary_size}")

    @classmethod
    def of_symbols(cls, kind: str, symbols: Iterable[str]) -> Encoding:
        """Words or characters with this table; id = place in ``symbols``."""
        table = tuple(symbols)
        return cls(kind, len(table), symbols=table)

    @classmethod
    def of_integers(cls, vocabulary_size: int) -> Encoding:
        """Integers in [0, ``vocabulary_size``), as they are."""
        return cls("integers", vocabulary_size)

    @classmethod
    def of_vectors(cls, projection: VectorProjection) -> Encoding:
        """Real vectors through a fixed-point projection."""
        return cls("vectors", projection.size, projection=projection)

    @classmethod
    def of_bytes(cls) -> Encoding:
        """The 256 byte values of UTF-8 text."""
        return cls("bytes", 256)

    @classmethod
    def of_tokenizer(cls, text: str, name: str = "tokenizer.json") -> Encoding:
        """A tokenizer from the text of its tokenizer.json (extra ``tokenizers``)."""
        ids = load_tokenizer(text, name).get_vocab(with_added_tokens=True).values()
        if not ids:
            raise DataError(f"{name}: the tokenizer has no tokens")
        return cls("tokenizer", max(ids) + 1, tokenizer_json=text)

    @classmethod
    def from_tokenizer_file(cls, path: str | Path) -> Encoding:
        """A tokenizer from a tokenizer.json on disk; its whole text is kept inside the encoding."""
        return cls.of_tokenizer(read_text(path), str(path))

    @property
    def unit(self) -> str:
        """What one token is called in messages: word, character, byte, integer, token."""
        return UNITS[self.kind]

    @property
    def pad(self) -> int:
        """The padding id, one past the last token id."""
        return self.vocabulary_size

    @cached_property
    def index(self) -> dict[str, int]:
        """Symbol -> id, for words and characters."""
        return {symbol: i for i, symbol in enumerate(self.symbols)}

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The live tokenizer, for kind ``tokenizer``."""
        return load_tokenizer(self.tokenizer_json)

    def encode(self, raw: object) -> list[int]:
        """Token ids of one raw item.

        Raises:
            DomainError: if a symbol is not in the table (named), or an integer is past the vocabulary.
            DataError: if ``raw`` is of a type that this encoding does not read.
        """
        if self.kind == "tokenizer":
            return list(self.tokenizer.encode(one_text(raw, self.kind), add_special_tokens=False).ids)
        if self.projection is not None:
            return [int(number) for number in self.projection.project(np.atleast_2d(np.asarray(raw, dtype=np.float64)))]
        parts = split_item(self.kind, raw)
        if self.kind == "bytes":
            return [int(part) for part in parts]
        if self.kind == "integers":
            for part in parts:
                if int(part) >= self.vocabulary_size:
                    raise DomainError(
                        f"unknown integer {part}: the data holds integers up to {self.vocabulary_size - 1}"
                    )
            return [int(part) for part in parts]
        index = self.index
        ids = [index.get(str(part), -1) for part in parts]
        if -1 in ids:
            symbol = str(parts[ids.index(-1)])
            raise DomainError(f"unknown {self.unit} {shorten(symbol)!r}: it does not occur in the data")
        return ids

    def encode_batch(
        self, items: Iterable[object], *, length: int | None = None
    ) -> tuple[Int64[np.ndarray, "rows length"], Int64[np.ndarray, " rows"]]:
        """Ids of many raw items, right-padded with `pad`, and their true lengths.

        Args:
            items: raw items; ``length``: pad to this many tokens (default: the longest item).

        Raises:
            DomainError: an unknown symbol, an empty item, or one longer than ``length``; names the item (1-based).
            DataError: an item of a type that this encoding does not read.
        """
        if not isinstance(items, Iterable):
            raise DataError(f"expected a list of items, got {brief(items)}")
        if isinstance(items, str | bytes):
            raise DataError(f"expected a list of items, got one {type(items).__name__}; write [{brief(items)}]")
        encoded: list[list[int]] = []
        for number, raw in enumerate(items, 1):
            try:
                ids = self.encode(raw)
            except (DomainError, DataError) as error:
                raise type(error)(f"item {number}: {error}") from None
            if not ids:
                raise DomainError(f"item {number}: empty sequence {brief(raw)}")
            if length is not None and len(ids) > length:
                raise DomainError(f"item {number}: {len(ids)} {self.unit}s, longer than the longest known ({length})")
            encoded.append(ids)
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        flat = np.fromiter((i for ids in encoded for i in ids), dtype=np.int64, count=int(lengths.sum()))
        return pad_rows(flat, lengths, self.pad, width=length), lengths

    def decode(self, ids: Iterable[int]) -> Any:
        """The raw form of ``ids`` (padding left out): list of words, text, bytes, or list of integers.

        For kind ``tokenizer`` the text is what the tokenizer makes of the ids; it need not encode back to them.
        """
        plain = [int(i) for i in ids if int(i) != self.pad]
        outside = next((i for i in plain if not 0 <= i < self.vocabulary_size), None)
        if outside is not None:
            raise DomainError(f"token id {outside} is outside [0, {self.vocabulary_size})")
        if self.kind in ("integers", "vectors"):
            return plain
        if self.kind == "bytes":
            return bytes(plain)
        if self.kind == "tokenizer":
            return self.tokenizer.decode(plain, skip_special_tokens=False)
        parts = [self.symbols[i] for i in plain]
        return "".join(parts) if self.kind == "characters" else parts

    def translate(self, tokens: Int64[np.ndarray, "rows length"], other: Encoding) -> Int64[np.ndarray, "rows length"]:
        """``tokens`` of this encoding in the ids of ``other``: padding to padding, -1 for symbols ``other`` lacks.

        Raises:
            DomainError: if the kinds differ, or the tokenizers.
        """
        if self.kind != other.kind:
            raise DomainError(f"the data is encoded as {self.kind}, expected {other.kind}")
        if self.projection != other.projection:
            raise DomainError("the data is projected to integers in another way than expected")
        if self.tokenizer_json != other.tokenizer_json:
            raise DomainError("the data is encoded with another tokenizer.json than the one expected")
        if self.symbols:
            table = [*(other.index.get(symbol, -1) for symbol in self.symbols), other.pad]
            return np.asarray(np.array(table, dtype=np.int64)[tokens])
        known = np.where(tokens < other.vocabulary_size, tokens, -1)
        return np.where(tokens == self.pad, other.pad, known)

    def symbol(self, token: int) -> str | int:
        """One id as a label: its word, character or tokenizer entry, or the integer itself."""
        if self.kind in ("integers", "bytes", "vectors"):
            return int(token)
        if self.kind == "tokenizer":
            return str(self.tokenizer.id_to_token(int(token)))
        return self.symbols[int(token)]

    def show(self, ids: Iterable[int]) -> str:
        """``ids`` as a short text for messages."""
        raw = self.decode(ids)
        if isinstance(raw, bytes):
            raw = raw.decode("utf-8", "backslashreplace")
        return shorten(" ".join(map(str, raw)) if isinstance(raw, list) else raw)

    def to_json(self) -> dict[str, Any]:
        """Everything needed to encode again, as plain JSON values; the caller writes the format version."""
        record: dict[str, Any] = {"kind": self.kind, "vocabulary_size": self.vocabulary_size}
        if self.kind in ("words", "characters"):
            record["symbols"] = list(self.symbols)
        if self.kind == "tokenizer":
            record["tokenizer_json"] = self.tokenizer_json
            record["tokenizer_sha256"] = hashlib.sha256(self.tokenizer_json.encode()).hexdigest()
        if self.projection is not None:
            record["projection"] = self.projection.to_json()
        return record

    @classmethod
    def from_json(cls, record: object) -> Encoding:
        """The encoding that `to_json` wrote.

        Raises:
            FormatError: on missing or unknown keys, wrong types, or a tokenizer that is not the one stored.
        """
        if not isinstance(record, dict):
            raise FormatError(f"encoding: expected an object, got {type(record).__name__}")
        kind = record.get("kind")
        if kind not in KINDS:
            raise FormatError(f"encoding: unknown kind {kind!r}; known: {', '.join(KINDS)}")
        wanted = {"kind", "vocabulary_size"}
        wanted |= {"symbols"} if kind in ("words", "characters") else set()
        wanted |= {"tokenizer_json", "tokenizer_sha256"} if kind == "tokenizer" else set()
        wanted |= {"projection"} if kind == "vectors" else set()
        if set(record) != wanted:
            odd = ", ".join(sorted(map(repr, set(record) ^ wanted)))
            raise FormatError(f"encoding: missing or unknown keys {odd}; expected {', '.join(sorted(wanted))}")
        size = record["vocabulary_size"]
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= LARGEST_VOCABULARY:
            raise FormatError(f"encoding: vocabulary_size must be an integer in [1, 2^62], got {size!r}")
        if kind == "bytes" and size != 256:
            raise FormatError(f"encoding: bytes have 256 values, got vocabulary_size {size}")
        if kind in ("words", "characters"):
            symbols = record["symbols"]
            if not isinstance(symbols, list) or not all(isinstance(s, str) for s in symbols):
                raise FormatError("encoding: symbols must be a list of strings")
            if len(symbols) != size or len(set(symbols)) != size:
                raise FormatError(f"encoding: expected {size} distinct symbols, got {len(set(symbols))}")
            return cls.of_symbols(kind, symbols)
        if kind == "tokenizer":
            text = record["tokenizer_json"]
            if not isinstance(text, str) or hashlib.sha256(text.encode()).hexdigest() != record["tokenizer_sha256"]:
                raise FormatError("encoding: the stored tokenizer is not the one its hash names")
            return cls("tokenizer", size, tokenizer_json=text)
        if kind == "vectors":
            projection = VectorProjection.from_json(record["projection"])
            if projection.size != size:
                raise FormatError(f"encoding: the projection has {projection.size} values, vocabulary_size is {size}")
            return cls.of_vectors(projection)
        return cls(kind, size)
