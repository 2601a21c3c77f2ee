"""``memcap predict``: expected recall of a retrieval task from formulas, its noise budget, or a whole curve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from memcap.cli.app import out, print_json
from memcap.cli.progress import showing
from memcap.cli.retrieval_options import curve_options, task_from, task_options
from memcap.cli.shared_options import output_options
from memcap.errors import ConfigurationError

if TYPE_CHECKING:
    from memcap.retrieval.prediction import Prediction
    from memcap.retrieval.task import RetrievalTask


@click.command(name="predict")
@task_options
@curve_options
@output_options
def command(
    as_json: bool,
    quiet: bool,
    curve: str | None,
    seeds: int | None,
    test_samples: int | None,
    destination: str | None,
    **options: Any,
) -> None:
    """Expected recall after three small gradient steps, and what limits it; nothing is fitted and nothing sampled.

    Examples:

        memcap predict -V 1024 -L 16 -N 40000 -d 252

        memcap predict -V 128 -L 32 -d 48 --curve samples=100..100000 --out curve.svg
    """
    from memcap.cli.retrieval_curve import curve_points
    from memcap.retrieval.prediction import predict
    from memcap.retrieval.task import integer

    if curve is None:
        if (seeds, test_samples, destination) != (None, None, None):
            raise ConfigurationError(
                "--seeds, --test-samples and --out belong to --curve; for one task run: memcap simulate"
            )
        task = task_from(options)
        _print_prediction(task, predict(task), as_json)
        return
    from memcap.cli.curve_drawing import check_destination, curve_title, draw_curve

    path = None if destination is None else check_destination(destination)
    seeds = integer("seeds", 3 if seeds is None else seeds, 0, 10**6)
    test_samples = integer("test_samples", 2048 if test_samples is None else test_samples, 1, 2**40)
    field, values = curve_points(curve)
    task = task_from(options, fill={field: values[0]})
    tasks = [task.replace(**{field: value}) for value in values]
    with showing(quiet or as_json) as progress:
        rows = _curve(field, tasks, seeds, test_samples, progress)
    if path is not None:
        draw_curve(rows, field, curve_title(task, field), path)
    _print_curve(field, rows, as_json, destination)


def _curve(
    field: str, tasks: list[RetrievalTask], seeds: int, test_samples: int, progress: Any
) -> list[dict[str, Any]]:
    import numpy as np
    from scipy.stats import t

    from memcap.retrieval.prediction import predict
    from memcap.retrieval.simulate import simulate

    rows: list[dict[str, Any]] = []
    for number, task in enumerate(tasks):
        theory = predict(task)
        row: dict[str, Any] = {
            field: getattr(task, field),
            "predicted": theory.recall,
            "attention_success": theory.attention_success,
            "regime": theory.regime,
            "bottleneck": theory.bottleneck,
        }
        runs = []
        for run in range(seeds):
            runs.append(simulate(task, seed=task.seed + run, test_samples=test_samples))
            if progress:
                progress(number * seeds + run + 1, len(tasks) * seeds, "runs")
        if len(runs) == 1:
            row["simulated"] = runs[0].recall
            row["low"], row["high"] = runs[0].recall_interval
        elif runs:
            recalls = np.array([one.recall for one in runs])
            mean = float(recalls.mean())
            half = float(t.ppf(0.975, len(runs) - 1) * recalls.std(ddof=1) / np.sqrt(len(runs)))
            row |= {"simulated": mean, "low": max(0.0, mean - half), "high": min(1.0, mean + half)}
        rows.append(row)
    return rows


def _print_curve(field: str, rows: list[dict[str, Any]], as_json: bool, destination: str | None) -> None:
    from memcap.cli.retrieval_curve import picture

    if as_json:
        print_json({"field": field, "curve": rows, "drawn": destination})
        return
    drawn = "simulated" in rows[0]
    head = f"{field:>12} {'predicted':>10}" + (f" {'simulated':>10}  95 % interval   " if drawn else "")
    out.print(f"{head}  attention  limited by", markup=False)
    for row in rows:
        line = f"{row[field]:12,} {row['predicted']:10.4f}"
        if drawn:
            line += f" {row['simulated']:10.4f}  [{row['low']:.4f}, {row['high']:.4f}]"
        out.print(f"{line}  {row['attention_success']:9.4f}  {row['bottleneck']}", markup=False)
    points = [(row["simulated"], row["low"], row["high"]) if drawn else None for row in rows]
    out.print(picture(field, [row[field] for row in rows], [row["predicted"] for row in rows], points), markup=False)
    if destination is not None:
        out.print(f"drawn: {destination}", markup=False)


def _print_prediction(task: RetrievalTask, theory: Prediction, as_json: bool) -> None:
    bound = _bound(task)
    if as_json:
        print_json({**theory.to_dict(), "snr_by_group": theory.snr_by_group(), "bound": bound, "task": task.to_dict()})
        return
    lines = [
        ("recall, fresh sequences", f"{theory.recall:.4f}{_between_seeds(theory)}"),
        ("recall, clean queries", f"{theory.clean_recall:.4f}"),
        ("recall, perfect attention", f"{theory.perfect_attention_recall:.4f}"),
        (
            "attention success",
            f"{theory.attention_success:.4f}   luck that all tokens share ± {theory.attention_spread:.4f}",
        ),
        ("facts seen", f"{theory.coverage:.4f}"),
        ("regime", theory.regime),
        ("limited by", theory.bottleneck),
    ]
    if bound is not None:
        lines.append(("bound from first gradient", f"{bound:.4f}   no estimator of π that sees only it recalls more"))
    for name, value in lines:
        out.print(f"{name:28} {value}", markup=False)
    if theory.snr:
        out.print("signal-to-noise of the attention step, by source of variance (larger is better):", markup=False)
        for source, ratio in sorted(theory.snr.items(), key=lambda item: item[1]):
            out.print(f"  {source:26} {ratio:.4g}", markup=False)
    for text in theory.warnings:
        out.print(f"note: {text}", markup=False)


def _between_seeds(theory: Prediction) -> str:
    if math.isnan(theory.recall_deviation):  # uniform attention
        return ""
    shared = f"{theory.recall_spread:.4f} of it luck that all tokens share"
    return f"   between seeds ± {theory.recall_deviation:.4f} ({shared})"


def _bound(task: RetrievalTask) -> float | None:
    from memcap.retrieval.lower_bound import recall_bound

    try:
        return recall_bound(task).recall
    except ConfigurationError:
        return None
