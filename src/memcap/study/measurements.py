"""What a cell can compute: a measurement is a pure function from settings to results, found by name.

The machinery of this room (grid, store, runner, fits) knows measurements only through this file.  A measurement is
imported where it runs, so its place is written ``module:attribute``.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from memcap.errors import ConfigurationError, MemcapError, nearest
from memcap.study.cell import Cell, canonical


@dataclass(frozen=True)
class Measurement:
    """A pure function from settings to results.

    Attributes:
        name: e.g. ``"simulate"``; part of every cell's identity.
        settings: a dataclass or pydantic model whose fields are the settings; a field called ``seed`` makes the
            measurement random, without one the grid may not name seeds.
        run: takes the settings as a dict (the seed included) and, if ``prepare`` is given, what that returned; gives
            a dict of numbers, texts, truth values, or lists and dicts of them.  The keys ``data_hash`` and ``device``
            are kept apart from the results.  A cell that cannot be computed raises.
        version: raise it when the same settings give another result.
        shared: names of the settings that define an expensive part which several cells can share.
        prepare: computes that part from the shared settings alone.
        response: the result that people look at first, e.g. ``"recall"``.
    """

    name: str
    settings: type
    run: Callable[..., dict[str, Any]]
    version: int = 1
    shared: tuple[str, ...] = ()
    prepare: Callable[[dict[str, Any]], Any] | None = None
    response: str = ""

    def __post_init__(self) -> None:
        unknown = set(self.shared) - set(setting_names(self.settings))
        if unknown or bool(self.shared) != (self.prepare is not None):
            raise ConfigurationError(
                f"measurement {self.name!r}: 'shared' names settings and comes with 'prepare'; got {self.shared!r}"
            )


_PLACES: dict[str, str] = {
    "simulate": "memcap.study.tasks.retrieval:simulate",
    "predict": "memcap.study.tasks.retrieval:predict",
    "build": "memcap.study.tasks.memory:build",
}


def register(name: str, place: str) -> None:
    """Give the measurement at ``place`` (``"module:attribute"``) a short name for this process's grids.

    Raises:
        ConfigurationError: if the name is taken by another place.
    """
    if _PLACES.setdefault(name, place) != place:
        raise ConfigurationError(f"measurement {name!r} is already {_PLACES[name]!r}")


def place_of(task: str) -> str:
    """Where the measurement called ``task`` lives; a task may also be written as its place.

    Raises:
        ConfigurationError: if there is none.
    """
    if ":" in task:
        return task
    if task not in _PLACES:
        raise ConfigurationError(
            f"no measurement {task!r}{nearest(task, _PLACES)}; measurements: {', '.join(_PLACES)}, "
            f"or your own as 'package.module:name'"
        )
    return _PLACES[task]


@lru_cache(maxsize=64)
def load(place: str) -> Measurement:
    """Import the measurement at ``module:attribute``.

    Raises:
        ConfigurationError: if the module, or a measurement in it, does not exist.
    """
    module_name, _, attribute = place.partition(":")
    if module_name == "__main__":
        raise ConfigurationError(
            "a measurement defined in the script itself cannot be found by workers; put it in a module of its own"
        )
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        if isinstance(error, MemcapError):
            raise
        raise ConfigurationError(
            f"cannot import {module_name!r} for the measurement {place!r}: {error}; is it on PYTHONPATH?"
        ) from None
    found = getattr(module, attribute, None)
    if not isinstance(found, Measurement):
        here = [name for name, value in vars(module).items() if isinstance(value, Measurement)]
        raise ConfigurationError(
            f"{module_name!r} has no measurement {attribute!r}{nearest(attribute, here)}; it has: {', '.join(here)}"
        )
    return found


def find(task: str) -> Measurement:
    """The measurement called ``task``."""
    return load(place_of(task))


def setting_names(schema: type) -> list[str]:
    """The names of a schema's settings, the seed included if it has one."""
    fields = getattr(schema, "model_fields", None)  # of a pydantic model; workers need not import pydantic to know
    if isinstance(fields, dict):
        return list(fields)
    if dataclasses.is_dataclass(schema):
        return [f.name for f in dataclasses.fields(schema) if f.init]
    raise ConfigurationError(f"a measurement's settings are a dataclass or a pydantic model, got {schema!r}")


@lru_cache(maxsize=64)
def _adapter(schema: type) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(schema)


def make_cell(task: str, settings: Mapping[str, Any], seed: int | None = None) -> Cell:
    """A cell of ``task`` with every setting checked and the defaults filled in.

    Raises:
        ConfigurationError: if a setting is unknown, missing or has a wrong value, or if ``seed`` does not apply.
    """
    from pydantic import ValidationError

    place = place_of(task)
    measurement = load(place)
    valid = setting_names(measurement.settings)
    for name in settings:
        if name not in valid or name == "seed":
            reason = "seeds belong under 'seeds'" if name == "seed" else f"settings: {', '.join(valid)}"
            raise ConfigurationError(f"task {task!r} has no setting {name!r}{nearest(name, valid)}; {reason}")
    given = dict(settings)
    if "seed" in valid:
        given["seed"] = 0 if seed is None else seed
    elif seed not in (None, 0):
        raise ConfigurationError(f"task {task!r} takes no seed, got seed {seed}")
    adapter = _adapter(measurement.settings)
    try:
        full = adapter.dump_python(adapter.validate_python(given), mode="json")
    except ValidationError as error:
        problem = error.errors()[0]
        name = ".".join(str(p) for p in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "missing":
            raise ConfigurationError(f"task {task!r} needs the setting {name!r}; an axis or 'fixed' gives it") from None
        raise ConfigurationError(f"task {task!r}: {name + ': ' if name else ''}{message}; at {given}") from None
    except MemcapError as error:
        raise ConfigurationError(f"task {task!r}: {error}; at {given}") from None
    complete = {name: full[name] for name in valid if name in full and name != "seed"}
    for name, value in complete.items():
        if not _finite(value):
            raise ConfigurationError(f"task {task!r}: {name} is {value}, but a setting is finite; at {given}")
    shared = {n: full[n] for n in measurement.shared}
    group = f"{place} {canonical(shared)}" if measurement.shared else ""
    return Cell(measurement.name, measurement.version, complete, int(full.get("seed", 0)), place, group)


def _finite(value: Any) -> bool:
    """Whether ``value`` holds neither NaN nor an infinity, which have no place in an identity."""
    if isinstance(value, dict | list):
        return all(map(_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)
