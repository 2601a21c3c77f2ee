"""What the three figures share: configuration, tables, checks, and the record ``memcap reproduce`` prints."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from importlib import resources
from typing import Any

import yaml

from memcap.errors import ConfigurationError, FitError
from memcap.study.memory_laws.law_fit import fit_sqrt_law
from memcap.study.memory_laws.size import cells_of, measure_all

Progress = Callable[[int, int, str], None]
Table = dict[str, Any]


def configuration(figure: str, scale: str) -> list[dict[str, Any]]:
    """The checked-in entries of a figure at a scale."""
    text = resources.files("memcap.study.memory_laws").joinpath("configuration.yaml").read_text(encoding="utf-8")
    return list(yaml.safe_load(text)[figure][scale])


def measured(
    figure: str, scale: str, *, seed: int, workers: int, progress: Progress | None, only: str | None
) -> tuple[list[dict[str, Any]], str]:
    """All sizes of a figure, and the hash of the configuration that was run.

    ``only`` keeps the cells whose name, ``"<series>, <classes> classes"``, contains it.
    """
    every = list(cells_of(configuration(figure, scale)))
    names = [f"{cell['series']}, {cell['classes']} classes" for cell in every]
    cells = [cell for cell, name in zip(every, names, strict=True) if only is None or only in name]
    if not cells:
        raise ConfigurationError(f"no series of {figure} contains {only!r}; series: {'; '.join(dict.fromkeys(names))}")
    digest = hashlib.sha256(json.dumps(cells, sort_keys=True).encode()).hexdigest()[:16]
    rows = measure_all(cells, seed=seed, workers=workers, progress=progress, what=f"building {figure}")
    return rows, digest


def law_tables(rows: list[dict[str, Any]]) -> tuple[list[Table], list[dict[str, Any]]]:
    """Tables of sizes and of fitted laws, one law per series and number of classes; and the laws as records."""
    sizes: Table = {
        "title": "non-zero parameters",
        "columns": ["series", "classes", "N", "parameters", "stored bits", "depth", "bits bound N log2 C", "seconds"],
        "rows": [
            [
                r["series"],
                r["classes"],
                r["N"],
                r["parameters"],
                r["stored_bits"],
                r["depth"],
                round(r["N"] * r["label_bits"]),
                r["seconds"],
            ]
            for r in rows
        ],
    }
    laws: list[dict[str, Any]] = []
    for series, classes in dict.fromkeys((r["series"], r["classes"]) for r in rows):
        points = [r for r in rows if (r["series"], r["classes"]) == (series, classes)]
        n, b, p = ([float(r[name]) for r in points] for name in ("N", "label_bits", "parameters"))
        try:
            law = fit_sqrt_law(n, b, p)
        except FitError as reason:
            laws.append({"series": series, "classes": classes, "points": len(points), "reason": str(reason)})
        else:
            laws.append({"series": series, "classes": classes, **vars(law)})
    fitted: Table = {
        "title": "fitted laws a sqrt(N b) + c log2 N + d (95 % intervals)",
        "columns": ["series", "classes", "points", "a", "c", "d", "worst residual"],
        "rows": [_law_row(law) for law in laws],
    }
    return [sizes, fitted], laws


def _law_row(law: dict[str, Any]) -> list[Any]:
    if "reason" in law:
        return [law["series"], law["classes"], law["points"], "too few points", None, None, None]
    shown = [f"{law[x]:.2f} [{law[f'{x}_interval'][0]:.2f}, {law[f'{x}_interval'][1]:.2f}]" for x in "acd"]
    return [law["series"], law["classes"], law["points"], *shown, f"{100 * law['worst']:.1f} %"]


def recall_check(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Every memory that was built recalls all of its items."""
    built = [r for r in rows if "reason" not in r]
    share = sum(r["recalled"] for r in built) / len(built) if built else 0.0
    return {"what": "memories that recall every item", "measured": share, "bound": 1.0, "passed": share == 1.0}


def law_figure(
    figure: str,
    scale: str,
    bounds: dict[tuple[str, int, int], int],
    *,
    by: str,
    seed: int,
    workers: int,
    progress: Progress | None,
    only: str | None,
) -> dict[str, Any]:
    """Measure a figure of sizes, fit its laws, and check recall and the largest sizes accepted.

    ``bounds`` holds parameters at (series, classes, size); ``by`` is the column that says the size.
    """
    began = time.perf_counter()
    rows, digest = measured(figure, scale, seed=seed, workers=workers, progress=progress, only=only)
    tables, laws = law_tables(rows)
    checks = [recall_check(rows)]
    for row in rows:
        bound = bounds.get((row["series"], row["classes"], row[by]))
        if bound is not None:
            what = f"{row['series']}, {row['classes']} classes, N = {row['N']:,}: parameters"
            passed = row["parameters"] <= bound
            checks.append({"what": what, "measured": row["parameters"], "bound": bound, "passed": passed})
    return record(
        figure, scale, seed=seed, began=began, digest=digest, tables=tables, checks=checks, laws=laws, sizes=rows
    )


def record(
    figure: str,
    scale: str,
    *,
    seed: int,
    began: float,
    digest: str,
    tables: list[Table],
    checks: list[dict[str, Any]],
    **extra: Any,
) -> dict[str, Any]:
    """The dictionary that ``memcap reproduce`` expects."""
    return {
        "figure": figure,
        "scale": scale,
        "seed": seed,
        "seconds": time.perf_counter() - began,
        "configuration": digest,
        "tables": tables,
        "checks": checks,
        **extra,
    }
