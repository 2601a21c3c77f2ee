"""What is to be remembered by early gradient steps: one token-retrieval problem, validated and named by its content.

Not here: the numbers drawn from it (``streams``, ``embeddings``), training (``simulate``), theory (``predict``).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, no_type_check

import numpy as np
from jaxtyping import Float

from memcap.errors import ConfigurationError, nearest
from memcap.retrieval.activation import activation

FORMAT = 1
"""Version of the meaning of a task; part of its identity, raised when the same fields would give other data."""

EMBEDDINGS = ("gaussian", "sphere", "orthogonal")
ATTENTION = ("hard", "soft", "uniform", "oracle")
DATA = ("empirical", "population")
FREQUENCIES = ("uniform", "zipf")
LARGEST_VOCABULARY = 2**31
LARGEST_SAMPLES = 2**62


@no_type_check  # at run time: its own checks name the field and say what to do
@dataclass(frozen=True, kw_only=True)
class RetrievalTask:
    """A token-retrieval problem: find the marked token in a sequence and answer with the label of that token.

    Every sequence holds ``length`` tokens; one position carries the trigger; the answer is π(the token there) for a
    random permutation π.  Repeats of that token elsewhere do not change the answer.

    Args:
        vocabulary: V, number of tokens and of labels, at least 2.
        length: L, tokens a sequence, at least 1.
        samples: N, training sequences, at least 1.
        dimension: d, of the frozen embeddings, at least 1.
        width: m, of the frozen MLP; None or 0 for attention only.
        activation: of the MLP: ``relu``, ``gelu``, ``tanh``, ``he2`` or a sum of normalised Hermite polynomials such
            as ``"h1+h2"`` (see ``memcap.retrieval.activation``).
        embeddings: ``gaussian`` (entries N(0, 1/d)), ``sphere`` (unit columns) or ``orthogonal`` (orthonormal
            columns and trigger; needs dimension >= vocabulary + 1).
        trigger_in_value: whether the trigger is also added in the value path.
        frequencies: ``"uniform"``, ``"zipf"`` (exponent 1) or a Zipf exponent s; token t has probability ∝ (t+1)^-s.
        facts: K, facts asked for in every sequence, at most ``length``.  Each has a trigger, on a position of its own,
            and a query; all share π.  A training sequence counts once for each of its facts.
        label_noise: probability that a training label is replaced by a uniform draw over all labels (the right one
            included).  Test answers are never noisy.
        attention: ``hard`` (default, as in all published tables: the largest score takes all, the limit of a large
            attention step), ``soft`` (softmax), ``uniform`` (only the first step is taken) or ``oracle`` (all attention
            on the informative position).
        data: ``empirical`` (``samples`` sequences) or ``population`` (gradients of the expected loss; ``samples`` is
            not used).
        seed: of every random stream, in [0, 2^63).

    Raises:
        ConfigurationError: for an unknown name, a value out of range or fields that do not fit together.

    Source: arXiv 2603.15923, section 2 (setting).

    >>> task = RetrievalTask(vocabulary=64, length=16, samples=2_000, dimension=24)
    >>> task.attention, task.width, task.identity[:8]
    ('hard', None, '6ee93ebe')
    """

    vocabulary: int
    length: int
    samples: int
    dimension: int
    width: int | None = None
    activation: str = "relu"
    embeddings: str = "gaussian"
    trigger_in_value: bool = False
    frequencies: str | float = "uniform"
    facts: int = 1
    label_noise: float = 0.0
    attention: str = "hard"
    data: str = "empirical"
    seed: int = 0

    def __new__(cls, *args: Any, **fields: Any) -> RetrievalTask:
        """Refuse misspelt and missing fields with one readable message before Python's own TypeError."""
        if args:
            raise ConfigurationError("RetrievalTask takes its fields by name only: RetrievalTask(vocabulary=..., ...)")
        if fields:  # copy and pickle call __new__ without fields
            check_fields(cls, fields)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        self._set("vocabulary", integer("vocabulary", self.vocabulary, 2, LARGEST_VOCABULARY))
        self._set("length", integer("length", self.length, 1, 2**31))
        self._set("samples", integer("samples", self.samples, 1, LARGEST_SAMPLES))
        self._set("dimension", integer("dimension", self.dimension, 1, 2**31))
        self._set("width", integer("width", self.width or 0, 0, 2**31) or None)
        self._set("facts", integer("facts", self.facts, 1, 2**16))
        if self.facts > self.length:
            raise ConfigurationError(
                f"every fact needs a position of its own: facts must be <= length = {self.length}, got {self.facts}"
            )
        self._set("seed", integer("seed", self.seed, 0, 2**63 - 1))
        one_of("embeddings", self.embeddings, EMBEDDINGS)
        one_of("attention", self.attention, ATTENTION)
        one_of("data", self.data, DATA)
        if not isinstance(self.activation, str):
            raise ConfigurationError(f"activation must be a name, got {self.activation!r}")
        activation(self.activation)
        if not isinstance(self.trigger_in_value, bool | np.bool_):
            raise ConfigurationError(f"trigger_in_value must be True or False, got {self.trigger_in_value!r}")
        self._set("trigger_in_value", bool(self.trigger_in_value))
        self._set("frequencies", _frequencies(self.frequencies))
        self._set("label_noise", real("label_noise", self.label_noise, 0.0, 1.0))
        if self.label_noise == 1.0:
            raise ConfigurationError("label_noise must be below 1, got 1.0: no training label would carry information")
        if self.embeddings == "orthogonal" and self.dimension < self.vocabulary + self.facts:
            name, needs = ("1", "the trigger needs") if self.facts == 1 else ("facts", "every trigger needs")
            raise ConfigurationError(
                f"orthogonal embeddings need dimension >= vocabulary + {name} = {self.vocabulary + self.facts} "
                f"({needs} a direction of its own), got dimension = {self.dimension}"
            )

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def zipf_exponent(self) -> float:
        """The exponent of the token frequencies; 0 when uniform."""
        return self.frequencies if isinstance(self.frequencies, float) else 0.0

    def token_probabilities(self) -> Float[np.ndarray, " vocabulary"]:
        """The probability of each token; sums to 1."""
        weights: np.ndarray = np.arange(1, self.vocabulary + 1, dtype=np.float64) ** -self.zipf_exponent
        return np.asarray(weights / weights.sum())

    def to_dict(self) -> dict[str, Any]:
        """Every field, ready for strict JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> RetrievalTask:
        """The task with these fields; unknown keys are refused with the nearest valid name."""
        return cls(**fields)

    def replace(self, **changes: Any) -> RetrievalTask:
        """A task with some fields changed.

        >>> RetrievalTask(vocabulary=9, length=2, samples=5, dimension=3).replace(samples=6).samples
        6
        """
        return type(self)(**{**self.to_dict(), **changes})

    @property
    def identity(self) -> str:
        """SHA-256 (hex) of every field and the format version; equal tasks, and only they, share it.

        ``facts`` came later and is left out where it is 1, so that tasks keep the names they had.
        """
        fields = {name: value for name, value in self.to_dict().items() if (name, value) != ("facts", 1)}
        text = json.dumps({"format": FORMAT, **fields}, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()


def check_fields(cls: type, fields: Mapping[str, Any]) -> None:
    """Refuse keys that a dataclass does not have, and missing ones that it needs.

    Raises:
        ConfigurationError: naming the field, and the nearest valid one for a misspelt key.
    """
    known = {f.name: f for f in dataclasses.fields(cls)}
    for name in fields:
        if name not in known:
            raise ConfigurationError(
                f"{cls.__name__} has no field {name!r}{nearest(str(name), known)}; fields: {', '.join(known)}"
            )
    missing = [n for n, f in known.items() if f.default is f.default_factory and n not in fields]
    if missing:
        raise ConfigurationError(f"{cls.__name__} needs {', '.join(missing)}")


def require_task(value: object, caller: str) -> RetrievalTask:
    """``value`` if it is a task, or a ConfigurationError that names the function it was given to."""
    if not isinstance(value, RetrievalTask):
        raise ConfigurationError(f"{caller} takes a RetrievalTask, got {type(value).__name__}")
    return value


def integer(name: str, value: Any, lowest: int, highest: int) -> int:
    """``value`` as an int in [lowest, highest], or a ConfigurationError naming the field."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not lowest <= int(value) <= highest:
        raise ConfigurationError(f"{name} must be an integer in [{lowest}, {highest}], got {value!r}")
    return int(value)


def real(name: str, value: Any, lowest: float, highest: float) -> float:
    """``value`` as a finite float in [lowest, highest], or a ConfigurationError naming the field."""
    good = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not good or not math.isfinite(value) or not lowest <= float(value) <= highest:
        raise ConfigurationError(f"{name} must be a finite number in [{lowest:g}, {highest:g}], got {value!r}")
    return float(value)


def one_of(name: str, value: Any, valid: tuple[str, ...]) -> None:
    """Refuse a ``value`` outside ``valid`` with a ConfigurationError naming the nearest valid one."""
    if value not in valid:
        raise ConfigurationError(f"{name} must be one of {', '.join(valid)}, got {value!r}{nearest(str(value), valid)}")


def _frequencies(value: Any) -> str | float:
    if isinstance(value, str):
        one_of("frequencies", value, FREQUENCIES)
        return 1.0 if value == "zipf" else value
    return real("frequencies (a Zipf exponent, 'uniform' or 'zipf')", value, 0.0, 10.0) or "uniform"
