"""Names that readers see: what a column is called, its symbol and its unit, and how numbers are written.

Not here: colours and fonts (``theme``).  Used by the charts, the page and the per-cell table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Label:
    """How a column is shown: ``samples N (sequences)``.

    Attributes:
        name: words.
        symbol: as in the theory pages; empty when there is none.
        unit: empty for a pure number.
    """

    name: str
    symbol: str = ""
    unit: str = ""

    @property
    def title(self) -> str:
        """For an axis.

        >>> Label("samples", "N", "sequences").title
        'samples N (sequences)'
        """
        return " ".join(part for part in (self.name, self.symbol, f"({self.unit})" if self.unit else "") if part)

    @property
    def short(self) -> str:
        """The symbol where there is one, else the words."""
        return self.symbol or self.name


LABELS = {
    "vocabulary": Label("vocabulary", "V", "tokens"),
    "length": Label("sequence length", "L", "tokens"),
    "samples": Label("samples", "N", "sequences"),
    "dimension": Label("embedding dimension", "d"),
    "width": Label("MLP width", "m", "units"),
    "facts": Label("facts", "F"),
    "answers": Label("answers", "V"),
    "heads": Label("heads", "H"),
    "steps": Label("gradient steps"),
    "bits": Label("weight width", "", "bits"),
    "label_noise": Label("label noise", "", "probability"),
    "recall": Label("recall", "", "share of test sequences"),
    "clean_recall": Label("recall on clean tokens", "", "share of tokens"),
    "attention_success": Label("attention success", "", "share of sequences"),
    "attention_mass": Label("attention mass on the informative position"),
    "seconds": Label("time", "", "s"),
    "parameters": Label("non-zero parameters", "P"),
    "bits_per_parameter": Label("memorised", "", "bits per parameter"),
    "snr": Label("signal-to-noise ratio"),
}
"""Columns with a symbol or a unit; any other column is shown by its own name."""


def label(column: str) -> Label:
    """The label of a column; ``predicted_recall`` is ``predicted recall`` with the unit of recall.

    >>> label("predicted_recall").title
    'predicted recall (share of test sequences)'
    """
    if column in LABELS:
        return LABELS[column]
    if column.startswith("predicted_"):
        base = label(column.removeprefix("predicted_"))
        return Label(f"predicted {base.name}", base.symbol, base.unit)
    return Label(column.replace("_", " "))


def heading(column: str) -> str:
    """Name and symbol without the unit: ``samples N``."""
    shown = label(column)
    return f"{shown.name} {shown.symbol}".strip()


def number(value: object, digits: int = 3) -> str:
    """A number as people write it: integers in full up to a million, else ``digits`` significant ones.

    >>> number(20000), number(0.123456), number(3e9), number(float("nan"))
    ('20,000', '0.123', '3e+09', '–')
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return str(value)
    plain = float(value)
    if math.isnan(plain):
        return "–"
    if math.isinf(plain):
        return "∞" if plain > 0 else "−∞"
    if plain == int(plain) and abs(plain) < 1e6:
        return f"{int(plain):,}".replace("-", "−")
    return f"{plain:.{digits}g}".replace("-", "−") if abs(plain) < 1e6 else f"{plain:.{digits}g}"


def power(value: float) -> str:
    """An exponent in raised digits.

    >>> power(-1.5)
    '⁻¹·⁵⁰'
    """
    return f"{value:.2f}".translate(str.maketrans("-.0123456789", "⁻·⁰¹²³⁴⁵⁶⁷⁸⁹"))


def compact(value: object) -> str:
    """A number in a few characters, for the marks of an axis or a bar.

    >>> compact(20250), compact(64_000), compact(3.14159), compact(1_250_000.0)
    ('20.2k', '64k', '3.1', '1.25M')
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return str(value)
    plain = float(value)
    if not math.isfinite(plain):
        return number(plain)
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(plain) >= size:
            return f"{plain / size:.3g}".replace("-", "−") + suffix if plain / size < 1000 else f"{plain:.2g}"
    whole = plain == int(plain)
    return (f"{int(plain)}" if whole else f"{plain:.2g}" if abs(plain) < 10 else f"{plain:.0f}").replace("-", "−")
