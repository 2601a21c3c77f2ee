"""A study: a store, and what people do with it: run a grid, resume, look, fit, export.

The class here knows no report; ``memcap.Study`` adds that (docs/decisions/0010-study-face-with-report.md).
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import pandas as pd

from memcap.errors import ConfigurationError, nearest
from memcap.study import backends
from memcap.study.bulk_table import columns_in_bulk, no_collection
from memcap.study.cell import Cell, canonical
from memcap.study.driver import Driver, recover
from memcap.study.execution import versions
from memcap.study.export import check_destination, write_table
from memcap.study.fitting import Fitting
from memcap.study.grid import Grid
from memcap.study.memory_store import MemoryStore
from memcap.study.progress import observer as default_observer
from memcap.study.record import Record, State
from memcap.study.run_terms import Limits, Observer, RunSummary
from memcap.study.schedule import EveryCell, Schedule
from memcap.study.sqlite_store import SqliteStore
from memcap.study.store import Store
from memcap.study.table import frame_of

S = TypeVar("S", bound="Study")


class Study(Fitting):
    """A sweep of measurements in one crash-safe file; see ``Study.open``."""

    def __init__(self, store: Store, name: str = "") -> None:
        self.store = store
        self.name = name

    @classmethod
    def open(cls: type[S], path: str | Path, *, create: bool = True) -> S:
        """Open the study in the file ``path``; ``":memory:"`` keeps it in this process only.

        Args:
            path: the file, e.g. ``"phase.db"``; several processes may have it open.
            create: make the file if it is missing.

        Raises:
            FormatError: if the file is not a study, is damaged, or was written by a newer format.
            ConfigurationError: if it is missing and ``create`` is false.
        """
        study = cls(MemoryStore() if str(path) == ":memory:" else SqliteStore(path, create=create), str(path))
        if "created" not in study.store.meta():
            study.store.set_meta("created", datetime.now(UTC).isoformat(timespec="seconds"))
        return study

    def __enter__(self: S) -> S:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Study({self.name!r}, {', '.join(f'{n} {s}' for s, n in self.status().items() if n) or 'empty'})"

    def close(self) -> None:
        """Close the file."""
        self.store.close()

    @property
    def meta(self) -> dict[str, Any]:
        """About the study: ``question``, ``method``, ``created`` (ISO time), ``versions``, ``grids`` (as run)."""
        stored = self.store.meta()
        return {
            "question": stored.get("question", ""),
            "method": stored.get("method", ""),
            "created": stored.get("created", ""),
            "versions": json.loads(stored.get("versions", "{}")),
            "grids": json.loads(stored.get("grids", "[]")),
        }

    def run(
        self,
        grid: Grid | Mapping[str, Any] | str | Path,
        *,
        workers: int = 0,
        scheduler: Any = None,
        executor: Executor | None = None,
        threads: int = 1,
        memory_limit: int | str | None = None,
        tries: int = 3,
        retry_failed: bool = False,
        fail_fast: bool = False,
        time_limit: float | None = None,
        progress: bool | None = None,
        observer: Observer | None = None,
    ) -> RunSummary:
        """Compute the cells of ``grid`` that are not done yet.

        Interrupting loses nothing: computed cells are stored, the others are still to do.  Cells that a dead driver
        left are computed again.

        Args:
            grid: a ``Grid``, its keys, or the path of a YAML file.
            workers: local processes; 0 computes in this one.
            scheduler: a Dask cluster instead: its address (``"tcp://..."``) or a ``distributed.Client``.
            executor: any other ``concurrent.futures.Executor`` instead.
            threads: numeric threads in each local process.
            memory_limit: largest resident size of a local process, in bytes or as ``"2 GiB"``.
            tries: how often a cell is tried whose worker ends itself.
            retry_failed: compute failed cells again.
            fail_fast: stop at the first failed cell.
            time_limit: seconds after which the run stops; what was running is given back.
            progress: show a bar on standard error; by default if that is a terminal.
            observer: told of every outcome, instead of a bar.

        Returns:
            RunSummary: what this run did.

        Raises:
            ConfigurationError: if the grid or the options do not fit.
            RunError: if the store cannot be written or the cluster is gone.
        """
        grid = self._as_grid(grid)
        limits = Limits(tries=tries, fail_fast=fail_fast, time_limit=time_limit)
        backends.check(workers=workers, tries=tries, time_limit=time_limit, memory_limit=memory_limit)
        began = time.monotonic()
        if memory_limit is not None and workers:
            from memcap.study.baseline import refuse_small_limit

            refuse_small_limit(grid.task, backends.bytes_of(memory_limit), threads)
        boundary = grid.boundary
        cells = [] if boundary else grid.cells
        self._remember(grid)
        recover(self.store)
        with backends.open_backend(
            workers=workers, scheduler=scheduler, executor=executor, threads=threads, memory_limit=memory_limit
        ) as backend:
            schedule, before = self._schedule(grid, cells, backend.slots, retry_failed)
            driver = Driver(
                self.store,
                backend.executor,
                window=backend.window,
                limits=limits,
                observer=observer or default_observer(progress),
                blames_neighbours=backend.blames_neighbours,
            )
            summary = driver.run(schedule, before)
        states = self.store.states()
        pending = sum(states.get(c.identity) is State.PENDING for c in cells)
        early = summary.stopped if boundary or pending or summary.stopped != "time limit" else ""
        last = {"pending": pending, "seconds": time.monotonic() - began, "stopped": early}
        return RunSummary(**{**summary.to_dict(), **last})

    def resume(self, **options: Any) -> RunSummary:
        """Go on with every grid that was run in this study: *pending* and *lost* cells; options as for ``run``.

        Raises:
            ConfigurationError: if no grid was ever run here, or for an unknown option.
        """
        grids = self.meta["grids"]
        if not grids:
            raise ConfigurationError(f"{self.name}: nothing to resume; run a grid first")
        known = inspect.signature(Study.run).parameters.keys() - {"self", "grid"}
        for name in options:
            if name not in known:
                raise ConfigurationError(f"resume takes no option {name!r}{nearest(name, known)}")
        left = options.pop("time_limit", None)
        total = RunSummary()
        for keys in grids:
            if left is not None and (left := left - total.seconds) <= 0:
                total = replace(total, stopped="time limit")
                break
            summary = self.run(Grid(where=f"grid in {self.name}", **keys), time_limit=left, **options).to_dict()
            merged = {n: v + summary[n] for n, v in total.to_dict().items() if n != "stopped"}
            total = RunSummary(**merged, stopped=summary["stopped"])
            if total.stopped:
                break
        return total

    def status(self) -> dict[str, int]:
        """How many cells are in each state."""
        return {str(state): count for state, count in self.store.counts().items()}

    def records(self, states: Sequence[str] | None = None) -> list[Record]:
        """Whole rows, curves included, in the order in which the cells were added."""
        return list(self.store.records(self._states(states)))

    def frame(self, *, states: Sequence[str] | None = None, where: str | None = None) -> pd.DataFrame:
        """One row per cell: settings, seed, state, results, timings, host, versions, error (see ``table``).

        Args:
            states: only cells in these states, e.g. ``["done"]``.
            where: an expression over the columns, e.g. ``"dimension == 64 and recall > 0.5"``.

        Raises:
            ConfigurationError: for an unknown state, or if ``where`` does not fit.
        """
        return frame_of(columns_in_bulk(self.store.batches(self._states(states)), where))

    def export(self, path: str | Path, *, states: Sequence[str] | None = None, where: str | None = None) -> int:
        """Write the table of ``frame`` as ``.parquet``, ``.csv`` or ``.jsonl``; returns the number of rows.

        Raises:
            ConfigurationError: for another ending, a missing folder, an unknown state, or if ``where`` does not fit.
            RunError: if the file cannot be written.
        """
        check_destination(Path(path))
        with no_collection():
            columns = columns_in_bulk(self.store.batches(self._states(states)), where)
            write_table(columns, Path(path))
            return len(columns["identity"])

    def _states(self, states: Sequence[str] | None) -> list[State] | None:
        if states is None:
            return None
        for state in states:
            if state not in list(State):
                raise ConfigurationError(
                    f"no state {state!r}{nearest(state, [s.value for s in State])}; states: {', '.join(State)}"
                )
        return [State(s) for s in states]

    def _as_grid(self, grid: Grid | Mapping[str, Any] | str | Path) -> Grid:
        if isinstance(grid, Grid):
            return grid
        return Grid.read(grid) if isinstance(grid, str | Path) else Grid(**{str(k): v for k, v in grid.items()})

    def _remember(self, grid: Grid) -> None:
        """Keep the grid, its texts and this environment's versions in the store."""
        stored, keys = self.store.meta(), grid.to_dict()
        grids = json.loads(stored.get("grids", "[]"))
        if canonical(keys) not in map(canonical, grids):
            self.store.set_meta("grids", canonical([*grids, keys]))
        for name, value in (("question", grid.question), ("method", grid.method), ("versions", canonical(versions()))):
            if value and stored.get(name) != value:
                self.store.set_meta(name, value)

    def _schedule(self, grid: Grid, cells: list[Cell], slots: int, retry_failed: bool) -> tuple[Schedule, int]:
        again = [State.LOST, State.FAILED] if retry_failed else [State.LOST]
        if grid.boundary is not None:
            from memcap.study.boundary import AlongBoundary

            schedule = AlongBoundary(grid, slots)
            self.store.reopen(again, schedule.identities())
            return schedule, 0
        self.store.add(cells)
        self.store.reopen(again, [c.identity for c in cells])
        states = self.store.states()
        todo = [c for c in cells if states[c.identity] in (State.PENDING, State.RUNNING)]
        return EveryCell(todo, slots), sum(states[c.identity] is State.DONE for c in cells)
