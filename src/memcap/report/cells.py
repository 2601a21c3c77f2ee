"""What a report reads: one table of cells, and which of its columns are settings, results and bookkeeping.

Takes a study (anything with ``frame()`` and ``meta``) or a plain pandas frame.  Nothing here draws or fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from memcap.errors import ConfigurationError, DataError, nearest

BOOKKEEPING = frozenset(
    [
        "cell",
        "id",
        "identity",
        "cell_id",
        "key",
        "kind",
        "state",
        "status",
        "seconds",
        "time",
        "timings",
        "started",
        "finished",
        "created",
        "updated",
        "host",
        "device",
        "versions",
        "error",
        "error_type",
        "trace",
        "traceback",
        "attempts",
        "tries",
        "worker",
        "owner",
        "lease",
        "data_hash",
        "store",
        "format",
        "index",
        "batch",
        "cpu_seconds",
        "peak_memory",
        "task",
        "task_version",
        "place",
        "group",
    ]
)
"""Columns that say how a cell was computed; neither a setting nor a result."""

SETTINGS = frozenset(
    [
        "vocabulary",
        "length",
        "samples",
        "dimension",
        "width",
        "activation",
        "embeddings",
        "trigger_in_value",
        "frequencies",
        "label_noise",
        "attention",
        "data",
        "heads",
        "steps",
        "facts",
        "answers",
        "method",
        "weights",
        "bits",
        "optimizer",
        "learning_rate",
        "step_size",
    ]
)
"""Settings of memcap's own measurements, for frames that do not say which columns are settings."""

STATES = ("done", "failed", "lost", "running", "pending")
OUTCOMES = ("recall", "attention_success", "accuracy", "clean_recall")
ALONG = ("samples", "facts", "sequences", "items")


@dataclass(frozen=True)
class Cells:
    """The cells of a study, ready for the tables.

    Attributes:
        frame: one row per cell, with columns ``cell`` (identity), ``state``, the settings and the results.
        settings: names of the columns that define a cell, the seed apart.
        results: names of the numeric result columns.
        meta: what the study says about itself: ``question``, ``method``, ``versions``, ...
        aside: cells that are not drawn (predictions that did not finish); their failures are listed all the same.
    """

    frame: pd.DataFrame
    settings: tuple[str, ...]
    results: tuple[str, ...]
    meta: dict[str, Any] = field(default_factory=dict)
    aside: pd.DataFrame | None = None

    @property
    def done(self) -> pd.DataFrame:
        """The cells that finished."""
        return self.frame[self.frame["state"] == "done"]

    @property
    def axes(self) -> tuple[str, ...]:
        """Settings that take two values or more, the seed apart; most values first."""
        counts = {s: self.frame[s].nunique(dropna=False) for s in self.settings}
        return tuple(sorted((s for s, n in counts.items() if n > 1), key=lambda s: -counts[s]))

    @property
    def fixed(self) -> dict[str, Any]:
        """Settings that are the same in every cell, and their value."""
        return {s: self.frame[s].iloc[0] for s in self.settings if s not in self.axes}

    def require(self, name: str, what: str, valid: Iterable[str]) -> str:
        """``name`` if it is one of ``valid``; otherwise an error that names the nearest."""
        valid = list(valid)
        if name not in valid:
            raise ConfigurationError(
                f"the study has no {what} {name!r}{nearest(name, valid)}; {what}s: {', '.join(valid) or 'none'}"
            )
        return name

    def at(self, fixed: Mapping[str, Any]) -> Cells:
        """The cells with these settings."""
        keep = np.ones(len(self.frame), bool)
        for name, value in fixed.items():
            keep &= (self.frame[name] == value).to_numpy(bool)
        return replace(self, frame=self.frame[keep])


def read_cells(source: object, *, settings: Sequence[str] | None = None) -> Cells:
    """The cells of a study or of a pandas frame.

    Args:
        source: a study (``frame()``, optionally ``meta``) or a frame with one row per cell.
        settings: which columns define a cell; by default what the study says (``meta["settings"]`` or
            ``frame.attrs["settings"]``), else memcap's known settings, else every column before ``state``.

    Raises:
        DataError: for an empty study or something that is neither a study nor a frame.
        ConfigurationError: for a setting that is not a column.
    """
    meta: dict[str, Any] = {}
    if isinstance(source, pd.DataFrame):
        frame = source
    elif callable(getattr(source, "frame", None)):
        frame = source.frame()  # type: ignore[attr-defined]
        stated = getattr(source, "meta", None)
        stated = stated() if callable(stated) else stated
        meta = dict(stated) if isinstance(stated, Mapping) else {}
    else:
        raise DataError(f"a report needs a study or a pandas frame with one row per cell, got {type(source).__name__}")
    if not len(frame):
        raise DataError("the study has no cells, so there is nothing to report; run it first: memcap study run GRID")
    meta = {**{str(k): v for k, v in frame.attrs.items()}, **meta}
    frame = frame.reset_index(drop=True)
    names = _settings(frame, settings if settings is not None else meta.get("settings"))
    columns = {str(c): frame[c] for c in frame.columns}
    if "state" not in columns:
        columns["state"] = pd.Series(["done"] * len(frame))
    if "cell" not in columns:
        identity = next((c for c in ("cell_id", "identity", "id", "key") if c in columns), None)
        columns["cell"] = columns.pop(identity) if identity else pd.Series([str(i + 1) for i in range(len(frame))])
    plain = pd.DataFrame({name: _plain(column) for name, column in columns.items()})
    skip = BOOKKEEPING | set(names) | {"seed"}
    results = tuple(
        c
        for c in plain.columns
        if c not in skip and pd.api.types.is_numeric_dtype(plain[c]) and bool(plain[c].notna().any())
    )
    return Cells(plain, names, results, meta)


def _settings(frame: pd.DataFrame, stated: object) -> tuple[str, ...]:
    columns = [str(c) for c in frame.columns]
    if stated is not None:
        names = [stated] if isinstance(stated, str) else [str(s) for s in stated]  # type: ignore[attr-defined]
        for name in names:
            if name not in columns:
                raise ConfigurationError(
                    f"no column {name!r}{nearest(name, columns)} to use as a setting; columns: {', '.join(columns)}"
                )
        return tuple(names)
    if columns[:2] == ["identity", "task"] and "state" in columns:  # the frame of a study
        several = ["task"] if frame["task"].nunique() > 1 else []
        between = [c for c in columns[2 : columns.index("state")] if c != "seed"]
        return tuple(several + [c for c in between if bool(frame[c].notna().any())])
    known = [c for c in columns if c in SETTINGS]
    before = columns[: columns.index("state")] if "state" in columns else []
    leading = [c for c in before if c not in BOOKKEEPING and c != "seed"]
    names = leading if set(known) <= set(leading) and leading else known
    if not names:
        raise DataError(
            "cannot tell settings from results: say which columns define a cell, settings=[...]; "
            f"columns: {', '.join(columns)}"
        )
    return tuple(names)


def _plain(column: pd.Series) -> pd.Series:
    """The column with plain NumPy numbers where it is numeric (nullable and arrow types become float with NaN)."""
    if pd.api.types.is_bool_dtype(column) and not column.isna().any():
        return column.astype(bool)
    if pd.api.types.is_integer_dtype(column) and not column.isna().any():
        return column.astype(np.int64)
    if pd.api.types.is_numeric_dtype(column):
        return column.astype(np.float64)
    return column.astype(object)


def choose_outcome(cells: Cells, outcome: str | None) -> str:
    """The result to plot: the one asked for, else recall or whatever the study measured first.

    Raises:
        ConfigurationError: for an unknown name, with the nearest valid one.
        DataError: when no cell has a numeric result.
    """
    if outcome is not None:
        return cells.require(outcome, "result", cells.results)
    if not cells.results:
        counts = cells.frame["state"].value_counts()
        states = ", ".join(f"{counts[s]} {s}" for s in counts.index)
        raise DataError(f"no cell has a numeric result to plot ({states}); see the errors with: memcap study status")
    measured = [r for r in cells.results if not r.startswith("predicted_")]
    return next((o for o in OUTCOMES if o in measured), (measured or list(cells.results))[0])


def choose_axes(cells: Cells, x: str | None, y: str | None) -> tuple[str | None, str | None]:
    """The two axes of the phase diagram; y is the one that is varied to reach the target (samples where there are).

    Either may be None when the study varies fewer than two settings.

    Raises:
        ConfigurationError: for an unknown setting, with the nearest valid one, or x and y the same.
    """
    names = list(cells.settings)
    for chosen in (x, y):
        if chosen is not None:
            cells.require(chosen, "setting", names)
    if x is not None and x == y:
        raise ConfigurationError(f"x and y must be two settings, got {x!r} twice")
    free = [a for a in cells.axes if a not in (x, y)]
    numeric = [a for a in free if pd.api.types.is_numeric_dtype(cells.frame[a])]
    free = numeric + [a for a in free if a not in numeric]
    if y is None:
        y = next((a for a in ALONG if a in free), free[0] if free else None)
        free = [a for a in free if a != y]
    if x is None:
        x = next((a for a in free if y is None or not determined(cells, a, [y])), None)
    return x, y


def determined(cells: Cells, name: str, by: Sequence[str]) -> bool:
    """Whether every combination of the settings ``by`` comes with one value of ``name``, as with a derived axis."""
    if not by:
        return False
    return bool((cells.frame.groupby(list(by), dropna=False)[name].nunique(dropna=False) == 1).all())
