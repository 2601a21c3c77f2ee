"""Plain text as next-token data: every window of ``window`` tokens, labelled with the token that follows it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Int64

from memcap.data.encoding import Encoding
from memcap.data.labels import Label
from memcap.data.learn import Progress, encode_items
from memcap.data.origin import Origin
from memcap.data.sequences import SequenceData
from memcap.data.textfile import read_text
from memcap.errors import ConfigurationError, DataError

MOST_CELLS = 2**30


def check_window(window: object, stride: object) -> None:
    """Refuse a window or stride that is not a whole number of at least 1."""
    for name, value in (("window", window), ("stride", stride)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigurationError(f"{name} must be a whole number >= 1, got {value!r}")


def read_text_windows(
    path: str | Path,
    *,
    window: int,
    stride: int = 1,
    encoding: str | Encoding = "words",
    ordered: bool = True,
    on_conflict: str = "error",
    progress: Progress | None = None,
) -> SequenceData:
    """Windows of a text file and the token after each; ``rows`` are 1-based positions of a window's first token.

    Raises:
        DataError: if the text is too short for one window, or not UTF-8.
        ConflictError: if equal windows are followed by different tokens and ``on_conflict`` is ``"error"``.
    """
    name = str(path)
    text = read_text(path)
    flat, _, learnt = encode_items([text], encoding, np.ones(1, dtype=np.int64), Origin(name, "line"), progress)
    return text_windows(flat, learnt, window=window, stride=stride, ordered=ordered, on_conflict=on_conflict, name=name)


def text_windows(
    ids: Int64[np.ndarray, " tokens"],
    encoding: Encoding,
    *,
    window: int,
    stride: int,
    ordered: bool,
    on_conflict: str,
    name: str = "",
) -> SequenceData:
    """Windows of an encoded text; the reader's second half, apart so that text need not lie in a file."""
    unit = encoding.unit
    if len(ids) < window + 1:
        raise DataError(
            f"{name or 'the text'}: {len(ids)} {unit}s are too few for a window of {window} and the {unit} after it"
        )
    starts = np.arange(0, len(ids) - window, stride, dtype=np.int64)
    if len(starts) * window > MOST_CELLS:
        raise DataError(
            f"{name or 'the text'}: {len(starts)} windows of {window} {unit}s take "
            f"{len(starts) * window * 8 / 2**30:.0f} GiB: use a larger stride or a part of the text"
        )
    view = np.lib.stride_tricks.sliding_window_view(ids[:-1], window)[::stride]
    following = ids[starts + window]
    used, codes = np.unique(following, return_inverse=True)
    names: list[Label] = [encoding.symbol(int(token)) for token in used]
    return SequenceData.from_rows(
        np.ascontiguousarray(view).reshape(-1),
        np.full(len(starts), window, dtype=np.int64),
        codes.reshape(-1).astype(np.int64),
        names,
        starts + 1,
        encoding,
        ordered=ordered,
        on_conflict=on_conflict,
        origin=Origin(name, unit),
    )
