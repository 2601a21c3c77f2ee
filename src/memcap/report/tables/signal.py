"""Signal against noise: which source makes up how much of the noise at each setting.

The budget comes from the cells (a result that is a dictionary of variances by source, or columns named
``variance_<source>`` or ``variances.<source>``) or, for memcap's own retrieval tasks, from the theory of the attention
step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from memcap.errors import MemcapError
from memcap.report.cells import Cells
from memcap.report.theory import prediction, retrieval_task

DRIVE = ("drive", "signal")
BUDGETS = ("variances", "budget", "noise", "snr_budget")
PREFIXES = ("variance_", "variances.")
COLUMNS = ["x", "source", "variance", "share", "ratio", "rank"]


def signal_shares(cells: Cells, *, x: str) -> pd.DataFrame:
    """One row per value of x and source of noise.

    Args:
        cells: of one line: only x and the seed vary; cells that differ in the seed are averaged.
        x: setting along the line.

    Returns:
        ``x, source, variance`` (of the score, in the study's units), ``share`` (of the total at that x), ``ratio``
        (drive² over the total variance; NaN when the drive is not known), ``rank`` (order of the
        sources, the largest overall first).  Empty when the cells hold no budget and none follows from the settings.
    """
    rows = []
    for value, group in cells.frame.groupby(x, sort=True):
        budget, drive = _budget(group, cells)
        total = sum(budget.values())
        if total > 0:
            ratio = drive**2 / total
            rows += [(value, name, v, v / total, ratio) for name, v in budget.items() if v > 0]
    table = pd.DataFrame(rows, columns=COLUMNS[:-1])
    if not len(table):
        return pd.DataFrame(columns=COLUMNS)
    order = table.groupby("source")["share"].mean().sort_values(ascending=False)
    table["rank"] = table["source"].map({name: i for i, name in enumerate(order.index)}).astype(int)
    return table.sort_values(["x", "rank"], kind="stable").reset_index(drop=True)


def _budget(group: pd.DataFrame, cells: Cells) -> tuple[dict[str, float], float]:
    drive = next((float(group[d].astype(float).mean()) for d in DRIVE if d in cells.results), math.nan)
    for name in BUDGETS:
        if name in group:
            stated = [v for v in group[name] if isinstance(v, Mapping)]
            if stated:
                sources = dict.fromkeys(k for v in stated for k in v)
                return {k: sum(float(v.get(k, 0.0)) for v in stated) / len(stated) for k in sources}, drive
    columns = [c for c in cells.results if c.startswith(PREFIXES)]
    if columns:
        means = group[columns].astype(float).mean()
        return {_source(c): float(means[c]) for c in columns}, drive
    return _theory(group.iloc[0], cells)


def _source(column: str) -> str:
    for prefix in PREFIXES:
        column = column.removeprefix(prefix)
    return column.replace("_", " ")


def _theory(row: Any, cells: Cells) -> tuple[dict[str, float], float]:
    """The budget of the attention step for settings that are a retrieval task; empty for any other study."""
    task = retrieval_task(row, cells.settings)
    if task is None:
        return {}, math.nan
    try:
        expected = prediction(task)
    except MemcapError:
        return {}, math.nan
    return dict(expected.variances), float(expected.drive)
