"""`hullcal demo`: the test on real data, when there is no file yet."""

from __future__ import annotations

from pathlib import Path

import click

from hullcal.cli import tables
from hullcal.cli.options import check_outputs
from hullcal.cli.working import working


@click.command("demo")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31),  # scikit-learn takes no more than 32 bits, and members add to it
    default=0,
    show_default=True,
    help="Seed of the ensembles and of the tests.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("demo/report.html"),
    show_default=True,
    help="The report.",
)
@click.option("--force", is_flag=True, help="Overwrite a report that exists.")
@click.option("--quiet", is_flag=True, help="No progress bar and no notices.")
def command(seed: int, output: Path, force: bool, quiet: bool) -> None:
    """Test three real ensembles that read digits, and write a report."""
    from hullcal import io
    from hullcal.assessment import assess
    from hullcal.report import render

    try:
        import sklearn  # noqa: F401
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"the demo needs scikit-learn ({error}); pip install scikit-learn"
        ) from error
    from hullcal.demonstration import examples

    output.parent.mkdir(parents=True, exist_ok=True)
    check_outputs(force=force, output=output)
    found = {}
    with working(quiet=quiet) as report:
        for example in examples(seed):
            assessment = assess(example.probs, example.labels, rng=seed, n_jobs=-1, progress=report)
            found[example.name] = assessment
            accuracy = assessment.classifiers.accuracy(assessment.labels, weights="mean")
            click.echo(f"{example.name}: {example.description} (accuracy {accuracy:.1%})")
            for sentence in assessment.sentences():
                click.echo(f"  {sentence}")
            click.echo()
    title = "Three ensembles on handwritten digits"
    page = render(found, title=title, command=tables.command_line(seed))
    io.write_atomic(output, page, force=force)
    click.echo(f"The report: {output}")
