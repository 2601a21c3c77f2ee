"""Columns as lines of text, CSV or JSON: what the ``csv`` and ``json`` modules write, a column at a time.

``csv_text`` and ``json_text`` say what one value becomes; the tests compare whole files with the two modules.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from pydantic_core import to_json

from memcap.study.record import plain

_BLOCK = 5000  # rows whose texts are in memory together
_PLAIN = {str, int, float, bool}
_CSV_SPECIAL = re.compile(r'[,"\r\n]')
_JSON_SPECIAL = re.compile(r'["\\\x00-\x1f]')


def csv_text(value: Any) -> str:
    """One value in CSV: nothing for ``None``, ``NaN``, ``true``, lists and dicts as JSON, quotes where they must be."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else _word(value)
    text = (
        json.dumps(plain(value), ensure_ascii=False, allow_nan=False) if isinstance(value, list | dict) else str(value)
    )
    return '"' + text.replace('"', '""') + '"' if _CSV_SPECIAL.search(text) else text


def json_text(value: Any) -> str:
    """One value in strict JSON; NaN and infinities are the texts ``"NaN"``, ``"Infinity"``, ``"-Infinity"``."""
    return json.dumps(_strict(value), ensure_ascii=False, allow_nan=False)


def csv_lines(columns: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    """A line of names, then one per row."""
    yield ",".join(map(csv_text, columns)) + "\n"
    for block in _blocks(columns):
        row = _Row()
        for place, values in enumerate(block.values()):
            row.add("," if place else "", _texts(values, csv_text))
        yield from row.lines("\n")


def json_lines(columns: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    """One object per row, without the names whose value is ``None``."""
    for block in _blocks(columns):
        row = _Row()
        for name, values in block.items():
            start, texts = f", {json_text(name)}: ", _texts(values, json_text)
            if None in values:
                row.add("", ["" if v is None else start + t for v, t in zip(values, texts, strict=True)])
            else:
                row.add(start, texts)
        for line in row.lines(""):
            yield "{" + line[2:] + "}\n"


class _Row:
    """What the lines of a block are joined from: columns of texts, and the text that all rows have between them."""

    def __init__(self) -> None:
        self._parts: list[Iterable[str]] = []
        self._between = ""
        self._rows = 0

    def add(self, before: str, texts: list[str]) -> None:
        """Append ``before`` and a text to every row."""
        self._rows = len(texts)
        if _alike(texts):
            self._between += before + texts[0]
            return
        self._parts += [repeat(self._between + before), texts]
        self._between = ""

    def lines(self, end: str) -> Iterator[str]:
        """Every row with ``end`` behind it."""
        return map("".join, zip(*self._parts, repeat(self._between + end, self._rows), strict=False))


def _blocks(columns: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Sequence[Any]]]:
    rows = len(next(iter(columns.values()), ()))
    for start in range(0, rows, _BLOCK):
        yield {name: values[start : start + _BLOCK] for name, values in columns.items()}


def _texts(values: Sequence[Any], text_of: Callable[[Any], str]) -> list[str]:
    """``text_of`` every value; values of one plain kind together."""
    kinds = set(map(type, values))
    if len(kinds) == 1 and kinds <= _PLAIN and _alike(values):
        return [text_of(values[0])] * len(values)
    if kinds == {float}:
        return _float_texts(values, text_of)
    if kinds == {int}:
        return list(map(str, values))
    if kinds == {str}:
        return _string_texts(values, text_of)
    if type(None) in kinds:
        rest = iter(_texts([v for v in values if v is not None], text_of) if len(kinds) > 1 else ())
        nothing = text_of(None)
        return [nothing if v is None else next(rest) for v in values]
    return list(map(text_of, values))


def _alike(values: Sequence[Any]) -> bool:
    """Whether all values, of one type, are equal; a zero may be a negative one, so zeros of floats are not."""
    first = values[0]
    if first != values[-1] or (first == 0 and isinstance(first, float)):
        return False
    return values.count(first) == len(values)


def _float_texts(values: Sequence[float], text_of: Callable[[Any], str]) -> list[str]:
    """The shortest digits that give each number back; pydantic finds them three times faster than ``repr``."""
    written = to_json(values, inf_nan_mode="strings").decode()[1:-1]
    if text_of is csv_text:
        written = written.replace('"', "")
    texts = written.split(",")
    if "e" in written or "0.0000" in written:  # it writes 1e-7 for 1e-07 and 0.00001 for 1e-05
        texts = [repr(v) if "e" in t or "0.0000" in t else t for v, t in zip(values, texts, strict=True)]
    return texts


def _string_texts(values: Sequence[str], text_of: Callable[[Any], str]) -> list[str]:
    different = set(values)
    special = _JSON_SPECIAL if text_of is json_text else _CSV_SPECIAL
    if special.search("".join(different)):
        told = {text: text_of(text) for text in different}
        return [told[text] for text in values]
    return [f'"{text}"' for text in values] if text_of is json_text else list(values)


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _strict(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return _word(value)
    if isinstance(value, dict):
        return {k: _strict(v) for k, v in value.items()}
    return [_strict(v) for v in value] if isinstance(value, list) else value
