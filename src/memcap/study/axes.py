"""How an axis of a grid is written: a list, ``{from, to, step}`` or ``{from, to, per_octave}``; and its values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memcap.errors import ConfigurationError
from memcap.study.validation import explain

Scalar = bool | int | float | str | None
_MOST_VALUES = 100_000


class Range(BaseModel):
    """Equal steps, both ends included where the step meets them."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)

    start: int | float = Field(alias="from", allow_inf_nan=False)
    stop: int | float = Field(alias="to", allow_inf_nan=False)
    step: int | float = Field(gt=0, allow_inf_nan=False)

    def values(self) -> list[int | float]:
        """In decimal arithmetic, so that ``{from: 0.1, to: 0.3, step: 0.1}`` is 0.1, 0.2, 0.3."""
        start, stop, step = (Decimal(str(x)) for x in (self.start, self.stop, self.step))
        count = int((stop - start) / step) + 1 if stop >= start else 0
        _refuse_too_many(count)
        whole = all(isinstance(x, int) for x in (self.start, self.stop, self.step))
        points = [start + k * step for k in range(count)]
        return [int(p) for p in points] if whole else [float(p) for p in points]


class LogRange(BaseModel):
    """Equal ratios: ``per_octave`` points for every factor of 2 (or ``per_decade`` for every factor of 10)."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)

    start: int | float = Field(alias="from", gt=0, allow_inf_nan=False)
    stop: int | float = Field(alias="to", gt=0, allow_inf_nan=False)
    per_octave: int | None = Field(default=None, ge=1)
    per_decade: int | None = Field(default=None, ge=1)

    def values(self) -> list[int | float]:
        """Whole ends give whole numbers (rounded, each once); the upper end is included if the ratio meets it."""
        base, per = (2, self.per_octave) if self.per_octave else (10, self.per_decade or 1)
        points: list[int | float] = []
        k = 0
        while (point := self.start * base ** (k // per) * float(base) ** ((k % per) / per)) <= self.stop * (1 + 1e-9):
            points.append(point)
            k += 1
            _refuse_too_many(k)
        if isinstance(self.start, int) and isinstance(self.stop, int):
            return list(dict.fromkeys(round(p) for p in points))
        return points


def _refuse_too_many(count: int) -> None:
    if count > _MOST_VALUES:
        raise ConfigurationError(f"an axis has at most {_MOST_VALUES:,} values; make its step larger")


def axis_kind(spec: dict[str, Any]) -> Literal["range", "log"]:
    """Which of the two ranges a mapping means."""
    return "log" if "per_octave" in spec or "per_decade" in spec else "range"


def expand(name: str, spec: object) -> list[Scalar]:
    """The values of axis ``name``, in the order written; each once.

    Raises:
        ConfigurationError: if ``spec`` is none of the three forms, is empty, or repeats a value.

    >>> expand("samples", {"from": 64, "to": 256, "per_octave": 2})
    [64, 91, 128, 181, 256]
    >>> expand("noise", {"from": 0.1, "to": 0.3, "step": 0.1})
    [0.1, 0.2, 0.3]
    """
    values: list[Any]
    if isinstance(spec, list | tuple):
        values = list(spec)
        for value in values:
            if not isinstance(value, bool | int | float | str | None) or value != value:
                raise ConfigurationError(f"axis {name!r}: a value is a number, text, true or false; got {value!r}")
    elif isinstance(spec, dict):
        model: type[Range] | type[LogRange] = LogRange if axis_kind(spec) == "log" else Range
        if "per_octave" in spec and "per_decade" in spec:
            raise ConfigurationError(f"axis {name!r}: give per_octave or per_decade, not both")
        try:
            values = list(model.model_validate(spec).values())
        except ValidationError as error:
            raise ConfigurationError(explain(error, model, f"axis {name!r}")) from None
        except ConfigurationError as error:
            raise ConfigurationError(f"axis {name!r}: {error}") from None
    else:
        raise ConfigurationError(
            f"axis {name!r} is a list, {{from, to, step}} or {{from, to, per_octave}}; got {spec!r} "
            f"(one value for all cells belongs under 'fixed')"
        )
    if not values:
        raise ConfigurationError(f"axis {name!r} has no values: {spec!r}")
    seen = {(type(v), v) for v in values}
    if len(seen) != len(values):
        twice = next(v for i, v in enumerate(values) if v in values[:i])
        raise ConfigurationError(f"axis {name!r} names {twice!r} twice")
    return values
