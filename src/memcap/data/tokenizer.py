"""A tokenizer given as tokenizer.json, through the optional package ``tokenizers``; nothing is downloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memcap.data.origin import shorten
from memcap.errors import DataError, require_extra

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def load_tokenizer(text: str, name: str = "tokenizer.json") -> Tokenizer:
    """A `tokenizers.Tokenizer` from the text of its ``tokenizer.json``, with padding and truncation switched off.

    Raises:
        MissingExtraError: if the package ``tokenizers`` is not installed.
        DataError: if the text is not a tokenizer.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise require_extra("tokenizers", "tokenizers") from None
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the binding raises plain Exception
        raise DataError(f"{name}: not a tokenizer.json ({shorten(str(error), 120)})") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
