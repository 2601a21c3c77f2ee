"""One figure: a chart specification without colours or data, the plain tables it draws, and how it becomes a file.

A specification names its data (``{"name": "cells"}``) and roles of colour; ``vega_lite`` puts the tables and a theme
in.  Images are made by vl-convert, without a browser and without a network.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from memcap.errors import ConfigurationError, missing_folder, nearest
from memcap.report.theme import PALETTES, config, ramp

FORMATS = ("svg", "pdf", "png", "json")
COLUMN_WIDTH = {1: 241, 2: 505}
"""Width of a figure in points: one column and both columns of a common two-column paper."""


@dataclass(frozen=True)
class Figure:
    """A chart and the tables it draws.

    Attributes:
        name: short, for file names and anchors.
        title: what it shows, in words.
        caption: how to read it.
        chart: Vega-Lite specification without data, size and configuration.
        tables: name -> plain table, as named in the specification.
        link: column of the tables -> setting that it holds; how a click becomes a selection of cells.
        fixed: settings that are the same in everything drawn, of a study that varies them.
        series: number of ordered series, for the ordinal colours.
        height: of the plot on a page, in pixels.
        ratio: height over width of an exported image.
    """

    name: str
    title: str
    caption: str
    chart: dict[str, Any]
    tables: dict[str, pd.DataFrame]
    link: dict[str, str] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)
    series: int = 2
    height: int = 320
    ratio: float = 0.75

    def vega_lite(self, theme: str = "paper", *, columns: int = 1, width: int | None = None) -> dict[str, Any]:
        """A complete Vega-Lite specification: data, configuration and size inside.

        Args:
            theme: ``light``, ``dark`` or ``paper``.
            columns: 1 or 2 columns of a two-column paper.
            width: of the image in points (pixels on a screen), instead of ``columns``.

        Raises:
            ConfigurationError: for an unknown theme or number of columns.
        """
        if columns not in COLUMN_WIDTH:
            raise ConfigurationError(f"columns must be 1 or 2, got {columns!r}")
        settings = config(theme)
        settings["range"]["ordinal"] = ramp(theme, self.series)
        spec = copy.deepcopy(self.chart)
        spec["config"] = settings
        spec["background"] = PALETTES[theme].paper
        spec["params"] = [*theme_params(theme), *spec.get("params", [])]
        spec["datasets"] = {name: records(table) for name, table in self.tables.items()}
        width = width or COLUMN_WIDTH[columns]
        tall = min(width, max(1.5 * COLUMN_WIDTH[1], 0.62 * width))  # a wide figure is not as tall
        spec["width"], spec["height"] = width, round(tall * self.ratio)
        spec["autosize"] = {"type": "fit", "contains": "padding"}
        return spec

    def save(
        self, path: str | Path, *, theme: str = "paper", columns: int = 1, width: int | None = None, ppi: int = 300
    ) -> Path:
        """Write the figure as SVG, PDF, PNG or Vega-Lite JSON, by the suffix of ``path``; returns the path.

        Raises:
            ConfigurationError: for another suffix, or a folder that does not exist.
        """
        path = Path(path)
        kind = path.suffix.lstrip(".").lower()
        if kind not in FORMATS:
            raise ConfigurationError(
                f"cannot write a figure as {path.name!r}{nearest(kind, FORMATS)}; formats: {', '.join(FORMATS)}"
            )
        if not path.absolute().parent.is_dir():
            raise missing_folder(path)
        path.write_bytes(render(self.vega_lite(theme, columns=columns, width=width), kind, ppi=ppi))
        return path


def theme_params(theme: str) -> list[dict[str, Any]]:
    """Parameters that a specification may use: the selection (none at first) and colours of the two sources."""
    c = PALETTES[theme]
    return [
        {"name": "picked", "value": None},
        {"name": "measured_colour", "value": c.measured},
        {"name": "predicted_colour", "value": c.predicted},
        {"name": "ink", "value": c.ink},
        {"name": "paper", "value": c.paper},
    ]


def render(spec: Mapping[str, Any], kind: str, *, ppi: int = 300) -> bytes:
    """A complete specification as the bytes of an ``svg``, ``pdf``, ``png`` or ``json`` file."""
    if kind == "json":
        return (json.dumps(spec, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    import vl_convert

    language = vega_lite_version()
    if kind == "png":
        return bytes(vl_convert.vegalite_to_png(dict(spec), vl_version=language, ppi=ppi, scale=1))
    if kind == "pdf":
        return bytes(vl_convert.vegalite_to_pdf(dict(spec), vl_version=language))
    return str(vl_convert.vegalite_to_svg(dict(spec), vl_version=language)).encode()


def vega_lite_version() -> str:
    """The Vega-Lite version that altair writes, as vl-convert names it: ``6.1``.

    Raises:
        ConfigurationError: if the installed vl-convert cannot draw what the installed altair writes.
    """
    import altair
    import vl_convert

    wanted = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    known = list(vl_convert.get_vegalite_versions())
    if wanted not in known:
        raise ConfigurationError(
            f"altair {altair.__version__} writes Vega-Lite {wanted}, but vl-convert {version('vl-convert-python')} "
            f"draws {', '.join(known)}; install matching ones: pip install -U altair vl-convert-python"
        )
    return wanted


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as strict JSON values; NaN and infinities become null."""
    columns = {str(name): [json_value(v) for v in table[name].tolist()] for name in table.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def json_value(value: Any) -> Any:
    """``value`` as strict JSON; of a float that is not whole seven significant digits are kept."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value == int(value) and abs(value) < 2**53 else float(f"{value:.7g}")
    return value if value is None or isinstance(value, bool | int | str) else str(value)
