"""`hullcal demo`: the test on real data, when there is no file yet."""

from __future__ import annotations

import click

import hullcal


@click.command("demo")
@click.option(
    "--seed", default=0, show_default=True, help="Seed of the data split and of the test."
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def command(seed: int, quiet: bool) -> None:
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
