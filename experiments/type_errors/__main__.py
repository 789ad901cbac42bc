"""How often does the test of a classifier set err? Run, print and draw one study.

    python -m experiments.type_errors figure1 --jobs -1 --out docs/figures/type_errors

A command that is stopped goes on where it was when it is given again. It prints its figures as
numbers with Wilson's 95 % intervals, and writes each figure as SVG and as a tidy CSV.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from experiments.type_errors.commands import COMMANDS
from experiments.type_errors.grids import PAPER_FIGURES
from experiments.type_errors.running import in_words
from hullcal.minimizers import Cobyla, Minimizer


def search(name: str) -> str | Minimizer:
    """A search by its name; "cobyla-nlopt" is the authors' in its fast translation."""
    library, _, budget = name.partition(":")
    if library != "cobyla-nlopt":
        return name
    return Cobyla(library="nlopt", max_evaluations=int(budget) if budget else None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and run its command."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.type_errors",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        text = command.__doc__
        one = commands.add_parser(name, help=text, description=text)
        one.add_argument(
            "--datasets",
            type=int,
            metavar="R",
            help="data sets a cell; in nulls and distance those of a cell at the centre, to which "
            "the others are in proportion",
        )
        one.add_argument("--resamples", type=int, metavar="D", help="null values of a test")
        one.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one a core")
        one.add_argument("--out", type=Path, default=Path("docs/figures/type_errors"))
        one.add_argument(
            "--work",
            type=Path,
            default=Path("build/type_errors"),
            metavar="FOLDER",
            help="its journals go to FOLDER/COMMAND",
        )
        if name not in ("scenarios", "budget"):
            one.add_argument(
                "--minimizer",
                help="search in place of the study's own: pairwise, cobyla-nlopt, or either with a "
                "budget, as in pairwise:200",
            )
        if name in PAPER_FIGURES:
            one.add_argument("--protocol", choices=("paper", "authors", "both"), default="both")
            one.add_argument(
                "--minutes",
                type=float,
                default=60.0,
                help="a protocol that would take longer has fewer data sets, unless R is given",
            )
        if name == "distance":
            one.add_argument(
                "--population",
                type=int,
                default=20_000,
                metavar="N",
                help="instances that stand for the population",
            )
    options = parser.parse_args(arguments)
    # Another study must not meet the journal of the plain one.
    for name in ("minimizer", "resamples"):
        if getattr(options, name, None) is not None:
            options.work /= f"{name}={getattr(options, name)}"
    if getattr(options, "minimizer", None) is not None:
        options.minimizer = search(options.minimizer)
    began = time.perf_counter()
    COMMANDS[options.command](options)
    print(f"{options.command} took {in_words(time.perf_counter() - began)}")


if __name__ == "__main__":
    main()
