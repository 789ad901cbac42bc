"""`hullcal weights`: the best combination of the members, for use elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from hullcal._validation import InvalidInputError
from hullcal.cli.ending import tell
from hullcal.cli.inputs import Files
from hullcal.cli.options import check_outputs, input_options, known


@click.command("weights")
@input_options
@click.option(
    "-m",
    "--measure",
    default="ece_conf",
    show_default=True,
    **known("measures"),
    help="What is minimised.",
)
@click.option(
    "--minimizer",
    default="steepest",
    show_default=True,
    **known("minimizers"),
    help="The search.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the search.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Write to this file: .json for the whole result, .csv or .txt for one weight a line.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that exists.")
def command(
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
