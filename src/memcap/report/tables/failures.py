"""What did not come out: cells by state, errors with how often they occurred, lines whose crossing was not seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from memcap.report.cells import STATES, Cells
from memcap.report.labels import label, number
from memcap.study.fits import Critical


def _all(cells: Cells) -> pd.DataFrame:
    """Every cell, the ones that are not drawn included."""
    return cells.frame if cells.aside is None else pd.concat([cells.frame, cells.aside], ignore_index=True)


def state_counts(cells: Cells) -> pd.DataFrame:
    """Cells by state, in the order done, failed, lost, running, pending: ``state, cells, share``."""
    states = _all(cells)["state"]
    counts = states.value_counts()
    names = [s for s in STATES if s in counts.index] + [str(s) for s in counts.index if s not in STATES]
    rows = [(name, int(counts[name]), float(counts[name] / len(states))) for name in names]
    return pd.DataFrame(rows, columns=["state", "cells", "share"])


def error_groups(cells: Cells) -> pd.DataFrame:
    """Failed and lost cells by message: ``state, error, cells, example`` (settings of the first), often first."""
    every = _all(cells)
    failed = every[every["state"].isin(["failed", "lost"])]
    if not len(failed):
        return pd.DataFrame(columns=["state", "error", "cells", "example"])
    text = failed["error"] if "error" in failed else pd.Series("", index=failed.index)
    first = [str(e).strip().splitlines()[0] if isinstance(e, str) and e.strip() else "no message" for e in text]
    rows = failed.assign(message=first)
    found = []
    for (state, message), group in rows.groupby(["state", "message"], sort=False):
        settings = ", ".join(f"{s} = {number(group[s].iloc[0])}" for s in (*cells.axes, "seed") if s in group)
        found.append((str(state), str(message), len(group), settings))
    found.sort(key=lambda row: -row[2])
    return pd.DataFrame(found, columns=["state", "error", "cells", "example"])


def censored_lines(criticals: Iterable[Critical], varied: Sequence[str]) -> pd.DataFrame:
    """Lines whose crossing lies outside the grid: ``line`` (varied settings), ``says`` (``samples ≥ 4,096``)."""
    rows = []
    for line in criticals:
        if line.censored is not None:
            settings = ", ".join(f"{label(k).short} = {number(v)}" for k, v in line.settings.items() if k in varied)
            sign = "≥" if line.censored == "above" else "<"
            rows.append((settings, f"{line.axis} {sign} {number(line.value)} (censored)"))
    return pd.DataFrame(rows, columns=["line", "says"])


def cell_times(cells: Cells, *, x: str) -> pd.DataFrame:
    """Wall time of every finished cell that says it: ``x, cell, seconds``; non-positive times are left out."""
    if "seconds" not in cells.frame:
        return pd.DataFrame(columns=["x", "cell", "seconds"])
    done = cells.done
    table = pd.DataFrame({"x": done[x], "cell": done["cell"], "seconds": done["seconds"].astype(float)})
    return table[table["seconds"] > 0].reset_index(drop=True)
