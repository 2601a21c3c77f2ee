"""``memcap study report``: one page that a reader can explore, and the same figures as files for a paper."""

from __future__ import annotations

import click

from memcap.cli.app import out, print_json
from memcap.cli.shared_options import output_options
from memcap.errors import ConfigurationError, nearest


@click.command(name="report")
@click.argument("store", type=click.Path())
@click.option("--out", "-o", "destination", required=True, type=click.Path(), help="The HTML file to write.")
@click.option(
    "--figures", type=click.Path(file_okay=False), help="Folder, made if missing, that also gets every figure as files."
)
@click.option(
    "--format",
    "formats",
    default="svg",
    show_default=True,
    metavar="LIST",
    help="Of those files: svg, pdf, png, json (Vega-Lite), separated by commas.",
)
@click.option("--title", help="Of the page.  [default: made from the axes]")
@click.option("--question", help="What the study asks.  [default: what the grid says]")
@click.option("--method", help="How it was measured.  [default: what the grid says]")
@click.option("--x", metavar="SETTING", help="Columns of the phase diagram.")
@click.option("--y", metavar="SETTING", help="Rows of the phase diagram, along which the target is crossed.")
@click.option("--outcome", metavar="RESULT", help="The result to show.  [default: recall]")
@click.option("--target", type=float, help="Level of the boundary.  [default: what the grid says, else 0.5]")
@output_options
def command(
    store: str,
    destination: str,
    figures: str | None,
    formats: str,
    title: str | None,
    question: str | None,
    method: str | None,
    x: str | None,
    y: str | None,
    outcome: str | None,
    target: float | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write the study in STORE as one HTML page: phase diagram, boundary, exponents, failures, every cell.

    The page needs no network.  With --figures the same charts are written for a two-column paper, without a browser.

    Example:

        memcap study report phase.db -o phase.html --figures figures --format pdf,svg
    """
    from memcap.report.compose import write
    from memcap.report.drawing import FORMATS
    from memcap.study.study import Study

    kinds = [part.strip().lower() for part in formats.split(",") if part.strip()]
    for kind in kinds:
        if kind not in FORMATS:
            raise ConfigurationError(
                f"--format {kind}: no such format{nearest(kind, FORMATS)}; formats: {', '.join(FORMATS)}"
            )
    with Study.open(store, create=False) as study:
        path = write(
            study,
            destination,
            title=title,
            question=question,
            method=method,
            x=x,
            y=y,
            outcome=outcome,
            target=target,
            figures=figures,
            formats=kinds,
        )
    size = path.stat().st_size
    if as_json:
        print_json({"store": store, "out": str(path), "bytes": size, "figures": figures, "formats": kinds})
    elif not quiet:
        out.print(f"{path}: {size / 1e6:.2f} MB, opens without a network", markup=False)
        if figures is not None:
            out.print(f"{figures}: every figure as {', '.join(kinds)}, its data as csv, captions.md", markup=False)
