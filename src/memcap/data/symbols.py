"""One raw item (text, list of words, integers) as its symbols; what the symbols are numbered by is not in here.

Text is never normalised: two spellings of ``é`` are two symbols.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from memcap.data.origin import brief, shorten
from memcap.errors import DataError

KINDS = ("words", "characters", "bytes", "integers", "tokenizer", "vectors")
UNITS = {
    "words": "word",
    "characters": "character",
    "bytes": "byte",
    "integers": "integer",
    "tokenizer": "token",
    "vectors": "vector",
}
LARGEST_VOCABULARY = 2**62
"""Ids are int64 and the padding id is one past the last, so ids stop at 2^62 - 1."""

_WORD = re.compile(r"\w+|[^\w\s]")
_BETWEEN = re.compile(r"\s*[,;]\s*|\s+")


def split_words(text: str) -> list[str]:
    r"""Words and single marks, by the Unicode pattern ``\w+|[^\w\s]``; white space only separates.

    >>> split_words("Don't panic, Zoë!")
    ['Don', "'", 't', 'panic', ',', 'Zoë', '!']
    """
    return _WORD.findall(text)


def _written_integers(text: str) -> list[int]:
    body = text.strip()
    if body[:1] + body[-1:] in ("[]", "()"):
        body = body[1:-1].strip()
    pieces = _BETWEEN.split(body) if body else []
    for piece in pieces:
        if not (piece.isascii() and piece.isdigit()):
            if piece[:1] == "-" and piece[1:].isdigit():
                raise DataError(f"token ids must not be negative, got {shorten(piece)}")
            raise DataError(
                f"expected whole numbers such as '1 2 3' or '1,2,3', got {shorten(piece)!r} in {shorten(text)!r}"
            )
        if len(piece) > 19 and len(piece.lstrip("0")) > 19:
            raise DataError(f"token ids must be below 2^62, got {shorten(piece)}")
    return [int(piece if len(piece) <= 19 else piece.lstrip("0") or "0") for piece in pieces]


def parse_integers(raw: object) -> list[int]:
    """Token ids from an integer, a list of integers, or text such as ``"1 2 3"``, ``"1,2,3"``, ``"[1, 2, 3]"``.

    Raises:
        DataError: if anything in it is not a whole number in [0, 2^62).
    """
    if isinstance(raw, str):
        numbers = _written_integers(raw)
    elif isinstance(raw, bytes):
        raise DataError(f"expected whole numbers, got bytes {brief(raw)}")
    else:
        numbers = []
        for value in raw if isinstance(raw, Iterable) else [raw]:
            plain = value.item() if isinstance(value, np.generic) else value
            if isinstance(plain, bool) or not isinstance(plain, int):
                raise DataError(f"expected whole numbers, got {brief(plain)} of type {type(plain).__name__}")
            numbers.append(plain)
    for number in numbers:
        if number < 0:
            raise DataError(f"token ids must not be negative, got {brief(number)}")
        if number >= LARGEST_VOCABULARY:
            raise DataError(f"token ids must be below 2^62, got {brief(number)}")
    return numbers


def _no_surrogates(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            code = ord(text[error.start])
            raise DataError(f"text holds half a character (lone surrogate U+{code:04X}); repair the file") from None
    return text


def one_text(raw: object, kind: str) -> str:
    """``raw`` if it is text that can be written as UTF-8; ``kind`` is the encoding that asks, for the message."""
    if isinstance(raw, str):
        return _no_surrogates(raw)
    hint = "; pass encoding='integers'" if _whole_numbers(raw) else ""
    raise DataError(f"encoding {kind!r} expects text, got {brief(raw)} of type {type(raw).__name__}{hint}")


def _whole_numbers(raw: object) -> bool:
    if isinstance(raw, np.ndarray):
        return raw.dtype.kind in "iu"
    values = raw if isinstance(raw, list | tuple) else [raw]
    return bool(values) and all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in values)


def split_item(kind: str, raw: object) -> Sequence[str] | Sequence[int]:
    """The symbols of one raw item: strings for words and characters, integers for bytes and integers.

    Raises:
        DataError: if ``raw`` is of a type that ``kind`` does not read.
    """
    if kind == "integers":
        return parse_integers(raw)
    if kind == "bytes":
        return raw if isinstance(raw, bytes) else one_text(raw, kind).encode()
    if kind == "characters":
        return one_text(raw, kind)
    if isinstance(raw, list | tuple | np.ndarray) and all(isinstance(part, str) for part in raw):
        return [_no_surrogates(str(part)) for part in raw]
    return split_words(one_text(raw, kind))
