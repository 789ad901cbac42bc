"""The small commands: weights, sizes, measures and demo."""

from __future__ import annotations

import json
from pathlib import Path

import click

from hullcal._validation import InvalidInputError
from hullcal.cli.options import (
    FORCE,
    MINIMIZER,
    PATH,
    QUIET,
    SEED,
    Files,
    check_outputs,
    columns,
    command_line,
    format_option,
    input_options,
    jobs_option,
    measure_option,
)
from hullcal.cli.running import tell, working


@click.command("weights")
@input_options
@measure_option(default="ece_conf", help="What is minimised.")
@MINIMIZER
@SEED
@click.option(
    "--output",
    type=PATH,
    help="Write to this file: .json for the whole result, .csv or .txt for one weight a line.",
)
@FORCE
def weights(
    *,
    files: Files,
    measure: str,
    minimizer: str,
    seed: int | None,
    output: Path | None,
    force: bool,
) -> None:
    """Find the weights of the best calibrated combination.

    They are printed one a line, in the order of the members.
    """
    import hullcal
    from hullcal import io

    check_outputs(force=force, output=output)
    if output is not None and output.suffix.lower() not in (".json", ".csv", ".txt", ""):
        raise InvalidInputError(
            f"`--output` must end in .json, .csv or .txt; got {output.name!r}. Choose one of them."
        )
    classifiers, labels = files.read()
    found = hullcal.minimize(classifiers, labels, measure=measure, minimizer=minimizer, rng=seed)
    lines = "\n".join(repr(float(weight)) for weight in found.weights)
    tell(f"{found}\nseed {found.seed}")
    if output is None:
        click.echo(lines)
    elif output.suffix == ".json":
        io.write_json([found], output, force=force)
    else:
        io.write_atomic(output, lines + "\n", force=force)


@click.command("sizes")
@input_options
@format_option
@jobs_option("Threads")
def sizes(*, files: Files, form: str, jobs: int) -> None:
    """Mean size of the set over its rows. A good set is valid (`hullcal test`) and small."""
    from hullcal import uncertainty

    classifiers, _ = files.read(needs_labels=False)
    found = dict(uncertainty.summary(classifiers, n_jobs=jobs))
    approximated = found.pop("approximated")
    if form == "json":
        whole = {**found, "approximated": approximated, "units": uncertainty.UNITS}
        click.echo(json.dumps(whole, indent=2))
    elif form == "csv":
        cells = {**found, "approximated": approximated}
        click.echo(",".join(cells) + "\n" + ",".join(repr(value) for value in cells.values()))
    else:
        rows = [[name, f"{value:.4g}", uncertainty.UNITS[name]] for name, value in found.items()]
        click.echo(columns(["size", "mean", "unit"], rows))


@click.command("measures")
def measures() -> None:
    """List the measures by notion of calibration, nulls and searches."""
    from hullcal import measures as room
    from hullcal import minimizers, nulls

    by_notion: dict[str, list[str]] = {}
    for name in room.available():
        by_notion.setdefault(room.resolve(name).notion, []).append(name)
    click.echo("measures")
    for notion, names in sorted(by_notion.items()):
        click.echo(f"  {notion:<12}{', '.join(names)}")
    click.echo("nulls")
    for name in nulls.available():
        click.echo(f"  {name:<12}{nulls.resolve(name).hypothesis}")
    click.echo(f"minimizers\n  {', '.join(minimizers.available())}")


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
    type=PATH,
    default=Path("demo/report.html"),
    show_default=True,
    help="The report.",
)
@FORCE
@QUIET
def demo(seed: int, output: Path, force: bool, quiet: bool) -> None:
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
    page = render(found, title=title, command=command_line(seed))
    io.write_atomic(output, page, force=force)
    click.echo(f"The report: {output}")
