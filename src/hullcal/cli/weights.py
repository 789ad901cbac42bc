"""`hullcal weights`: the best combination of the members, for use elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hullcal.cli.options import input_options, read_set


@click.command("weights")
@input_options
@click.option("-m", "--measure", default="ece_conf", show_default=True, help="What is minimised.")
@click.option("--minimizer", default="pairwise", show_default=True, help="The search.")
@click.option("--seed", type=int, help="Seed of the search.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Write to this file: .json for the whole result, .csv or .txt for one weight a line.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that exists.")
def command(
    *,
    measure: str,
    minimizer: str,
    seed: int | None,
    output: Path | None,
    force: bool,
    **source: Any,
) -> None:
    """Find the weights of the best calibrated combination; one a line, in the order of members."""
    import hullcal
    from hullcal import io

    if output is not None:
        io.check_output(output, force=force)
    classifiers, labels = read_set(**source)
    found = hullcal.minimize(classifiers, labels, measure=measure, minimizer=minimizer, rng=seed)
    lines = "\n".join(repr(float(weight)) for weight in found.weights)
    click.echo(f"{found}\nseed {found.seed}", err=True)
    if output is None:
        click.echo(lines)
    elif output.suffix == ".json":
        io.write_json([found], output, force=force)
    else:
        io.write_atomic(output, lines + "\n", force=force)
