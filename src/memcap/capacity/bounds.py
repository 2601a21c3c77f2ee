"""How small a memory could possibly be: lower bounds on parameters, beside what was built.

Only bounds with explicit constants are numbers here.  Statements of the literature whose constants are unspecified are
returned as text (`CITED`), never as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from memcap.errors import ConfigurationError
from memcap.exact.counts import ParameterCount
from memcap.exact.network import Attention, Network

CITED = (
    "ReLU networks with W parameters and L layers have VC dimension O(W L log W), and some have Omega(W L log(W / L)) "
    "(Bartlett, Harvey, Liaw & Mehrabian, JMLR 2019)",
    "transformers of depth L with W parameters on sequences of length T: O(L W log(T W)) and Omega(L W log(T W / L)) "
    "(Yang, Srebro & Li, arXiv 2606.09731)",
    "next-token memorisation needs Omega(sqrt N) parameters up to logarithms, hardmax sequence to sequence "
    "Omega(sqrt(n N)) (Kajitsuka & Sato, arXiv 2409.17677)",
    "width and depth trade as width^2 depth^2 = Theta(N log(1 / delta)) (Yang & Yang, arXiv 2603.09589)",
)
"""Published asymptotic statements; their constants are not specified, so no number follows from them."""


def _check(items: int, classes: int) -> None:
    if items < 1 or classes < 2:
        raise ConfigurationError(f"bounds need at least 1 item and 2 classes, got {items} items and {classes} classes")


def information_bits(items: int, classes: int, entropy: float | None = None) -> float:
    """Bits the stored numbers must hold: ``N log2 C``, or ``N H`` when only typical labels of entropy H are asked for.

    A fixed architecture with W numbers of B bits realises at most ``2^(W B)`` functions.

    >>> information_bits(1000, 2)
    1000.0
    """
    _check(items, classes)
    if entropy is not None and not 0 <= entropy <= math.log2(classes) + 1e-9:
        raise ConfigurationError(f"entropy must be in [0, log2 classes = {math.log2(classes):.3f}] bits, got {entropy}")
    return items * (math.log2(classes) if entropy is None else entropy)


def information_parameters(items: int, classes: int, weight_bits: int, entropy: float | None = None) -> int:
    """Fewest parameters of ``weight_bits`` bits each: ``W B >= N log2 C``.

    >>> information_parameters(100_000, 2, 64)
    1563
    """
    if weight_bits < 1:
        raise ConfigurationError(f"weight_bits must be a positive integer, got {weight_bits}")
    return math.ceil(information_bits(items, classes, entropy) / weight_bits)


def growth_log2(layers: Sequence[tuple[int, int]], items: int, classes: int) -> float:
    """log2 of the number of label vectors on ``items`` inputs that a residual ReLU architecture can produce, at most.

    ``sum_j [1 + W_j log2(2e 2j h_j N / W_j)] + [1 + W log2(2e (2L + 1)(C - 1) N / W)]`` with W_j the parameters up to
    layer j and h_j its neurons: pre-activations of layer j are polynomials of degree at most 2j in the parameters.

    Args:
        layers: (parameters, neurons) of every hidden layer in order; a last entry with 0 neurons is the read-out.
        items: inputs N.
        classes: labels C.

    Source: Anthony & Bartlett, Theorem 8.3, applied layer by layer; derived here, docs/theory/exact.md.
    """
    _check(items, classes)
    total, used, hidden = 0.0, 0, 0
    for parameters, neurons in layers:
        used += parameters
        if neurons:
            hidden += 1
            total += _patterns(used, 2 * hidden, neurons * items)
    return total + _patterns(used, 2 * hidden + 1, (classes - 1) * items)


def _patterns(parameters: int, degree: int, conditions: int) -> float:
    """log2 of the sign patterns of ``conditions`` polynomials; Warren's count holds from ``parameters`` of them on."""
    if conditions <= parameters:
        return float(conditions)
    return min(float(conditions), 1 + parameters * math.log2(2 * math.e * degree * conditions / max(parameters, 1)))


def layers_of(network: Network) -> list[tuple[int, int]]:
    """(parameters, neurons) per hidden layer of ``network``, embedding in the first, read-out at the end."""
    layers: list[tuple[int, int]] = []
    waiting = network.embed.nonzero
    for stage in network.stages:
        if isinstance(stage, Attention):
            waiting += stage.value.nonzero + stage.output.nonzero
            continue
        for layer in stage.layers[:-1]:
            layers.append((waiting + layer.nonzero, layer.outputs))
            waiting = 0
        waiting = stage.layers[-1].nonzero
    return [*layers, (waiting + network.read.nonzero, 0)]


def growth_most_items(layers: Sequence[tuple[int, int]], classes: int) -> int:
    """Largest N with ``N log2 C <= growth_log2``: more items no assignment of these parameters can memorise."""
    low, high = 1, 2
    while high * math.log2(classes) <= growth_log2(layers, high, classes):
        low, high = high, 2 * high
        if high > 2**80:
            raise ConfigurationError("the growth bound does not limit this architecture below 2^80 items")
    while high - low > 1:
        middle = (low + high) // 2
        if middle * math.log2(classes) <= growth_log2(layers, middle, classes):
            low = middle
        else:
            high = middle
    return low


def _depth_allows(parameters: int, depth: int, items: int, classes: int) -> bool:
    """``N log2 C <= L + L W log2(2e (2L + 1) N) + W log2 max(1, (C - 1) / W)``: units are at most parameters."""
    log = math.log2(2 * math.e * (2 * depth + 1) * items)
    last = parameters * math.log2(max(1.0, (classes - 1) / parameters))
    return items * math.log2(classes) <= depth + depth * parameters * log + last


def depth_parameters(items: int, classes: int, depth: int) -> int:
    """Fewest parameters of any ReLU network of ``depth`` layers, at unbounded precision: the Õ(N / L) trade-off.

    >>> depth_parameters(100_000, 2, 100) > depth_parameters(100_000, 2, 200)
    True
    """
    _check(items, classes)
    if depth < 1:
        raise ConfigurationError(f"depth must be at least 1, got {depth}")
    low, high = 0, 1
    while not _depth_allows(high, depth, items, classes):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _depth_allows(middle, depth, items, classes) else (middle, high)
    return high


def any_depth_parameters(items: int, classes: int, per_layer: int = 1) -> int:
    """Fewest parameters of any ReLU network with ``per_layer`` or more in each layer: Omega(sqrt(N / log N)).

    >>> any_depth_parameters(100_000, 2), any_depth_parameters(100_000, 2, per_layer=3)
    (62, 111)
    """
    _check(items, classes)
    if per_layer < 1:
        raise ConfigurationError(f"per_layer must be at least 1, got {per_layer}")
    parameters = per_layer
    while not _depth_allows(parameters, parameters // per_layer, items, classes):
        parameters += 1
    return parameters


@dataclass(frozen=True)
class BoundReport:
    """A network beside its lower bounds; parameters are non-zero ones.

    Attributes:
        parameters, bits: of the network.
        label_bits: ``N log2 C``.
        entropy_bits: ``N H``, None when no entropy was given.
        bits_times: stored bits over ``label_bits``.
        information: fewest parameters of ``weight_bits`` bits; None for unbounded precision.
        any_depth: fewest parameters of any ReLU network.
        at_depth: fewest parameters at this depth; None when no depth was given.
        growth_items: most items that this architecture's parameters could memorise; None without layers.
        times: parameters over the largest of the lower bounds.
        cited: published asymptotic statements, as text.
    """

    parameters: int
    bits: int
    label_bits: float
    entropy_bits: float | None
    bits_times: float
    information: int | None
    any_depth: int
    at_depth: int | None
    growth_items: int | None
    times: float
    cited: tuple[str, ...] = CITED


def report(
    count: ParameterCount,
    items: int,
    classes: int,
    entropy: float | None = None,
    *,
    weight_bits: int | None = None,
    depth: int | None = None,
    layers: Sequence[tuple[int, int]] | None = None,
) -> BoundReport:
    """Every bound that applies to a network of ``count`` parameters that holds ``items`` labels of ``classes`` classes.

    Args:
        count: from `memcap.exact.counts.count`.
        items: distinct items; distinct (context, token) pairs for sequence to sequence.
        classes: number of classes.
        entropy: bits per label of the label distribution, when labels are skewed.
        weight_bits: 64, 32, ... for bounded precision; None for integers of any size.
        depth: ReLU layers.
        layers: from `layers_of`, for the growth bound.

    Raises:
        ConfigurationError: for impossible numbers.
    """
    information = None if weight_bits is None else information_parameters(items, classes, weight_bits)
    any_depth = any_depth_parameters(items, classes)
    at_depth = None if depth is None else depth_parameters(items, classes, depth)
    lower = max(any_depth, information or 0, at_depth or 0)
    label_bits = information_bits(items, classes)
    return BoundReport(
        parameters=count.nonzero,
        bits=count.bits,
        label_bits=label_bits,
        entropy_bits=None if entropy is None else information_bits(items, classes, entropy),
        bits_times=count.bits / label_bits,
        information=information,
        any_depth=any_depth,
        at_depth=at_depth,
        growth_items=None if layers is None else growth_most_items(layers, classes),
        times=count.nonzero / lower,
    )
