"""Mean over seeds with its interval: the number drawn for every cell of a grid.

The interval is Student's t for the mean of the repetitions; one repetition has none (NaN), and where all results lie
in [0, 1] so does the interval.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import t as student


def spread(frame: pd.DataFrame, by: Sequence[str], outcome: str, confidence: float = 0.95) -> pd.DataFrame:
    """One row per combination of ``by``: ``value``, ``value_low``, ``value_high`` and ``n`` finite repetitions.

    >>> rows = pd.DataFrame({"d": [8, 8, 16], "recall": [0.2, 0.4, 0.9]})
    >>> spread(rows, ["d"], "recall").round(3).values.tolist()
    [[8.0, 0.3, 0.0, 1.0, 2.0], [16.0, 0.9, nan, nan, 1.0]]
    """
    rows = frame[[*by, outcome]].copy()
    rows[outcome] = rows[outcome].astype(float)
    rows = rows[np.isfinite(rows[outcome])]
    if not len(rows):
        return pd.DataFrame(columns=[*by, "value", "value_low", "value_high", "n"])
    unit = bool(rows[outcome].between(0, 1).all())
    grouped = rows.groupby(list(by), dropna=False, sort=True)[outcome]
    table: pd.DataFrame = grouped.agg(value="mean", deviation="std", n="count").reset_index()
    n = table["n"].to_numpy(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        half = np.where(n > 1, student.ppf(0.5 + confidence / 2, np.maximum(n - 1, 1)) / np.sqrt(n), np.nan)
    half = half * table.pop("deviation").to_numpy(float)
    low, high = table["value"] - half, table["value"] + half
    table["value_low"] = low.clip(0, 1) if unit else low
    table["value_high"] = high.clip(0, 1) if unit else high
    return table[[*by, "value", "value_low", "value_high", "n"]]
