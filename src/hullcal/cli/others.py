"""The small commands: weights, sizes, measures and demo."""

from __future__ import annotations

import json
from pathlib import Path

import click

from hullcal.cli.options import (
    FORCE,
    MINIMIZER,
    OUTPUT,
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
    print_or_write,
)
from hullcal.cli.running import tell, working


@click.command("weights")
@input_options
@measure_option(default="ece_conf", help="What is minimised.")
@MINIMIZER
@SEED
@OUTPUT
@format_option
@FORCE
@QUIET
def weights(
    *,
    files: Files,
    measure: str,
    minimizer: str,
    seed: int | None,
    output: Path | None,
    form: str,
    force: bool,
    quiet: bool,
) -> None:
    """Find the weights of the best calibrated combination.

    They are printed one a line, in the order of the members; as JSON, with the whole result.
    """
    import hullcal
    from hullcal import io

    check_outputs(force=force, output=output)
    classifiers, labels = files.read()
    found = hullcal.minimize(classifiers, labels, measure=measure, minimizer=minimizer, rng=seed)
    lines = "\n".join(repr(float(weight)) for weight in found.weights)
    if not quiet:
        tell(f"{found}\nseed {found.seed}")
    print_or_write(io.to_json([found]) if form == "json" else lines, output, force=force)


@click.command("sizes")
@input_options
@OUTPUT
@format_option
@FORCE
@jobs_option("Threads")
@QUIET
def sizes(
    *, files: Files, output: Path | None, form: str, force: bool, jobs: int, quiet: bool
) -> None:
    """Mean size of the set over its rows. A good set is valid (`hullcal test`) and small."""
    from hullcal import uncertainty

    check_outputs(force=force, output=output)
    classifiers, _ = files.read(needs_labels=False)
    found = dict(uncertainty.summary(classifiers, n_jobs=jobs))
    units = uncertainty.UNITS
    if form == "json":
        text = json.dumps({**found, "units": units}, indent=2)
    elif form == "csv":
        text = ",".join(found) + "\n" + ",".join(map(repr, found.values()))
    else:
        rows = [[name, f"{found[name]:.4g}", unit] for name, unit in units.items()]
        text = columns(["size", "mean", "unit"], rows)
    print_or_write(text, output, force=force)


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
    click.echo(f"  {', '.join(nulls.available())}")
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
    from hullcal.assessment import Assessment, Assessments, assess
    from hullcal.report import render
    from hullcal.verdicts import HEADS, QUESTIONS

    try:
        import sklearn  # noqa: F401
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"the demo needs scikit-learn ({error}); pip install scikit-learn"
        ) from error
    from hullcal.demonstration import examples

    output.parent.mkdir(parents=True, exist_ok=True)
    check_outputs(force=force, output=output)
    found = Assessments()
    for example in examples(seed):
        with working(quiet=quiet) as report:
            each = assess(example.probs, example.labels, rng=seed, n_jobs=-1, progress=report)
        assert isinstance(each, Assessment)
        found[example.name] = each
        click.echo(f"{example.name}: {example.description}\n  {each.advice[0]}\n")
    title = "Three ensembles on handwritten digits"
    page = render(found, title=title, command=command_line(seed))
    io.write_atomic(output, page, force=force)
    for name, question in QUESTIONS.items():
        click.echo(f"{HEADS[name]:<20}{question}")
    click.echo(f"\n{found.table()}\n\nThe report, with all next steps: {output}")
