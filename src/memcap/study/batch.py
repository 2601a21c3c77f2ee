"""Many rows of a store side by side: how a store hands out a table without one object per row.

``batches_of`` is the readable way, from records; ``SqliteStore.batches`` decodes whole blocks at once and must give
the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from memcap.study.cell import canonical
from memcap.study.record import Record, State

FROM_OUTCOME = (
    "seconds",
    "cpu_seconds",
    "peak_memory",
    "started",
    "finished",
    "host",
    "device",
    "data_hash",
    "error_type",
    "error",
)
FACTS = ("identity", "task", "seed", "state", "attempts", "task_version", *FROM_OUTCOME, "versions")
ROWS = 5000
"""Rows in one batch: enough for the decoder to work in bulk, few enough to be small in memory."""


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of a store.

    Attributes:
        facts: one column per name in ``FACTS``; ``None`` where a row has no outcome yet; ``versions`` as JSON text.
        settings: one dict per row.
        stored: one result per row, as ``decode`` takes them.
        decode: makes a dict per row of ``stored``; empty dicts unless the row is done.
    """

    facts: dict[str, Sequence[Any]]
    settings: list[dict[str, Any]]
    stored: Sequence[Any]
    decode: Callable[[Sequence[Any]], list[dict[str, Any]]] = list

    def __len__(self) -> int:
        return len(self.settings)

    @cached_property
    def results(self) -> list[dict[str, Any]]:
        """One dict per row, decoded when first asked for: rows that a filter drops before never are."""
        return self.decode(self.stored)

    def where(self, keep: Sequence[bool]) -> Batch:
        """Only the rows for which ``keep`` is true."""
        known = "results" in self.__dict__
        return Batch(
            {name: list(itertools.compress(values, keep)) for name, values in self.facts.items()},
            list(itertools.compress(self.settings, keep)),
            list(itertools.compress(self.results if known else self.stored, keep)),
            list if known else self.decode,
        )


def batches_of(records: Iterable[Record], rows: int = ROWS) -> Iterator[Batch]:
    """Records as batches of at most ``rows``."""
    waiting = iter(records)
    while block := list(itertools.islice(waiting, rows)):
        facts: dict[str, Sequence[Any]] = {
            "identity": [r.identity for r in block],
            "task": [r.task for r in block],
            "seed": [r.seed for r in block],
            "state": [str(r.state) for r in block],
            "attempts": [r.attempts for r in block],
            "task_version": [r.task_version for r in block],
        }
        for name in FROM_OUTCOME:
            facts[name] = [None if r.outcome is None else getattr(r.outcome, name) for r in block]
        facts["versions"] = [None if r.outcome is None else canonical(r.outcome.versions) for r in block]
        results = [r.outcome.result if r.outcome is not None and r.state is State.DONE else {} for r in block]
        yield Batch(facts, [r.settings for r in block], results)
