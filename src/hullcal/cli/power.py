"""`hullcal power`: how many rows does it take to detect a miscalibration of these members?"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click

from hullcal.cli.inputs import Files
from hullcal.cli.options import check_outputs, format_option, input_options, known
from hullcal.cli.wording import as_options
from hullcal.cli.working import working

#: What parameters are called here, where not by their own name.
_CALLED = {
    "n_samples": "--samples",
    "n_datasets": "--datasets",
    "miscalibration": "--miscalibration",
    "amount": "--amount",
    "target": "--target",
}


@click.command("power", short_help="How many rows does it take to detect a miscalibration?")
@input_options
@click.option(
    "--miscalibration",
    type=click.Choice(["temperature", "corner", "closest"]),
    default="temperature",
    show_default=True,
    help="How labels differ from the average member.",
)
@click.option(
    "--amount",
    type=float,
    help="The temperature, or the share of the way to a corner. [default: 1.5, or 0.2]",
)
@click.option(
    "-N",
    "--samples",
    "n_samples",
    type=click.IntRange(min=1),
    multiple=True,
    help="Rows of a data set; repeat for several. [default: 1/8 to 2 times those of FILE]",
)
@click.option(
    "-m",
    "--measure",
    default="ece_conf",
    show_default=True,
    **known("measures", numbered=True),
    help="Or ece_conf:5.",
)
@click.option(
    "--null",
    default="stacked",
    show_default=True,
    **known("nulls"),
    help="How reference distributions are made.",
)
@click.option(
    "--minimizer",
    default="steepest",
    show_default=True,
    **known("minimizers", numbered=True),
    help="The search.",
)
@click.option(
    "--target",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.8,
    show_default=True,
    help="The chance that is wanted.",
)
@click.option(
    "-R",
    "--datasets",
    "n_datasets",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Data sets for each number of rows.",
)
@click.option(
    "-D",
    "--resamples",
    "n_resamples",
    type=click.IntRange(min=1),
    default=99,
    show_default=True,
    help="Data sets drawn for each test.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Level of the test.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), help="Seed; the one used is printed with the result."
)
@click.option(
    "--jobs", default=-1, show_default="all cores", help="Processes; results do not change."
)
@format_option
@click.option(
    "--output", type=click.Path(path_type=Path), help="Write what would be printed to this file."
)
@click.option("--force", is_flag=True, help="Overwrite a file that exists.")
@click.option("--quiet", is_flag=True, help="No progress bar and no notices.")
def command(
    *,
    files: Files,
    seed: int | None,
    jobs: int,
    form: str,
    output: Path | None,
    force: bool,
    quiet: bool,
    n_samples: tuple[int, ...],
    **how: Any,
) -> None:
    """Simulate data sets with the predictions of FILE, and count how often the test rejects.

    Labels are drawn from a truth that differs from the average member by the amount; those of FILE, if
    it has any, are not looked at.

    \b
    hullcal power predictions.npz
    hullcal power predictions.npz --amount 1.2 -N 500 -N 1000 -N 2000 --target 0.9
    hullcal power predictions.npz --miscalibration corner --amount 0.1 --format json
    """  # noqa: D301
    from hullcal import io

    check_outputs(force=force, output=output)
    classifiers, _ = files.read(needs_labels=False)
    from hullcal.simulation import power

    with as_options(quiet=quiet, **_CALLED), working(quiet=quiet) as report:
        found = power(
            classifiers,
            n_samples=n_samples or None,
            rng=seed,
            n_jobs=jobs,
            progress=lambda done, total: report("tests", done, total),
            **how,
        )
    text = _shown(found, form)
    if output is None:
        click.echo(text)
    else:
        io.write_atomic(output, text + "\n", force=force)


def _shown(found: Any, form: str) -> str:
    if form == "table":
        return str(found)
    if form == "json":
        content = found.to_dict()
        # JSON has no infinity; `float` reads either form.
        content["distance"] = {
            name: value if math.isfinite(value) else str(value)
            for name, value in content["distance"].items()
        }
        return json.dumps(content, indent=2)
    columns = (found.n_samples, found.power, found.lower, found.upper)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return "\n".join(["n_samples,power,lower,upper", *(",".join(map(repr, row)) for row in rows)])
