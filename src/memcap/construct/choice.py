"""Keys and labels in, the smallest construction out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memcap.construct.budgeted import memorise_budgeted
from memcap.construct.construction import Construction
from memcap.construct.interpolator import memorise_interpolator
from memcap.construct.keyed import memorise_keyed
from memcap.construct.memorise import memorise_exact
from memcap.errors import ConfigurationError, PrecisionError, nearest
from memcap.exact.counts import count

EXACT_SELECTORS = ("step", "ramp", "bucket", "packed")
FLOAT_SELECTORS = ("packed",)

INTERPOLATOR_WORTH_TRYING = 4096
"""With more changes of label along the sorted keys than this, the interpolator is larger than a hashed memory."""
_MOST_STEPS = 10**9
"""Changes times keys: what an interpolator may take to evaluate on all of them."""

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class KeyOptions:
    """The options of `memcap.build` that concern the network on keys; see there."""

    weights: str = "float64"
    method: str = "keyless"
    selector: str = "auto"
    seed: int = 0
    lanes: int | str = 1
    bits: int | None = None
    words: int | None = None
    max_depth: int | None = None
    reject_bits: int = 0

    def __post_init__(self) -> None:
        exact = self.weights == "exact"
        valid = ("auto", "interpolator", *(EXACT_SELECTORS if exact else FLOAT_SELECTORS))
        if self.selector not in valid:
            raise ConfigurationError(
                f"selector must be one of {', '.join(valid)} for {self.weights} weights, got {self.selector!r}"
                f"{nearest(self.selector, valid)}"
            )
        if self.lanes != "max" and (isinstance(self.lanes, str) or self.lanes < 1):
            raise ConfigurationError(f"lanes must be a positive integer or 'max', got {self.lanes!r}")
        for name, value in (("bits", self.bits), ("words", self.words), ("max_depth", self.max_depth)):
            if value is not None and value < 1:
                raise ConfigurationError(f"{name} must be a positive integer, got {value!r}")
        if self.reject_bits < 0:
            raise ConfigurationError(f"reject_bits must not be negative, got {self.reject_bits}")
        if exact and (self.lanes != 1 or self.words is not None):
            raise ConfigurationError("lanes and words belong to float64, float32 and int64 weights")
        if not exact and self.method == "keyed":
            raise ConfigurationError("method='keyed' needs weights='exact': its words do not fit a float")
        if not exact and self.reject_bits:
            raise ConfigurationError("reject_bits needs weights='exact'")
        if self.method == "keyed" and (self.reject_bits or self.selector != "auto"):
            raise ConfigurationError("method='keyed' takes neither reject_bits nor a selector")


def construct_on_keys(
    keys: NDArray[np.int64],
    labels: NDArray[np.int64],
    *,
    classes: int,
    options: KeyOptions,
    progress: Progress | None = None,
) -> Construction:
    """The smallest construction that fits the options; below the crossover that is the one-hidden-layer interpolator.

    Args:
        keys: distinct non-negative integers (N,), or two limbs (N, 2) for float32 sequences.
        labels: class index per key, (N,).
        classes: number of classes.
    """
    candidates = []
    changes = _changes(keys, labels)
    small = changes <= INTERPOLATOR_WORTH_TRYING and changes * len(keys) <= _MOST_STEPS
    if options.selector == "interpolator" or (options.selector == "auto" and small and _interpolator_allowed(options)):
        try:
            flat = memorise_interpolator(keys, labels, classes=classes, dtype=options.weights)
        except PrecisionError:
            if options.selector == "interpolator":
                raise
        else:
            if options.max_depth is None or flat.network.depth <= options.max_depth:
                candidates.append(flat)
            elif options.selector == "interpolator":
                raise ConfigurationError(
                    f"max_depth={options.max_depth} is out of reach: the interpolator has depth {flat.network.depth}"
                )
    if options.selector != "interpolator":
        try:
            candidates.append(_memorise(keys, labels, classes, options, progress))
        except (PrecisionError, ConfigurationError):  # keys too wide for a hash, or no hashed memory is that shallow
            if not candidates:
                raise
    return min(candidates, key=lambda c: count(c.network).nonzero)


def _changes(keys: NDArray[np.int64], labels: NDArray[np.int64]) -> int:
    """How often the label changes along the sorted keys."""
    order = np.lexsort(keys.T[::-1]) if keys.ndim == 2 else np.argsort(keys)
    return int(np.count_nonzero(np.diff(labels[order])))


def _interpolator_allowed(options: KeyOptions) -> bool:
    plain = options.bits is None and options.words is None and options.lanes == 1
    return plain and options.method == "keyless" and options.reject_bits == 0


def _memorise(
    keys: NDArray[np.int64],
    labels: NDArray[np.int64],
    classes: int,
    options: KeyOptions,
    progress: Progress | None,
) -> Construction:
    if options.weights == "exact" and options.method == "keyed":
        return memorise_keyed(keys, labels, classes=classes, max_depth=options.max_depth, bits=options.bits)
    if options.weights == "exact":
        return memorise_exact(
            keys,
            labels,
            classes=classes,
            selector=options.selector,
            seed=options.seed,
            reject_bits=options.reject_bits,
            max_depth=options.max_depth,
            bits=options.bits,
        )
    return memorise_budgeted(
        keys,
        labels,
        classes=classes,
        dtype=options.weights,
        selector=options.selector,
        seed=options.seed,
        lanes=options.lanes,
        bits=options.bits,
        words=options.words,
        max_depth=options.max_depth,
    )
