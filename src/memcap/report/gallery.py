"""The figures of a report: each is built from the subject, or says in words why it cannot be drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memcap.errors import ConfigurationError, nearest
from memcap.report.drawing import Figure
from memcap.report.figures.lines import agreement, collapse, critical, curves, curves_across
from memcap.report.figures.planes import phase, phase_difference, phase_predicted
from memcap.report.figures.shares import exponents, signal, states, times
from memcap.report.subject import Built, Panel, Subject

KINDS: dict[str, Callable[[Subject, Panel], Built]] = {
    "phase": phase,
    "phase-predicted": phase_predicted,
    "difference": phase_difference,
    "critical": critical,
    "curves": curves,
    "curves-across": curves_across,
    "collapse": collapse,
    "agreement": agreement,
    "signal": signal,
    "times": times,
    "exponents": exponents,
    "states": states,
}
"""Name of a figure -> how it is built, in the order of the report."""


def build(s: Subject, kind: str) -> Built:
    """The figure ``kind`` of the first panel.

    Raises:
        ConfigurationError: for an unknown kind.
    """
    if kind not in KINDS:
        raise ConfigurationError(f"no figure {kind!r}{nearest(kind, KINDS)}; figures: {', '.join(KINDS)}")
    return KINDS[kind](s, s.panels[0])


def gallery(s: Subject) -> tuple[list[Figure], dict[str, str]]:
    """All figures that the study supports, and for the others the reason; phase diagrams once per panel."""
    figures: list[Figure] = []
    reasons: dict[str, str] = {}
    for kind, make in KINDS.items():
        for i, panel in enumerate(s.panels if kind == "phase" else s.panels[:1]):
            built = make(s, panel)
            if isinstance(built, str):
                reasons[kind] = built
            else:
                figures.append(built if i == 0 else replace(built, name=f"{built.name}-{i + 1}"))
    return figures, reasons
