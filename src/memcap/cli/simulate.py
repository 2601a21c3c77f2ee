"""``memcap simulate``: a few gradient steps (or continued training) on a retrieval task, over one or more seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memcap.cli.app import out, print_json
from memcap.cli.progress import showing
from memcap.cli.retrieval_options import COUNT, curve_options, task_from, task_options
from memcap.cli.shared_options import output_options
from memcap.errors import ConfigurationError

if TYPE_CHECKING:
    from memcap.retrieval.run import Run


@click.command(name="simulate")
@task_options
@curve_options
@click.option("--steps", type=int, default=3, show_default=True, help="Gradient steps: 1, 2 or 3.")
@click.option("--first-step", type=float, help="η of the first step.  [default: infinitesimal]")
@click.option("--attention-step", type=float, help="γ of the attention step.  [default: by --sharpness]")
@click.option("--second-step", type=float, help="γ_v of the last step.  [default: read its gradient alone]")
@click.option("--sharpness", type=float, help="κ of soft attention.  [default: 4]")
@click.option("--engine", default="auto", show_default=True, metavar="NAME", help="auto | small-step | closed-form | …")
@click.option("--threads", type=int, default=1, show_default=True, help="Same numbers for any of them.")
@click.option("--device", default="cpu", show_default=True, help="Of the closed form and of training.")
@click.option("--train", "optimiser", metavar="NAME", help="Train on instead: gd | sgd | adam.")
@click.option("--train-steps", type=COUNT, help="Most updates.  [default: 400]")
@click.option("--learning-rate", type=float, help="[default: 100 gd, 30 sgd, 0.03 adam]")
@click.option("--batch", type=COUNT, help="Samples an update.")
@click.option("--until-loss", type=float, help="Stop at this loss (nats).")
@click.option("--heads", type=int, help="Attention heads.  [default: 1]")
@click.option("--learned-embeddings", is_flag=True, default=None, help="Train the embeddings, too.")
@output_options
def command(
    as_json: bool,
    quiet: bool,
    seeds: int | None,
    test_samples: int | None,
    curve: str | None,
    destination: str | None,
    **options: Any,
) -> None:
    """Train by a few gradient steps and measure the recall of fresh sequences and of clean queries.

    Without --curve, --seeds is 1 unless given; seeds count up from --seed.

    Examples:

        memcap simulate -V 256 -L 16 -N 8000 -d 136 --seeds 4

        memcap simulate -V 64 -L 16 -N 2000 -d 24 --train adam --train-steps 600

        memcap simulate -V 128 -L 32 -d 48 --curve samples=200..50000:7 --seeds 4
    """
    from memcap.cli.curve_drawing import check_destination
    from memcap.cli.retrieval_curve import curve_points
    from memcap.retrieval.task import integer

    if destination is not None and not curve:
        raise ConfigurationError("--out belongs to --curve")
    path = None if destination is None else check_destination(destination)
    seeds = integer("seeds", (3 if curve else 1) if seeds is None else seeds, 1, 10**6)
    options["test_samples"] = (2048 if curve else 8192) if test_samples is None else test_samples
    field, values = curve_points(curve) if curve else ("", [])
    task = task_from(options, fill={field: values[0]} if curve else None)
    settings = _settings(options)
    tasks = [task.replace(**{field: value}) for value in values] if curve else [task]
    results: list[list[Run]] = []
    with showing(quiet or as_json) as progress:
        done = 0
        for one in tasks:
            results.append([])
            for seed in range(one.seed, one.seed + seeds):
                results[-1].append(_run(one, seed, settings))
                done += 1
                if progress:
                    progress(done, len(tasks) * seeds, "runs")
    if curve:
        _print_curve(field, results, as_json, path)
    else:
        _print_runs(results[0], as_json)


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of ``simulate`` from the options that are left."""
    from memcap.retrieval.step_sizes import StepSizes
    from memcap.retrieval.training import Training

    names = {"first_step": "first", "attention_step": "attention", "second_step": "second", "sharpness": "sharpness"}
    sizes = {new: options.pop(old) for old, new in names.items()}
    sizes = {name: value for name, value in sizes.items() if value is not None}
    names = {"train_steps": "steps", "learning_rate": "learning_rate", "batch": "batch", "until_loss": "until_loss"}
    names |= {"heads": "heads", "learned_embeddings": "learned_embeddings"}
    training = {new: options.pop(old) for old, new in names.items()}
    training = {name: value for name, value in training.items() if value is not None}
    optimiser = options.pop("optimiser")
    if optimiser is None and training:
        raise ConfigurationError(f"--{next(iter(training)).replace('_', '-')} needs --train gd, sgd or adam")
    return {
        **options,
        "step_sizes": StepSizes(**sizes) if sizes else None,
        "training": Training(optimiser=optimiser, **training) if optimiser else None,
    }


def _run(task: Any, seed: int, settings: dict[str, Any]) -> Run:
    from memcap.retrieval.simulate import simulate

    return simulate(task, seed=seed, **settings)


def _over_seeds(runs: list[Run]) -> tuple[float, float, float]:
    """Mean recall and its 95 % interval: Student's over seeds, Wilson's over test sequences for a single run."""
    if len(runs) == 1:
        return runs[0].recall, *runs[0].recall_interval
    import numpy as np
    from scipy.stats import t

    recalls = np.array([run.recall for run in runs])
    half = float(t.ppf(0.975, len(recalls) - 1) * recalls.std(ddof=1) / np.sqrt(len(recalls)))
    mean = float(recalls.mean())
    return mean, max(0.0, mean - half), min(1.0, mean + half)


def _summary(runs: list[Run]) -> dict[str, Any]:
    mean, low, high = _over_seeds(runs)
    return {
        "recall": mean,
        "recall_interval": [low, high],
        "interval_over": "test sequences" if len(runs) == 1 else "seeds",
        "clean_recall": sum(run.clean_recall for run in runs) / len(runs),
        "attention_success": sum(run.attention_success for run in runs) / len(runs),
        "seeds": len(runs),
    }


def _print_runs(runs: list[Run], as_json: bool) -> None:
    if as_json:
        print_json({**_summary(runs), "runs": [run.to_dict() for run in runs]})
        return
    total, run = _summary(runs), runs[0]
    low, high = total["recall_interval"]
    over = "test sequences" if len(runs) == 1 else f"{len(runs)} seeds"
    lines = [
        ("recall, fresh sequences", f"{total['recall']:.4f}   95 % [{low:.4f}, {high:.4f}] over {over}"),
        ("recall, clean queries", f"{total['clean_recall']:.4f}"),
        ("attention success", f"{total['attention_success']:.4f}"),
        ("tokens seen", f"{run.seen_tokens:,} of {run.task.vocabulary:,}"),
    ]
    if run.recall_unseen is not None and run.recall_seen is not None:
        lines.append(("recall, seen / unseen", f"{run.recall_seen:.4f} / {run.recall_unseen:.4f}"))
    if run.attention:
        lines.append(("signal-to-noise, attention", f"{run.attention['snr']:.3g}"))
    lines += [
        ("signal-to-noise, value", f"{run.value['snr']:.3g}"),
        ("engine, steps", f"{run.engine}, {run.steps}"),
        ("data hash, seed " + str(run.task.seed), run.data_hash[:16]),
        ("seconds", f"{sum(r.seconds for r in runs):.2f}"),
    ]
    for name, value in lines:
        out.print(f"{name:28} {value}", markup=False)


def _print_curve(field: str, results: list[list[Run]], as_json: bool, path: Path | None) -> None:
    from memcap.cli.curve_drawing import curve_title, draw_curve
    from memcap.cli.retrieval_curve import picture

    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for runs in results:
        predicted, note = _predicted(runs[0])
        notes += [note] if note and note not in notes else []
        rows.append({field: getattr(runs[0].task, field), "predicted": predicted, **_summary(runs)})
    if path is not None:
        points = [(row["recall"], *row["recall_interval"]) for row in rows]
        drawn = [
            {field: row[field], "predicted": row["predicted"], "simulated": middle, "low": low, "high": high}
            for row, (middle, low, high) in zip(rows, points, strict=True)
        ]
        draw_curve(drawn, field, curve_title(results[0][0].task, field), path)
    if as_json:
        print_json({"field": field, "curve": rows, "notes": notes, "drawn": None if path is None else str(path)})
        return
    out.print(f"{field:>12} {'predicted':>10} {'simulated':>10}  95 % interval      attention", markup=False)
    for row in rows:
        theory = "–" if row["predicted"] is None else f"{row['predicted']:.4f}"
        low, high = row["recall_interval"]
        line = f"{row[field] or 0:12,} {theory:>10} {row['recall']:10.4f}  [{low:.4f}, {high:.4f}]"
        out.print(f"{line}   {row['attention_success']:.4f}", markup=False)
    simulated = [(row["recall"], *row["recall_interval"]) for row in rows]
    places = [row[field] or 1 for row in rows]
    out.print(picture(field, places, [row["predicted"] for row in rows], simulated), markup=False)
    for note in notes:
        out.print(note, markup=False)


def _predicted(run: Run) -> tuple[float | None, str]:
    """The theory's recall for the task of a run, or None and why there is none."""
    from memcap.errors import MemcapError

    if run.engine == "training" or run.settings.get("first") is not None:
        return None, "no prediction: the theory covers infinitesimal steps only"
    if run.steps == 2:
        return None, "no prediction: the theory covers one step or three"
    from memcap.retrieval.prediction import predict

    try:
        return float(predict(run.task if run.steps == 3 else run.task.replace(attention="uniform")).recall), ""
    except MemcapError as error:
        return None, f"no prediction: {error}"
