"""`hullcal report`: the tests and the page, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hullcal.cli import tables
from hullcal.cli.options import input_options, read_set, test_options
from hullcal.cli.running import run_tests


@click.command("report")
@input_options
@test_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The page.",
)
@click.option("--title", help="Heading of the page.")
@click.option("--force", is_flag=True, help="Overwrite a file that exists.")
def command(
    *,
    measures: tuple[str, ...],
    nulls: tuple[str, ...],
    n_resamples: int,
    alpha: float,
    seed: int | None,
    jobs: int,
    quiet: bool,
    output: Path,
    title: str | None,
    force: bool,
    **source: Any,
) -> None:
    """Write a report: one HTML file with the verdict, figures and all that was run."""
    from hullcal import io
    from hullcal.report import render

    io.check_output(output, force=force)
    classifiers, labels = read_set(**source)
    assessment = run_tests(
        classifiers, labels, measures, nulls, n_resamples, alpha, seed, jobs, quiet=quiet
    )
    page = render(assessment, title=title, command=tables.command_line())
    io.write_atomic(output, page, force=force)
    for sentence in assessment.sentences():
        click.echo(sentence)
    click.echo(f"report: {output}", err=True)
