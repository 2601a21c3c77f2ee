"""Predictions beside measurements: from prediction cells of the same study, or from the theory itself.

A study of ``simulate`` cells holds no prediction.  If it also has ``predict`` cells, those are joined by their
settings; otherwise the theory of retrieval tasks is asked once per setting.  No fit, no constant.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pandas as pd

from memcap.errors import MemcapError
from memcap.report.cells import Cells
from memcap.report.tables.axis import plain
from memcap.retrieval.task import RetrievalTask

MOST_PREDICTED = 300
"""Settings that a report predicts itself; at 10–100 ms each a larger study brings its own predictions."""

PREDICTED = ("recall", "clean_recall", "attention_success")
NEEDED = frozenset({"vocabulary", "length", "samples", "dimension"})
PREFIX = "predicted_"


def join_predictions(cells: Cells) -> Cells:
    """The measured cells with the results of ``predict`` cells at the same settings as ``predicted_<result>``.

    A study of predictions only is returned as it is.  Prediction cells leave the frame; the failed ones among them
    are kept in ``aside``, so that no failure is lost.
    """
    if "task" not in cells.frame or "task" not in cells.settings:
        return cells
    theory = cells.frame["task"] == "predict"
    if not theory.any() or theory.all():
        return cells
    rows, measured = cells.frame[theory], cells.frame[~theory].copy()
    keys = [s for s in cells.settings if s not in ("task", "seed") and bool(rows[s].notna().any())]
    shared = [r for r in cells.results if bool(rows.loc[rows["state"] == "done", r].notna().any())]
    found = {_key(row, keys): row for _, row in rows[rows["state"] == "done"].iterrows()}
    matches = [found.get(_key(row, keys)) for _, row in measured.iterrows()]
    for name in shared:
        into = PREFIX + name if bool(measured[name].notna().any()) else name
        measured[into] = [math.nan if match is None else float(match[name]) for match in matches]
    settings = tuple(s for s in cells.settings if s != "task" or measured["task"].nunique() > 1)
    results = tuple(dict.fromkeys([*cells.results, *(PREFIX + n for n in shared if PREFIX + n in measured)]))
    kept = tuple(r for r in results if bool(measured[r].notna().any()))
    aside = rows[rows["state"] != "done"]
    return Cells(measured.reset_index(drop=True), settings, kept, cells.meta, aside)


def _key(row: Any, keys: list[str]) -> tuple[Any, ...]:
    return tuple(plain(row[k]) for k in keys)


def with_predictions(cells: Cells, outcome: str) -> tuple[Cells, str]:
    """The cells with a column ``predicted_<outcome>``, and in words why it is missing (empty when it is there).

    Args:
        cells: of a study.
        outcome: the result to predict.
    """
    column = PREFIX + outcome
    if column in cells.results:
        return cells, ""
    if outcome not in PREDICTED or not set(cells.settings) >= NEEDED:
        return cells, f"no column {column}, and the theory predicts {', '.join(PREDICTED)} of retrieval tasks only"
    if "task" in cells.frame and set(cells.frame["task"].dropna()) != {"simulate"}:
        return cells, f"no column {column}, and the cells are not simulated retrieval tasks"
    if "steps" in cells.frame and not bool((cells.frame["steps"] == 3).all()):
        return cells, f"no column {column}, and the theory predicts three steps only"
    tasks = [retrieval_task(row, cells.settings) for _, row in cells.frame.iterrows()]
    distinct = {task for task in tasks if task is not None}
    if len(distinct) > MOST_PREDICTED:
        return cells, (
            f"no column {column}; {len(distinct)} settings are more than the {MOST_PREDICTED} that a report predicts "
            "itself: add cells of the task 'predict' to the study"
        )
    values, problem = {}, ""
    for task in distinct:
        try:
            values[task] = float(getattr(prediction(task), outcome))
        except MemcapError as error:
            problem = str(error)
    if not values:
        return cells, f"the theory does not cover these cells: {problem or 'their settings are not a retrieval task'}"
    frame = cells.frame.copy()
    frame[column] = [math.nan if task is None else values.get(task, math.nan) for task in tasks]
    return dataclasses.replace(cells, frame=frame, results=(*cells.results, column)), ""


@lru_cache(maxsize=4096)
def prediction(task: RetrievalTask) -> Any:
    """``memcap.predict``, remembered."""
    from memcap.retrieval.prediction import predict

    return predict(task)


def retrieval_task(row: Mapping[str, Any] | pd.Series, settings: tuple[str, ...]) -> RetrievalTask | None:
    """The retrieval task of a cell without its seed, or None if its settings are not one."""
    fields = {f.name for f in dataclasses.fields(RetrievalTask)} - {"seed"}
    given = {s: _value(row[s]) for s in settings if s in fields}
    given = {k: v for k, v in given.items() if v is not None}
    if not set(given) >= NEEDED:
        return None
    try:
        return RetrievalTask(**given)
    except MemcapError:
        return None


def _value(value: Any) -> Any:
    """A setting as the task takes it: whole floats (columns with gaps) are integers again, missing is None."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return int(value) if isinstance(value, float) and value == int(value) and abs(value) >= 1 else value
