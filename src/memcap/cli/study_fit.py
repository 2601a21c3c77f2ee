"""``memcap study fit``: critical values, exponents and comparisons of laws, with intervals."""

from __future__ import annotations

from typing import Any

import click
from rich.table import Table
from rich.text import Text

from memcap.cli.app import err, out, print_json
from memcap.cli.shared_options import output_options
from memcap.errors import ConfigurationError, FitError


@click.command(name="fit")
@click.argument("store", type=click.Path())
@click.option("--critical", "axis", metavar="AXIS", help="Where the response crosses the target along AXIS.")
@click.option("--law", "laws", multiple=True, metavar="LAW", help="'samples ~ dimension^a'; several are compared.")
@click.option("--response", metavar="RESULT", help="The result that crosses; by default the measurement's main one.")
@click.option("--target", type=float, default=0.5, show_default=True, help="The level that it crosses.")
@click.option("--task", metavar="NAME", help="Which measurement, if the study holds several.")
@click.option("--where", metavar="EXPRESSION", help="Only these cells, such as 'length == 16'.")
@click.option("--trials", metavar="NAME", help="Setting or result that counts the independent answers of a fraction.")
@click.option("--rising/--falling", default=None, help="Of the response.  [default: what most lines show]")
@click.option("--scale", default="logit", show_default=True, metavar="NAME", help="logit (fractions) | linear.")
@click.option("--method", default="profile", show_default=True, metavar="NAME", help="profile | bootstrap.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of the intervals.")
@output_options
def fit(
    store: str,
    axis: str | None,
    laws: tuple[str, ...],
    response: str | None,
    target: float,
    task: str | None,
    where: str | None,
    trials: str | None,
    rising: bool | None,
    scale: str,
    method: str,
    confidence: float,
    as_json: bool,
    quiet: bool,
) -> None:
    """Fit critical values and exponents of STORE, and say how sure they are.

    Example:

        memcap study fit phase.db --critical samples --law "samples ~ dimension^a"
    """
    from memcap.study.study import Study

    if axis is None and not laws:
        raise ConfigurationError("nothing to fit: give --critical AXIS, --law LAW or both")
    with Study.open(store, create=False) as study:
        crossing: dict[str, Any] = {"target": target, "task": task, "where": where}
        crossing |= {"trials": trials, "rising": rising, "scale": scale}
        lines = []
        if axis is not None:
            name = response or study.main_response(task)
            lines = study.critical(axis, name, confidence=confidence, **crossing)
        exponents, refused = [], {}
        for law in laws:
            try:
                exponent = study.fit_exponent(law, response=response, method=method, confidence=confidence, **crossing)
                exponents.append((law, exponent))
            except FitError as error:
                if len(laws) == 1:
                    raise
                refused[law] = str(error)  # a comparison shows how much worse than the others it is
        scores = []
        if len(laws) > 1:
            scores = study.compare(laws, response=response, **crossing)
    if as_json:
        print_json(
            {
                "store": store,
                "critical": [line.to_dict() for line in lines],
                "exponents": [{"law": law, **e.to_dict()} for law, e in exponents],
                "refused": refused,
                "comparison": [
                    {"law": s.law, "parameters": s.parameters, "aicc": s.aicc, "weight": s.weight} for s in scores
                ],
            }
        )
        return
    if lines:
        names = list(lines[0].settings)
        table = Table(*names, f"critical {axis} ({lines[0].response} = {target:g})", "points")
        for line in lines:
            table.add_row(*[Text(str(line.settings[n])) for n in names], Text(line.describe()), str(line.n_points))
        out.print(table)
    for _, exponent in exponents:
        out.print(exponent.describe(), markup=False)
        if not quiet:
            out.print(
                f"  {exponent.method}; {exponent.n_censored} of {exponent.n_points} points censored", markup=False
            )
    for reason in refused.values():
        err.print(f"memcap: {reason}", markup=False)
    for score in scores:
        out.print(f"{score.law}: AICc {score.aicc:.2f}, weight {score.weight:.3f}", markup=False)
