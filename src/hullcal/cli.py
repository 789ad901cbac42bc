"""The command line: parse, call, print; no computation."""

from __future__ import annotations

import click

import hullcal


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(hullcal.__version__, prog_name="hullcal")
def main() -> None:
    """Does the convex hull of these classifiers contain a calibrated one?"""


@main.command()
@click.option(
    "--seed", default=0, show_default=True, help="Seed of the data split and of the test."
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def demo(seed: int, quiet: bool) -> None:
    """Test a random forest on scikit-learn's digits."""
    try:
        from hullcal.demonstration import random_forest
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"the demo needs scikit-learn ({error}); pip install 'hullcal[sklearn]'"
        ) from error
    example = random_forest(seed)
    click.echo(example.description + "\n")
    for null in ("recentered", "refit"):
        result = hullcal.calibration_test(
            example.probs, example.labels, null=null, rng=seed, progress=not quiet
        )
        click.echo(f"{result}\n")


@main.command()
def measures() -> None:
    """List the calibration measures, searches and nulls."""
    for kind in ("measures", "minimizers", "nulls"):
        names = getattr(hullcal, kind).available()
        click.echo(f"{kind:<12}{', '.join(names)}")
