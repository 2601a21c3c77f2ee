"""Reports: phase diagrams, boundaries, collapse, exponents and every cell, as one offline page or as images.

The public names are imported on first use: ``memcap.Study`` lives in this room and must not load the charts.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memcap.report.compose import figure as figure
    from memcap.report.compose import write as write
    from memcap.report.law import law_chart as law_chart

_HOMES = {
    "figure": "memcap.report.compose",
    "law_chart": "memcap.report.law",
    "write": "memcap.report.compose",
}

__all__ = ["figure", "law_chart", "write"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        from memcap.errors import nearest

        raise AttributeError(f"module 'memcap.report' has no attribute {name!r}{nearest(name, _HOMES)}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
