"""`hullcal report`: the tests and the page, in one command."""

from __future__ import annotations

from pathlib import Path

import click

from hullcal.cli import tables
from hullcal.cli.ending import tell
from hullcal.cli.inputs import Files
from hullcal.cli.options import TestOptions, check_outputs, input_options, test_options
from hullcal.cli.running import check_in_memory, run_tests


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
    *, files: Files, how: TestOptions, output: Path, title: str | None, force: bool
) -> None:
    """Run the tests and write a report: one HTML file.

    It holds the verdict, figures and all that was run.
    """
    check_outputs(force=force, output=output)
    check_in_memory(files, how, "hullcal report")
    from hullcal import io
    from hullcal.report import render

    assessment = run_tests(files, how)
    page = render(assessment, title=title, command=tables.command_line(assessment.results[0].seed))
    io.write_atomic(output, page, force=force)
    for sentence in assessment.sentences():
        click.echo(sentence)
    if not how.quiet:
        tell(f"report: {output}")
