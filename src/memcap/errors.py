"""Every error memcap raises on purpose.

One base class, so that a caller can write ``except MemcapError``; each child also inherits the builtin a Python
programmer would expect.  A message says what was expected, what came, where, and what to do next.  The command line
prints the message alone and exits with 2 for a wrong call or wrong input, 1 for a failed run.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


class MemcapError(Exception):
    """Base of all errors that memcap raises on purpose."""

    exit_code = 2


class DataError(MemcapError, ValueError):
    """Input data cannot be used: a missing column, a broken line, nulls, one class only, ..."""


@dataclass(frozen=True)
class ConflictGroup:
    """Rows that are one item to the memory but carry different labels.

    Attributes:
        rows: one row number (1-based, as in the file) per distinct label.
        labels: the distinct labels, as read, in the same order as ``rows``.
    """

    rows: tuple[int, ...]
    labels: tuple[object, ...]


class ConflictError(DataError):
    """The same item carries different labels.

    Attributes:
        kind: ``"duplicate-sequence"`` (identical rows), ``"permutation"`` (same tokens in another order, read as
            multisets) or ``"token"`` (equal tokens of one sequence with different labels, sequence to sequence).
        groups: all groups, not only the ones the message shows.
    """

    def __init__(self, message: str, *, kind: str, groups: tuple[ConflictGroup, ...]) -> None:
        super().__init__(message)
        self.kind = kind
        self.groups = groups


class ConfigurationError(MemcapError, ValueError):
    """An option, key or combination of options that does not exist or does not fit."""


class DomainError(MemcapError, ValueError):
    """An input lies outside the range that a network was built for."""


class PrecisionError(MemcapError, ArithmeticError):
    """A value does not fit the exact integers of the requested number format."""


class HashUnlucky(MemcapError, RuntimeError):
    """Every seed that was tried left the construction without a solution."""

    exit_code = 1


class FormatError(MemcapError, ValueError):
    """A stored file is truncated, of an unknown version, or not what its name says."""


class MissingExtraError(MemcapError, ImportError):
    """An optional dependency is not installed; the message names the command that installs it."""


class FitError(MemcapError, ValueError):
    """A fit or an interval cannot be supported by the points given."""

    exit_code = 1


class RunError(MemcapError, RuntimeError):
    """A run that started could not finish: a NaN appeared, a worker died, the disk is full, ..."""

    exit_code = 1


def nearest(name: str, valid: Iterable[str]) -> str:
    """A hint `` (did you mean 'x'?)`` for a misspelt ``name``, or an empty string.

    >>> nearest("learning_rte", ["learning_rate", "length"])
    " (did you mean 'learning_rate'?)"
    """
    close = difflib.get_close_matches(name, list(valid), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def missing_folder(path: str | os.PathLike[str]) -> ConfigurationError:
    """The error to raise when the folder that is to hold ``path`` does not exist: nothing makes folders on the way, and
    what would be written there is not computed first."""
    return ConfigurationError(f"{path}: the folder does not exist; create {Path(path).absolute().parent} first")


def require_extra(module: str, extra: str) -> MissingExtraError:
    """The error to raise when optional ``module`` is missing; names the command that installs ``extra``."""
    return MissingExtraError(f"this needs the package {module!r}; install it with: pip install 'memcap[{extra}]'")
