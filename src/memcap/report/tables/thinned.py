"""Tables that are small enough to draw, and the span of a logarithmic axis over them."""

from __future__ import annotations

import numpy as np
import pandas as pd

MOST_MARKS = 3000


def thinned(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Every k-th row of a table with more rows than a chart can show, and a sentence that says so.

    >>> thinned(pd.DataFrame({"a": range(9000)}))[1]
    ' Every 3rd of 9,000 marks is drawn.'
    """
    step = -(-len(table) // MOST_MARKS)
    if step <= 1:
        return table, ""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(step % 10 if step % 100 not in (11, 12, 13) else 0, "th")
    return table.iloc[::step].reset_index(drop=True), f" Every {step}{ending} of {len(table):,} marks is drawn."


def span(*tables: pd.DataFrame) -> tuple[float, float]:
    """From the smallest to the largest finite positive number."""
    values = np.concatenate([t.to_numpy(float).ravel() for t in tables])
    values = values[np.isfinite(values) & (values > 0)]
    return float(values.min()), float(values.max())
