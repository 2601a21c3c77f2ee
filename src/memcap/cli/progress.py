"""Progress on standard error, if that is a terminal, for anything that runs longer than two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from memcap.cli.app import err

PATIENCE = 2.0
"""Seconds before anything is shown."""


@contextmanager
def showing(quiet: bool) -> Iterator[Callable[[int, int, str], None] | None]:
    """A callable ``progress(done, total, what)`` that draws a bar once two seconds have passed; None when quiet."""
    if quiet:
        yield None
        return
    began = time.monotonic()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    bars = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
    tasks: dict[str, object] = {}

    def report(done: int, total: int, what: str) -> None:
        if time.monotonic() - began < PATIENCE:
            return
        if not tasks:
            bars.start()
        if what not in tasks:
            tasks[what] = bars.add_task(what, total=total)
        bars.update(tasks[what], completed=done, total=total)  # type: ignore[arg-type]

    try:
        yield report
    finally:
        if tasks:  # stopping bars that never began writes an empty line
            bars.stop()
