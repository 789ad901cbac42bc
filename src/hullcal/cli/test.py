"""`hullcal test`: both questions, for the predictions of a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from hullcal.cli import tables
from hullcal.cli.ending import REJECTED, nobody_reads, tell
from hullcal.cli.inputs import Files
from hullcal.cli.options import (
    TestOptions,
    check_outputs,
    format_option,
    input_options,
    test_options,
)
from hullcal.cli.running import check_in_memory, run_tests

_PATH = click.Path(path_type=Path)


@click.command("test", short_help="Does the hull contain a calibrated classifier, or the truth?")
@input_options
@test_options
@format_option
@click.option("--output", type=_PATH, help="Write what would be printed to this file.")
@click.option("--report", type=_PATH, help="Also write a report, one HTML file.")
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@click.option(
    "--exit-code",
    is_flag=True,
    help="End with 1 if rejected: by the first null, after adjustment for several measures. A verdict "
    "of Unclear counts as well.",
)
def command(
    *,
    files: Files,
    how: TestOptions,
    form: str,
    output: Path | None,
    report: Path | None,
    force: bool,
    exit_code: bool,
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

    check_outputs(force=force, output=output, report=report)
    if report is not None:
        check_in_memory(files, how, "--report")
    assessment = run_tests(files, how)
    if form == "json":
        text = io.to_json(assessment.results, verdicts=assessment.verdicts())
    elif form == "csv":
        text = io.to_csv(assessment.results)
    else:
        text = tables.assessment(assessment)
    # Results come first, so that no fault of the page can lose them.
    try:
        if output is not None:
            io.write_atomic(output, text.rstrip("\n") + "\n", force=force)
        else:
            click.echo(text.rstrip("\n"))
    except BrokenPipeError:
        # Whoever has read enough of the table still wants the page, and the decision.
        nobody_reads(sys.stdout)
    _write_page(report, assessment, how, force=force)
    return REJECTED if exit_code and assessment.rejected(assessment.nulls[0]) else 0


def _write_page(path: Path | None, assessment: Any, how: TestOptions, *, force: bool) -> None:
    if path is None:
        return
    from hullcal import io
    from hullcal.report import render

    io.write_atomic(
        path,
        render(assessment, command=tables.command_line(assessment.results[0].seed)),
        force=force,
    )
    if not how.quiet:
        tell(f"report: {path}")
