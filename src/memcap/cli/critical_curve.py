"""``memcap critical --curve``: a critical size along one field, by theory and by simulation, as table and picture."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from memcap.cli.app import out, print_json
from memcap.cli.progress import showing
from memcap.cli.retrieval_options import task_from
from memcap.errors import ConfigurationError

NAMES = {"recall": "recall", "clean_recall": "clean recall", "attention": "attention success"}


def sweep(
    curve: str,
    options: dict[str, Any],
    fill: dict[str, int],
    solve_for: str,
    target: dict[str, Any],
    seeds: int | None,
    test_samples: int | None,
    destination: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Print (and draw) the critical size at every value of the curve; 1 if no value has one."""
    from memcap.cli.curve_drawing import check_destination, curve_title, draw_curve
    from memcap.cli.retrieval_curve import curve_points
    from memcap.retrieval.critical import critical
    from memcap.retrieval.simulated_critical import STEPS, simulated_critical
    from memcap.retrieval.task import integer

    path = None if destination is None else check_destination(destination)
    seeds = integer("seeds", 3 if seeds is None else seeds, 0, 10**6)
    test_samples = integer("test_samples", 2048 if test_samples is None else test_samples, 1, 2**40)
    field, values = curve_points(curve)
    if field == solve_for:
        raise ConfigurationError(f"--curve sweeps {field}, which is solved for; choose another --solve-for")
    task = task_from(options, fill={**fill, field: values[0]})
    rows: list[dict[str, Any]] = []
    with showing(quiet or as_json) as progress:
        done, total = 0, len(values) * len(STEPS) * seeds

        def ran() -> None:
            nonlocal done
            done += 1
            if progress:
                progress(done, max(total, done), "runs")

        for value in values:
            at = task.replace(**{field: value})
            found = critical(at, solve_for=solve_for, **target)
            row: dict[str, Any] = {field: value, "predicted": None if found.value is None else found.crossing}
            row |= {"reason": found.reason, "simulated": None, "low": None, "high": None}
            if seeds and found.value is not None:
                run = simulated_critical(at, found, seeds=seeds, test_samples=test_samples, progress=ran)
                numbers = {"simulated": run.value, "low": run.interval[0], "high": run.interval[1]}
                row |= {"reason": run.reason, **{n: None if math.isnan(x) else x for n, x in numbers.items()}}
            rows.append(row)
    if path is not None:
        draw_curve(rows, field, curve_title(task, field, solve_for), path, size=f"critical {solve_for}")
    if as_json:
        kept = {"field": field, "solve_for": solve_for, "target": found.target, "level": found.level}
        print_json({**kept, "curve": rows, "drawn": None if path is None else str(path)})
    else:
        out.print(f"{solve_for} for {NAMES[found.target]} {found.level:g}", markup=False)
        _print(field, rows, path)
    return 0 if any(row["predicted"] is not None for row in rows) else 1


def _print(field: str, rows: list[dict[str, Any]], path: Path | None) -> None:
    from memcap.cli.retrieval_curve import picture

    out.print(f"{field:>12} {'predicted':>12} {'simulated':>12}  95 % interval over seeds", markup=False)
    points: list[tuple[float, float, float] | None] = []
    for row in rows:
        middle, low, high = row["simulated"], row["low"], row["high"]
        points.append(None if middle is None else (middle, low or middle, high or middle))
        cells = ["–" if row[name] is None else f"{row[name]:,.0f}" for name in ("predicted", "simulated")]
        ends = row["reason"] if low is None else f"[{low:,.0f}, {high:,.0f}]"
        out.print(f"{row[field]:12,} {cells[0]:>12} {cells[1]:>12}  {ends}", markup=False)
    if any(row["predicted"] is not None for row in rows):
        values, predicted = [row[field] for row in rows], [row["predicted"] for row in rows]
        out.print(picture(field, values, predicted, points, sizes=True), markup=False)
    if path is not None:
        out.print(f"drawn: {path}", markup=False)
