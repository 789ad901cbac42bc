"""The small commands: weights, sizes, monitor, measures and demo."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from hullcal import io
from hullcal._validation import InvalidInputError, refusal
from hullcal.cli import options
from hullcal.cli.options import (
    Files,
    Output,
    as_options,
    command_line,
    csv_text,
    in_options,
)
from hullcal.cli.running import REJECTED, tell, working
from hullcal.words import in_columns


@click.command("weights", cls=options.Command)
@options.reads_files
@options.named("-m", "--measure", room="measures", default="ece_conf", help="What is minimised.")
@options.MINIMIZER
@options.SEED
@options.shows_results
@options.QUIET
def weights(*, files: Files, out: Output, quiet: bool, **how: Any) -> None:
    """Find the weights of the best calibrated combination.

    They are printed one a line, in the order of the members; as JSON, with the whole result.
    """
    import hullcal

    classifiers, labels = files.read()
    found = hullcal.minimize(classifiers, labels, **how)
    lines = "\n".join(repr(float(weight)) for weight in found.weights)
    if not quiet:
        tell(f"{found}\nseed {found.seed}")
    out.show(table=lambda: lines, csv=lambda: lines, json=lambda: io.to_json([found]))


@click.command("sizes", cls=options.Command)
@options.reads_files
@options.shows_results
@options.jobs("Threads")
@options.QUIET
def sizes(*, files: Files, out: Output, n_jobs: int, quiet: bool) -> None:
    """Mean size of the set over its rows. A good set is valid (`hullcal test`) and small."""
    from hullcal import uncertainty

    classifiers, _ = files.read(needs_labels=False)
    found = dict(uncertainty.summary(classifiers, n_jobs=n_jobs))
    units = uncertainty.UNITS
    rows = [[name, f"{found[name]:.4g}", unit] for name, unit in units.items()]
    out.show(
        table=lambda: in_columns([["size", "mean", "unit"], *rows], numbers=True),
        json=lambda: json.dumps({**found, "units": units}, indent=2),
        csv=lambda: csv_text([found]),
    )


@click.command(
    "monitor",
    cls=options.Command,
    short_help="Do labels still follow a combination of the members?",
)
@click.argument("state", type=options.PATH)
@click.argument("files", nargs=-1, type=options.PATH, metavar="[FILE]...")
@options.reads_batches
@click.option(
    "--alpha",
    type=float,
    help="Level of the decision; settled when the state is new.  [default: 0.05]",
)
@click.option(
    "--alarm-every",
    type=int,
    help="Batches between false alarms, on average at least; settled when the state is new.  "
    "[default: 1000]",
)
@click.option("--reset", is_flag=True, help="Restart the evidence before the files are added.")
@options.FORMAT
@click.option("--exit-code", is_flag=True, help="End with 1 if rejected.")
def monitor(
    state: Path,
    files: tuple[Path, ...],
    reading: Files,
    reset: bool,
    form: str,
    exit_code: bool,
    **settings: Any,
) -> int:
    """Watch whether labels still follow some combination of the members.

    STATE is a file that holds the evidence so far; it is made if there is none. Each FILE is one more
    batch, in the order given: a file of `hullcal test` with predictions and labels, read in the same
    way. The decision is valid whenever one looks.

    \b
    hullcal monitor state.npz monday.npz tuesday.npz
    hullcal monitor state.npz wednesday.npz --exit-code
    """  # noqa: D301
    from hullcal.monitor import Monitor

    watch = Monitor.load(state) if state.exists() else None
    given = {name: value for name, value in settings.items() if value is not None}
    if watch is not None:
        for name, value in given.items():
            if value != (settled := getattr(watch, name)):
                repair = "Leave it out, or name a new state."
                raise refusal(
                    name, f"was settled as {settled:g} with this state", f"{value:g}", repair
                )
        if reset:
            watch.reset()
    for file in files:
        classifiers, labels = replace(reading, file=file).read()
        if watch is None:
            sizes = {"n_members": classifiers.n_members, "n_classes": classifiers.n_classes}
            watch = Monitor(**sizes, **given)
        watch.update(classifiers, labels)
    if watch is None:
        raise InvalidInputError(f"File not found: {state}. Name the files of the first batches.")
    watch.save(state)
    names = ("n_rows", "log_evalue", "pvalue", "rejected", "alarm", "temperature")
    found = {name: getattr(watch, name) for name in names}
    # JSON has no infinity.
    finite = {name: value if math.isfinite(value) else None for name, value in found.items()}
    Output(form=form).show(
        table=lambda: in_options(str(watch)),
        json=lambda: json.dumps({**finite, "impossible": watch.impossible}, indent=2),
        csv=lambda: csv_text([found]),
    )
    return REJECTED if exit_code and watch.rejected else 0


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
    click.echo(f"nulls\n  {', '.join(nulls.available())}")
    click.echo(f"minimizers\n  {', '.join(minimizers.available())}")


@click.command("demo")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31),  # scikit-learn takes no more than 32 bits, and members add to it
    default=0,
    help="Seed of the ensembles and of the tests.",
)
@click.option(
    "-o", "--output", type=options.PATH, default=Path("demo/report.html"), help="The report."
)
@options.FORCE
@options.QUIET
def demo(seed: int, output: Path, force: bool, quiet: bool) -> None:
    """Test three real ensembles that read digits, and write a report."""
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
    with as_options(path="--output"):
        io.check_output(output, force=force)
    options.check_page(output, "--output")
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
