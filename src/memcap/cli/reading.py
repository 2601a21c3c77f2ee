"""Reading the data file of ``build`` and ``check``: options from the command line, or those a memory remembers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memcap.data.readers import read_sequences
from memcap.data.sequences import SequenceData
from memcap.model.header import Header

DEFAULTS: dict[str, Any] = {
    "sequence": None,
    "label": None,
    "encoding": "words",
    "ordered": True,
    "window": None,
    "stride": 1,
    "file_format": None,
    "on_conflict": "error",
}


def read(
    path: str,
    given: dict[str, Any],
    progress: Callable[[int, int, str], None] | None,
    remembered: Header | None = None,
) -> tuple[SequenceData, dict[str, Any]]:
    """Read ``path``; what is not given comes from the memory that ``remembered`` describes, then from the defaults.

    Returns:
        The data, and the options that were used (to be remembered by the memory).
    """
    base = {**DEFAULTS, **(remembered.reading if remembered else {})}
    options = {name: base[name] if given.get(name) is None else given[name] for name in DEFAULTS}
    arguments = {**options, "format": options["file_format"]}
    if remembered is not None and given.get("encoding") is None:
        arguments["encoding"] = remembered.encoding  # the memory's own ids, not a table learnt anew
    del arguments["file_format"]
    return read_sequences(path, **arguments, progress=progress), options
