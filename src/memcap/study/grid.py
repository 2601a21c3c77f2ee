"""A grid as data: which measurement at which settings.  A YAML file or keyword arguments; unknown keys are refused.

    question: At how many samples does recall reach one half?
    task: simulate
    axes:
      samples: {from: 64, to: 4096, per_octave: 2}
      dimension: [16, 32, 64]
    derived:
      width: round(2.5 * sqrt(vocabulary))
    fixed: {vocabulary: 128, length: 16}
    seeds: [0, 1, 2]
    exclude:
      - samples > 100 * dimension
      - {samples: 64, dimension: 64}

This file turns it into cells; it runs nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memcap.errors import ConfigurationError, nearest
from memcap.study import measurements
from memcap.study.axes import Scalar, expand
from memcap.study.cell import Cell
from memcap.study.exclusion import rule_for
from memcap.study.expression import Expression
from memcap.study.validation import explain
from memcap.study.yaml_file import read_yaml

MOST_CELLS = 2_000_000
_TRIED = 2_000  # points looked at to say how refused cells can be excluded


class Boundary(BaseModel):
    """Where ``strategy: boundary`` looks: along ``axis``, for the place where ``response`` crosses ``target``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    axis: str
    response: str = ""
    target: float = Field(default=0.5, allow_inf_nan=False)
    direction: Literal["auto", "rising", "falling"] = "auto"


class _GridModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    question: str = ""
    method: str = ""
    task: str
    axes: dict[str, Any] = {}
    derived: dict[str, str] = {}
    fixed: dict[str, Any] = {}
    seeds: Any = [0]
    exclude: list[str | dict[str, Any]] = []
    strategy: Literal["full", "boundary"] = "full"
    boundary: Boundary | None = None


class Grid:
    """The cells of a study.

    Args:
        task: name of the measurement, or its place ``"package.module:name"``.
        axes: name to values: a list, ``{from, to, step}`` or ``{from, to, per_octave}``.
        derived: name to an expression over axes, fixed values and other derived names.
        fixed: name to the one value that all cells have.
        seeds: list, or a range as for axes.
        exclude: cells to leave out: expressions that are true there, or settings that they match.
        question: what the study asks, for its report.
        method: how it is answered, for its report.
        strategy: ``"full"`` or ``"boundary"`` (only cells around where a result crosses a target).
        boundary: for that strategy: ``{axis, response, target, direction}``.

    Raises:
        ConfigurationError: for a key, name or value that does not fit; the message names the nearest valid one.

    >>> grid = Grid(task="simulate", axes={"samples": {"from": 64, "to": 256, "per_octave": 1}, "dimension": [8, 16]})
    >>> grid.axes
    {'samples': [64, 128, 256], 'dimension': [8, 16]}
    """

    def __init__(self, *, where: str = "grid", **keys: Any) -> None:
        self.where = where
        try:
            model = _GridModel.model_validate(keys)
        except ValidationError as error:
            if any(p["type"] == "extra_forbidden" and p["loc"][0] == "boundary" for p in error.errors()):
                raise ConfigurationError(_explain_boundary(keys["boundary"], where)) from None
            raise ConfigurationError(explain(error, _GridModel, where)) from None
        self.model = model
        self.task = model.task
        with _located(where):
            self.axes: dict[str, list[Scalar]] = {name: expand(name, spec) for name, spec in model.axes.items()}
            self.seeds = _seeds(model.seeds)
            self._derived = _ordered({n: _named(n, text) for n, text in model.derived.items()})
            self._exclude = [Expression(e) if isinstance(e, str) else dict(e) for e in model.exclude]
            self._check_names()
            if math.prod(len(v) for v in self.axes.values()) * len(self.seeds) > MOST_CELLS:
                raise ConfigurationError(f"the grid has more than {MOST_CELLS:,} cells; make an axis shorter")

    @classmethod
    def read(cls, path: str | Path) -> Grid:
        """Read a YAML file.

        Raises:
            ConfigurationError: if it cannot be read, is not YAML, or is not a grid.
        """
        keys = read_yaml(Path(path))
        return cls(where=str(path), **{str(k): v for k, v in keys.items()})

    @property
    def question(self) -> str:
        """What the study asks."""
        return self.model.question

    @property
    def method(self) -> str:
        """How it is answered."""
        return self.model.method

    @property
    def boundary(self) -> Boundary | None:
        """Where the boundary strategy looks, the measurement's main result filled in."""
        if self.model.strategy != "boundary" or self.model.boundary is None:
            return None
        response = self.model.boundary.response or measurements.find(self.task).response
        if not response:
            raise ConfigurationError(f"{self.where}: boundary needs 'response', the name of the result that crosses")
        return self.model.boundary.model_copy(update={"response": response})

    def to_dict(self) -> dict[str, Any]:
        """The grid as it could be written in a file."""
        return self.model.model_dump(mode="json", exclude_defaults=True)

    def cell_at(self, point: Mapping[str, Scalar], seed: int) -> Cell | None:
        """The cell at one point of the axes, or ``None`` if it is excluded.

        Raises:
            ConfigurationError: if the measurement refuses the settings; the message names the file and the point.
        """
        with _located(self.where):
            settings = self._settings(point, seed)
            if self._excluded({**settings, "seed": seed}):
                return None
            return measurements.make_cell(self.task, settings, seed)

    def _settings(self, point: Mapping[str, Scalar], seed: int) -> dict[str, Any]:
        settings: dict[str, Any] = {**self.model.fixed, **point}
        for name, expression in self._derived.items():
            settings[name] = expression.evaluate({**settings, "seed": seed})
        return settings

    def _explain_refusal(self, error: ConfigurationError) -> str:
        """The measurement's own words and, if it refuses some cells only, how to leave them out."""
        refused, accepted = [], []
        step = 1 + math.prod(len(v) for v in self.axes.values()) // _TRIED
        for point in itertools.islice(self.points(), 0, None, step):
            settings = self._settings(point, self.seeds[0])
            try:
                if self.cell_at(point, self.seeds[0]) is not None:
                    accepted.append(settings)
            except ConfigurationError:
                refused.append(settings)
        if not refused or not accepted:
            return str(error)
        rule = rule_for(refused, accepted, list(self.axes))
        return f"{error}; to leave such cells out, write under 'exclude': - {rule}"

    def points(self) -> Iterator[dict[str, Scalar]]:
        """All combinations of the axes' values, the last axis fastest."""
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))

    @cached_property
    def cells(self) -> list[Cell]:
        """Every cell once, in the order of the axes, seeds fastest.

        Raises:
            ConfigurationError: if a cell's settings are refused, or if none are left.
        """
        found: dict[str, Cell] = {}
        for point in self.points():
            for seed in self.seeds:
                try:
                    cell = self.cell_at(point, seed)
                except ConfigurationError as error:
                    raise ConfigurationError(self._explain_refusal(error)) from None
                if cell is not None:
                    found.setdefault(cell.identity, cell)
        if not found:
            raise ConfigurationError(f"{self.where}: 'exclude' leaves no cell")
        return list(found.values())

    def _excluded(self, values: Mapping[str, Any]) -> bool:
        for rule in self._exclude:
            if isinstance(rule, Expression):
                if rule.evaluate(values):
                    return True
            elif all(values[n] in v if isinstance(v, list) else values[n] == v for n, v in rule.items()):
                return True
        return False

    def _check_names(self) -> None:
        """Every name is given once, known to the measurement, and known where it is used."""
        valid = measurements.setting_names(measurements.find(self.task).settings)
        groups: dict[str, Iterable[str]] = {"axes": self.axes, "derived": self._derived, "fixed": self.model.fixed}
        given: dict[str, str] = {}
        for place, names in groups.items():
            for name in names:
                if name in given:
                    raise ConfigurationError(f"{name!r} is given twice, under {given[name]!r} and {place!r}")
                if name == "seed":
                    raise ConfigurationError(f"'seed' belongs under 'seeds', not under {place!r}")
                if name not in valid:
                    raise ConfigurationError(
                        f"task {self.task!r} has no setting {name!r}{nearest(name, valid)}; "
                        f"settings: {', '.join(valid)}"
                    )
                given[name] = place
        if "seed" not in valid and self.seeds != [0]:
            raise ConfigurationError(f"task {self.task!r} takes no seed; leave 'seeds' out")
        known = [*given, "seed"]
        uses = [(f"derived {n!r}", e.names) for n, e in self._derived.items()]
        uses += [("exclude", e.names if isinstance(e, Expression) else frozenset(e)) for e in self._exclude]
        for place, names_used in uses:
            for name in sorted(names_used - set(known)):
                raise ConfigurationError(f"{place} uses {name!r}, which the grid does not give{nearest(name, known)}")
        wanted = self.model.boundary
        if (self.model.strategy == "boundary") != (wanted is not None):
            raise ConfigurationError("'strategy: boundary' comes with 'boundary: {axis: ..., response: ...}'")
        if wanted is not None:
            self._check_boundary(wanted.axis)

    def _check_boundary(self, axis: str) -> None:
        if axis not in self.axes:
            raise ConfigurationError(f"boundary: no axis {axis!r}{nearest(axis, self.axes)}; axes: {list(self.axes)}")
        values = self.axes[axis]
        numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        if len(numbers) != len(values) or len(values) < 2:
            raise ConfigurationError(f"boundary: the axis {axis!r} needs at least two numbers, got {values}")


def _explain_boundary(given: dict[str, Any], where: str) -> str:
    try:
        Boundary.model_validate(given)
    except ValidationError as error:
        return explain(error, Boundary, f"{where}: boundary")
    raise AssertionError("unreachable: the caller has seen the error")


class _located:
    """Puts the file's name in front of configuration errors."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ConfigurationError) and not str(error).startswith(self._where):
            raise ConfigurationError(f"{self._where}: {error}") from None


def _named(name: str, text: str) -> Expression:
    try:
        return Expression(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"derived {name!r}: {error}") from None


def _ordered(derived: dict[str, Expression]) -> dict[str, Expression]:
    """Derived settings so that each comes after those it uses."""
    ordered: dict[str, Expression] = {}
    waiting = dict(derived)
    while waiting:
        ready = [n for n, e in waiting.items() if not e.names & waiting.keys()]
        if not ready:
            raise ConfigurationError(f"derived settings depend on each other in a circle: {', '.join(sorted(waiting))}")
        for name in ready:
            ordered[name] = waiting.pop(name)
    return ordered


def _seeds(spec: object) -> list[int]:
    if not isinstance(spec, list | tuple | dict):
        raise ConfigurationError(f"seeds is a list such as [0, 1, 2] or {{from: 0, to: 9, step: 1}}, got {spec!r}")
    seeds = expand("seeds", spec)
    for seed in seeds:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
            raise ConfigurationError(f"a seed is an integer in [0, 2^63), got {seed!r}")
    return [int(s) for s in seeds if isinstance(s, int)]
