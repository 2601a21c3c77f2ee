"""One measured size: random items in, a verified memory out, its counts as a plain record."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

import numpy as np

from memcap.data.sequences import SequenceData
from memcap.errors import ConfigurationError
from memcap.random import stream

Cell = dict[str, Any]
Progress = Callable[[int, int, str], None]

OPTIONS = ("weights", "method", "selector", "max_depth", "bits")
_LISTS = ("classes", "items", "sequences", "max_depth", "bits")


def cells_of(entries: list[dict[str, Any]]) -> Iterator[Cell]:
    """One cell for every combination of the lists of an entry."""
    for entry in entries:
        axes = {name: entry[name] for name in _LISTS if isinstance(entry.get(name), list)}
        fixed = {name: value for name, value in entry.items() if name not in axes}
        for values in itertools.product(*axes.values()):
            yield {**fixed, **dict(zip(axes, values, strict=True))}


def random_data(cell: Cell, seed: int) -> SequenceData:
    """Random items for a cell: single integers, or sequences with a label at every position."""
    classes = int(cell["classes"])
    if "sequences" in cell:
        rows, length, vocabulary = int(cell["sequences"]), int(cell["length"]), int(cell["vocabulary"])
        tokens = stream(seed, "law-tokens", rows, length).integers(0, vocabulary, size=(rows, length))
        table = stream(seed, "law-token-labels", rows, length).integers(0, classes, size=(rows, vocabulary))
        labels = np.take_along_axis(table, tokens, axis=1)
        return SequenceData.from_arrays(tokens, labels, ordered=False)
    items = int(cell["items"])
    draw = stream(seed, "law-keys", items)
    keys = np.unique(draw.integers(0, items * items, size=items + items // 20 + 60))
    keys = draw.permutation(keys)[:items]
    labels = stream(seed, "law-labels", items, classes).integers(0, classes, size=items)
    return SequenceData.from_arrays(keys, labels)


def measure(cell: Cell, seed: int = 0) -> dict[str, Any]:
    """Build the cell's memory, recall every item, and count.

    Returns:
        The cell with ``N`` (items, or distinct context-token pairs), ``parameters``, ``bits``, ``largest_bits``,
        ``depth``, ``widest``, ``recalled``, ``seconds``; or with ``reason`` when no such memory exists (a depth or
        precision that cannot be kept).
    """
    from memcap.model.build import build

    data = random_data(cell, seed)
    began = time.perf_counter()
    try:
        memory = build(data, seed=seed, **{name: cell[name] for name in OPTIONS if cell.get(name) is not None})
    except ConfigurationError as reason:
        return {**cell, "reason": str(reason)}
    seconds = time.perf_counter() - began
    recall = memory.recall(data)
    counts = memory.parameters
    return {
        **cell,
        "N": memory.header.items,
        "label_bits": math.log2(data.classes),
        "parameters": counts.nonzero,
        "stored_bits": counts.bits,
        "largest_bits": max(layer.largest.bit_length() for _, layer in memory.network.maps()),
        "depth": memory.network.depth,
        "widest": memory.network.widest,
        "recalled": recall.correct == recall.total,
        "seconds": round(seconds, 2),
    }


def _items(cell: Cell) -> int:
    return int(cell["items"] if "items" in cell else cell["sequences"] * cell["length"])


def measure_all(
    cells: list[Cell], *, seed: int, workers: int, progress: Progress | None, what: str
) -> list[dict[str, Any]]:
    """Measure all cells, in processes when ``workers`` is more than one; results in the order of ``cells``."""
    found: dict[int, dict[str, Any]] = {}
    if workers == 1:
        for number, cell in enumerate(cells):
            found[number] = measure(cell, seed)
            if progress is not None:
                progress(len(found), len(cells), what)
    else:
        largest_first = sorted(range(len(cells)), key=lambda i: -_items(cells[i]))
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            waiting = {pool.submit(measure, cells[i], seed): i for i in largest_first}
            for done in as_completed(waiting):
                found[waiting[done]] = done.result()
                if progress is not None:
                    progress(len(found), len(cells), what)
    return [found[i] for i in range(len(cells))]
