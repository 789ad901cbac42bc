"""`hullcal test`: both questions, for the predictions of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hullcal.cli import tables
from hullcal.cli.ending import REJECTED
from hullcal.cli.options import input_options, read_set, test_options
from hullcal.cli.running import run_tests

_PATH = click.Path(path_type=Path)


@click.command("test")
@input_options
@test_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="What is printed.",
)
@click.option("--output", type=_PATH, help="Write what would be printed to this file.")
@click.option("--report", type=_PATH, help="Also write a report, one HTML file.")
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@click.option(
    "--exit-code",
    is_flag=True,
    help="End with 1 if rejected: by the first null, after adjustment for several measures.",
)
def command(
    *,
    measures: tuple[str, ...],
    nulls: tuple[str, ...],
    n_resamples: int,
    alpha: float,
    seed: int | None,
    jobs: int,
    quiet: bool,
    form: str,
    output: Path | None,
    report: Path | None,
    force: bool,
    exit_code: bool,
    **source: Any,
) -> int:
    """Does the hull contain a calibrated classifier? Does it contain the truth?

    FILE holds predictions of shape (rows, members, classes) and labels: .npz with the keys probs and
    labels, .npy, .csv, .parquet, .zarr, .h5 or .safetensors.

    \b
    hullcal test predictions.npz
    hullcal test predictions.npz --measure all --report report.html
    hullcal test --member a.npy --member b.npy --labels y.npy --format json
    """  # noqa: D301
    from hullcal import io

    for path in (output, report):
        if path is not None:
            io.check_output(path, force=force)
    classifiers, labels = read_set(**source)
    assessment = run_tests(
        classifiers, labels, measures, nulls, n_resamples, alpha, seed, jobs, quiet=quiet
    )
    if report is not None:
        from hullcal.report import render

        io.write_atomic(report, render(assessment, command=tables.command_line()), force=force)
    if form == "json":
        text = io.to_json(assessment.results)
    elif form == "csv":
        text = io.to_csv(assessment.results)
    else:
        text = tables.assessment(assessment)
    if output is not None:
        io.write_atomic(output, text.rstrip("\n") + "\n", force=force)
    else:
        click.echo(text.rstrip("\n"))
    if report is not None and not quiet:
        click.echo(f"report: {report}", err=True)
    return REJECTED if exit_code and assessment.rejected(assessment.nulls[0]) else 0
