"""What a run tells people while it works: a bar with rate and time left, and every failure as it happens."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from memcap.study.cell import Cell
from memcap.study.record import Outcome, State


class Silent:
    """Tells nothing."""

    def begin(self, total: int, already_done: int) -> None:
        """See ``run_terms.Observer``."""

    def cell(self, cell: Cell, outcome: Outcome) -> None:
        """See ``run_terms.Observer``."""

    def end(self) -> None:
        """See ``run_terms.Observer``."""


class _Rate(ProgressColumn):
    """Cells per second, or seconds per cell for slow ones."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("")
        return Text(f"{speed:.1f} cells/s" if speed >= 1 else f"{1 / speed:.1f} s/cell")


class Bar:
    """A progress bar on standard error; without a terminal only failures are written, one line each."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, soft_wrap=True, highlight=False)
        self._progress: Progress | None = None

    def begin(self, total: int, already_done: int) -> None:
        """See ``run_terms.Observer``."""
        self._failed = self._lost = 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
            refresh_per_second=4,
        )
        self._task = self._progress.add_task("cells", total=total, completed=already_done)
        self._progress.start()

    def cell(self, cell: Cell, outcome: Outcome) -> None:
        """See ``run_terms.Observer``."""
        self._failed += outcome.state is State.FAILED
        self._lost += outcome.state is State.LOST
        if outcome.state is not State.DONE:
            line = f"{outcome.state}: {cell.task} {cell.describe()}: {outcome.error_type}: {outcome.error}"
            self._console.print(line, markup=False)
        if self._progress is not None:
            bad = f" ({self._failed} failed, {self._lost} lost)" if self._failed or self._lost else ""
            self._progress.update(self._task, advance=1, description=f"cells{bad}")

    def end(self) -> None:
        """See ``run_terms.Observer``."""
        if self._progress is not None:
            self._progress.stop()


def observer(progress: bool | None) -> Silent | Bar:
    """A bar if ``progress`` is true, or if it is ``None`` and standard error is a terminal."""
    return Bar() if progress or (progress is None and sys.stderr.isatty()) else Silent()
