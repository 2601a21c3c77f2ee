"""Carry a schedule through an executor into a store.  The only place where cells are claimed and outcomes are kept.

Every backend is a ``concurrent.futures.Executor``; this file knows none of them.  However a run ends (all done, time
limit, first failure, Ctrl-C, an error of the store), what was computed is stored and what was not is given back.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait

from memcap.errors import MemcapError, RunError
from memcap.study import owner as owners
from memcap.study.cell import Cell
from memcap.study.execution import execute, host, versions
from memcap.study.process_slots import MemoryLimit, WorkerDied
from memcap.study.record import Outcome, State
from memcap.study.run_terms import Limits, Observer, RunSummary
from memcap.study.schedule import Schedule
from memcap.study.store import Store

_POLL = 0.2  # seconds between two looks at the clock or at another driver's cells
_OUTSIDE = {-int(getattr(signal, name, 0)) for name in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")} - {0}


class Driver:
    """One run: claims cells, submits them, keeps what comes back.

    Args:
        store: where outcomes go.
        executor: where cells are computed.
        window: says how many cells may be claimed at once.
        limits: see ``Limits``.
        observer: is told of every outcome.
        blames_neighbours: the executor may fail healthy cells for a neighbour that kills its worker (Dask does); such
            cells are tried again alone before they are called failed.
    """

    def __init__(
        self,
        store: Store,
        executor: Executor,
        *,
        window: Callable[[], int],
        limits: Limits,
        observer: Observer,
        blames_neighbours: bool = False,
    ) -> None:
        self._store, self._executor, self._window = store, executor, window
        self._limits, self._observer, self._suspicious = limits, observer, blames_neighbours
        self._flying: dict[Future[Outcome], Cell] = {}
        self._deaths: dict[str, int] = {}
        self._suspects: list[Cell] = []
        self._alone = False
        self._elsewhere: dict[str, Cell] = {}
        self._count = dict.fromkeys((State.DONE, State.FAILED, State.LOST), 0)
        self._owner = owners.enter()

    def run(self, schedule: Schedule, already_done: int = 0) -> RunSummary:
        """Compute what the schedule asks for.

        Raises:
            KeyboardInterrupt: passed on after everything computed is stored and everything else given back.
            RunError: if the store can no longer be written, or the cluster is gone.
        """
        began = time.monotonic()
        stopped = ""
        self._observer.begin(schedule.total + already_done, already_done)
        try:
            with self._heartbeat():
                stopped = self._loop(schedule, began)
        except KeyboardInterrupt:
            self._harvest()
            raise
        finally:
            try:
                self._give_back()
            finally:
                owners.leave(self._owner)
                self._observer.end()
        return RunSummary(
            done=self._count[State.DONE],
            failed=self._count[State.FAILED],
            lost=self._count[State.LOST],
            already_done=already_done,
            elsewhere=len(self._elsewhere),
            seconds=time.monotonic() - began,
            stopped=stopped,
        )

    def _loop(self, schedule: Schedule, began: float) -> str:
        limits = self._limits
        while True:
            if limits.time_limit is not None and time.monotonic() - began >= limits.time_limit:
                self._harvest(schedule)
                return "time limit"
            if limits.fail_fast and self._count[State.FAILED]:
                self._harvest(schedule)
                return "first failure"
            asked = self._feed(schedule)
            if self._flying:
                finished, _ = wait(self._flying, timeout=_POLL, return_when=FIRST_COMPLETED)
                self._settle(finished, schedule)
            elif self._suspects:
                self._alone = True  # whoever dies now is to blame
                self._submit(self._suspects.pop())
            elif schedule.waits and self._elsewhere:
                time.sleep(_POLL)
                self._look_elsewhere(schedule)
            elif not asked and schedule.exhausted():
                return ""
            elif not asked and not self._elsewhere:
                raise RunError("the schedule waits for outcomes that nobody computes; please report this")

    def _feed(self, schedule: Schedule) -> int:
        """Claim and submit as many cells as there is room for; returns how many the schedule gave."""
        if self._alone:
            return 0
        cells = schedule.take(max(0, self._window() - len(self._flying)))
        if cells:
            if schedule.waits:
                self._store.add(cells)
            self._claim(cells, schedule)
        return len(cells)

    def _claim(self, cells: list[Cell], schedule: Schedule) -> None:
        got = set(self._store.claim([c.identity for c in cells], self._owner, time.time() + self._limits.lease))
        for cell in cells:
            if cell.identity in got:
                self._submit(cell)
            else:
                self._read(cell, schedule)

    def _read(self, cell: Cell, schedule: Schedule) -> None:
        """A cell that somebody else has computed or is computing."""
        record = self._store.get(cell.identity)
        if record is None or record.state in (State.RUNNING, State.PENDING):
            self._elsewhere[cell.identity] = cell
        else:
            self._elsewhere.pop(cell.identity, None)
            schedule.learn(cell, record.outcome)

    def _look_elsewhere(self, schedule: Schedule) -> None:
        """Learn what other drivers have finished; take over what a dead one left."""
        recover(self._store)
        cells = list(self._elsewhere.values())
        self._store.reopen([State.LOST], [c.identity for c in cells])
        self._elsewhere.clear()
        self._claim(cells, schedule)

    def _submit(self, cell: Cell) -> None:
        self._flying[self._executor.submit(execute, cell)] = cell

    def _settle(self, finished: set[Future[Outcome]], schedule: Schedule | None) -> None:
        """Keep what the finished futures bring."""
        kept: list[tuple[Cell, Outcome]] = []
        self._alone = self._alone and not finished
        for future in finished:
            cell = self._flying.pop(future)
            outcome = self._outcome(cell, future)
            if outcome is not None:
                kept.append((cell, outcome))
        if not kept:
            return
        stored = set(self._store.finish([(c.identity, o) for c, o in kept], self._owner))
        for cell, outcome in kept:
            if cell.identity in stored:
                self._count[outcome.state] += 1
                self._observer.cell(cell, outcome)
            if schedule is not None:
                schedule.learn(cell, outcome)

    def _outcome(self, cell: Cell, future: Future[Outcome]) -> Outcome | None:
        """What a future says about its cell; ``None`` if the cell is tried again or was never started."""
        try:
            return future.result()
        except CancelledError:
            return None
        except WorkerDied as error:
            if error.exit_status in _OUTSIDE:
                return _failure(State.LOST, error)
            deaths = self._deaths[cell.identity] = self._deaths.get(cell.identity, 0) + 1
            if self._suspicious and deaths == 1:
                self._suspects.append(cell)
                return None
            if not self._suspicious and deaths < self._limits.tries:
                self._submit(cell)
                return None
            return _failure(State.FAILED, error, f"{error} ({deaths} times)")
        except MemoryLimit as error:
            return _failure(State.FAILED, error)
        except RunError:
            raise
        except Exception as error:  # the answer could not travel: the cell's own doing
            return _failure(State.FAILED, error)

    def _harvest(self, schedule: Schedule | None = None) -> None:
        """Keep what has already been computed, and wait for nothing."""
        with contextlib.suppress(MemcapError):
            self._settle({f for f in self._flying if f.done()}, schedule)

    def _give_back(self) -> None:
        """Whatever this driver still holds becomes *pending* again; a store that cannot be written finds out later."""
        for future in self._flying:
            future.cancel()
        with contextlib.suppress(MemcapError):
            held = [r.identity for r in self._store.records([State.RUNNING]) if r.owner == self._owner]
            if held:
                self._store.release(held, self._owner)

    @contextlib.contextmanager
    def _heartbeat(self) -> Iterator[None]:
        over = threading.Event()

        def beat() -> None:
            while not over.wait(self._limits.lease / 4):
                with contextlib.suppress(MemcapError):  # the driver itself meets the same error and tells it
                    self._store.heartbeat(self._owner, time.time() + self._limits.lease)

        thread = threading.Thread(target=beat, daemon=True, name="memcap-heartbeat")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _failure(state: State, error: Exception, message: str = "") -> Outcome:
    now = time.time()
    return Outcome(
        state,
        error_type=type(error).__name__,
        error=message or str(error),
        started=now,
        finished=now,
        host=host(),
        versions=versions(),
    )


def recover(store: Store) -> int:
    """Turn what dead drivers were running into *lost*; returns how many cells that is."""
    lost = store.expire(time.time())
    for owner in store.owners():
        if owners.known_dead(owner):
            lost += store.abandon(owner)
    return lost
