"""Step sizes of the three gradient steps; the default is the small-step limit.  Not here: continued training."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, no_type_check

from memcap.errors import ConfigurationError
from memcap.retrieval.task import RetrievalTask, check_fields, real

LARGEST = 1e30


@no_type_check  # at run time: its own checks name the field and say what to do
@dataclass(frozen=True, kw_only=True)
class StepSizes:
    """Step sizes η, γ, γ_v of the value, attention and second value step.

    Args:
        first: η; None for the limit η → 0 (the early phase proper).
        attention: γ; None chooses it by the nominal gap, γ |z_EOS|² η b0 = κ ln L.
        second: γ_v; None reads the second value gradient alone ("W_V2 without W_V1"), as all published tables do.
        sharpness: κ of the nominal gap; at κ >= 3 soft attention recalls as much as hard attention.

    Raises:
        ConfigurationError: for negative, zero or non-finite sizes, or ``attention``/``second`` without ``first``.

    >>> StepSizes(first=1.0, second=1.0).limit
    False
    """

    first: float | None = None
    attention: float | None = None
    second: float | None = None
    sharpness: float = 4.0

    def __new__(cls, *args: Any, **fields: Any) -> StepSizes:
        """Refuse misspelt fields with one readable message."""
        if args:
            raise ConfigurationError("StepSizes takes its fields by name only: StepSizes(first=..., ...)")
        check_fields(cls, fields)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is None and field.name != "sharpness":
                continue
            number = real(f"step size {field.name!r}", value, 0.0, LARGEST)
            if number == 0:
                raise ConfigurationError(f"step size {field.name!r} must be positive, got {value!r}")
            object.__setattr__(self, field.name, number)
        if self.first is None and (self.attention is not None or self.second is not None):
            raise ConfigurationError(
                "step sizes 'attention' and 'second' need 'first': without it the steps are infinitesimal and only "
                "'sharpness' has a meaning"
            )

    @property
    def limit(self) -> bool:
        """Whether the steps are infinitesimal."""
        return self.first is None

    def to_dict(self) -> dict[str, float | None]:
        """Every field, ready for strict JSON."""
        return dataclasses.asdict(self)


def nominal_drive(task: RetrievalTask) -> float:
    """E β of the trigger in units of η, from the population table alone: (1-1/L) Σ p_t² (1-noise)²/(L² K).

    For uniform frequencies and one fact a sequence this is b0 = (1-1/L)/(L²V).

    Source: derived here: docs/theory/retrieval-engines.md.
    """
    weight = float((task.token_probabilities() ** 2).sum()) if task.zipf_exponent else 1 / task.vocabulary
    return (1 - 1 / task.length) * weight * (1 - task.label_noise) ** 2 / task.length**2 / task.facts


def score_scale(task: RetrievalTask, sizes: StepSizes, end_norm2: float) -> float:
    """The factor that turns u·key into an attention score; infinite for hard attention.

    In the limit u is in units of η, so the factor is κ ln L / b0.  For L = 1 it is 0 (one position takes all).
    """
    if task.length == 1:
        return 0.0
    if task.attention == "hard":
        return math.inf
    if sizes.attention is not None:
        return sizes.attention * end_norm2
    return sizes.sharpness * math.log(task.length) / (nominal_drive(task) * (sizes.first or 1.0))
