"""`hullcal sizes`: how large the set is, and so how much it claims not to know."""

from __future__ import annotations

import json

import click

from hullcal.cli import tables
from hullcal.cli.inputs import Files
from hullcal.cli.options import format_option, input_options


@click.command("sizes")
@input_options
@format_option
@click.option("--jobs", default=-1, show_default="all cores", help="Threads.")
def command(*, files: Files, form: str, jobs: int) -> None:
    """Mean size of the set over its rows. A good set is valid (`hullcal test`) and small."""
    from hullcal import uncertainty

    classifiers, _ = files.read(needs_labels=False)
    sizes = dict(uncertainty.summary(classifiers, n_jobs=jobs))
    approximated = sizes.pop("approximated")
    if form == "json":
        whole = {**sizes, "approximated": approximated, "units": uncertainty.UNITS}
        click.echo(json.dumps(whole, indent=2))
    elif form == "csv":
        cells = {**sizes, "approximated": approximated}
        click.echo(",".join(cells) + "\n" + ",".join(repr(value) for value in cells.values()))
    else:
        rows = [[name, f"{value:.4g}", uncertainty.UNITS[name]] for name, value in sizes.items()]
        click.echo(tables.columns(["size", "mean", "unit"], rows))
