"""`hullcal simulate` and `hullcal power`: how often do tests err, and how many rows do they need?"""

from __future__ import annotations

import importlib
import json
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from hullcal._validation import refusal
from hullcal.cli import options
from hullcal.cli.options import Files, Output, as_options, csv_text
from hullcal.cli.running import resumable, tell, working
from hullcal.io.source import Source
from hullcal.words import in_columns, printable

#: A test is named as a whole.
_PARTS: dict[str, Any] = dict.fromkeys(("measure", "null", "minimizer"), "--test")


def _axis(*names: str, kind: Any = str, help: str) -> Callable[[Any], Any]:
    return click.option(*names, multiple=True, type=kind, help=help)


def _test_option(**how: Any) -> Callable[[Any], Any]:
    """Tests by name, completed part by part."""

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
        from hullcal import measures, minimizers, nulls
        from hullcal.simulation.grid import QUESTIONS

        before, colon, last = begun.rpartition(":")
        rooms = (measures, nulls, minimizers) if colon else ()
        names = [name for room in rooms for name in room.available()] or QUESTIONS
        return [f"{before}{colon}{name}" for name in names if name.startswith(last)]

    return click.option("--test", shell_complete=complete, **how)


@click.command(
    "simulate", cls=options.Command, short_help="How often do tests err, where the truth is known?"
)
@_axis("--scenario", help="S1, S1_vertex, S2, S3 or calibrated. [default: S1, S2, S3]")
@_test_option(
    multiple=True, help="As truth, or calibrated:ece_conf:5:stacked. [default: the paper's seven]"
)
@_axis("-N", "--samples", "n_samples", kind=int, help="Rows of a data set. [default: 100]")
@_axis("-M", "--members", "n_members", kind=int, help="Members of the set. [default: 10]")
@_axis("-K", "--classes", "n_classes", kind=int, help="Classes. [default: 10]")
@_axis("--spread", kind=float, help="How far members differ. [default: 0.01]")
@_axis("--strength", kind=float, help="How far S2 and S3 go, up to 1. [default: 1]")
@_axis("--protocol", help="paper, authors, or one with switches. [default: paper]")
@_axis("--alpha", kind=float, help="Level. [default: the paper's twelve]")
@click.option("-R", "--datasets", "n_datasets", type=int, help="Data sets a cell. [default: 1000]")
@click.option("-D", "--resamples", "n_resamples", type=int, help="For each test. [default: 100]")
@click.option("--seed", type=click.IntRange(min=0), help="[default: 0]")
@click.option(
    "--grid", type=options.PATH, help="These options in a .json or .toml file; others go first."
)
@options.jobs("Processes")
@click.option("--backend", help="loky or dask. [default: loky]")
@click.option(
    "--output",
    "folder",
    type=options.PATH,
    help="Folder for all results, and for what is finished.",
)
@click.option("--resume", is_flag=True, help="Continue what is in the folder.")
@click.option("--force", is_flag=True, help="Start over what is in the folder.")
@options.FORMAT
@options.QUIET
def simulate(
    *,
    grid: Path | None,
    n_jobs: int,
    backend: str | None,
    folder: Path | None,
    resume: bool,
    force: bool,
    form: str,
    quiet: bool,
    **axes: Any,
) -> None:
    """Test simulated data sets, and count the errors.

    Options of the grid may be repeated: every combination of data is tested in every way. With
    `--output`, finished work survives whatever happens, and `--resume` continues it.

    A test is named by its question (calibrated, truth), then a measure, a null and a search behind
    colons; `truth` alone is the likelihood test.

    \b
    hullcal simulate --scenario S1 --scenario S3 --test calibrated:ece_conf:stacked --jobs -1
    hullcal simulate --scenario S3 --strength 0.1 --test truth --test truth:ece_conf:5
    hullcal simulate -N 100 -N 500 --spread 0.01 --spread 0.1 --output study --jobs 8
    hullcal simulate --grid study.toml --output study --resume
    """  # noqa: D301
    given = {name: value for name, value in axes.items() if value not in (None, ())}
    from hullcal.simulation import Grid, run
    from hullcal.simulation.study import as_csv, configuration

    with as_options(path="--grid", **_PARTS):
        planned = Grid(**(_from_file(grid) | given))
        if folder is not None:
            resumable(folder)
        with working(quiet=quiet) as report, _cluster(backend, n_jobs):
            study = run(
                planned,
                folder=folder,
                resume=resume,
                force=force,
                n_jobs=n_jobs,
                backend=backend,
                progress=lambda done, total: report("tests", done, total),
            )
    rows = study.rates()
    Output(form=form).show(
        table=lambda: _table(study.grid, rows),
        json=lambda: json.dumps(
            {"configuration": configuration(study.grid), "rates": rows}, indent=2
        ),
        csv=lambda: as_csv(rows),
    )
    if folder is not None and not quiet:
        tell(f"results: {printable(str(folder))}")


def _from_file(path: Path | None) -> dict[str, Any]:
    """The grid of a file."""
    if path is None:
        return {}
    from hullcal.simulation import Grid

    source = Source.of(path)
    source.check_kind()
    read = {".json": json.loads, ".toml": tomllib.loads}.get(source.suffix)
    if read is None:
        came = f"the ending {source.suffix!r}"
        raise source.refuse("must be a .json or .toml file", came, "Rename it.")
    with source.guarded():
        content: Any = read(source.path.read_text(encoding="utf-8"))
    names = [field.name for field in fields(Grid)]
    odd = sorted(set(content) - set(names)) if isinstance(content, dict) else [type(content)]
    if odd:
        rule = f"must hold a table with the entries {', '.join(names)}"
        raise source.refuse(rule, repr(odd[0]), "Take it out.")
    return dict(content)


@contextmanager
def _cluster(backend: str | None, n_jobs: int) -> Iterator[None]:
    """A client of dask, for the scheduler of its own settings or else for workers made here."""
    if backend != "dask":
        yield
        return
    try:
        dask, distributed = map(importlib.import_module, ("dask", "distributed"))
    except ModuleNotFoundError as error:
        repair = "Install it with `pip install dask distributed`."
        raise refusal("backend", "dask must be installed", str(error), repair) from error
    from hullcal._validation import check_jobs
    from hullcal.objectives.dask import local_cluster

    if dask.config.get("scheduler-address", None):
        with distributed.Client():
            yield
    else:
        with local_cluster(check_jobs(n_jobs)) as client, client.as_current():  # which joblib takes
            yield


def _table(grid: Any, rows: list[dict[str, Any]]) -> str:
    """What differs between the rows in columns, what does not above them."""
    axes = list(rows[0])[: list(rows[0]).index("alpha")]
    found = {name: {row[name] for row in rows} - {None, ""} for name in axes}
    differing = [name for name in axes if len(found[name]) > 1]
    same = [f"{name} {value}" for name in axes if name not in differing for value in found[name]]
    lines = [
        [
            *("" if row[name] is None else str(row[name]) for name in differing),
            *(f"{row['alpha']:g}", f"{row['rejection_rate']:.3f}", row["kind"]),
            *(f"{row['error']:.3f}", f"{row['error_lower']:.3f} to {row['error_upper']:.3f}"),
        ]
        for row in rows
    ]
    header = [*differing, "alpha", "rejected", "kind", "error", "95 % interval"]
    return "\n".join(
        [
            ", ".join(same),
            f"{grid.n_datasets} data sets a cell, {grid.n_resamples} resamples a test, "
            f"seed {grid.seed}",
            "",
            in_columns([header, *lines], numbers=True),
        ]
    )


@click.command(
    "power",
    cls=options.Command,
    short_help="How many rows does it take to detect a miscalibration?",
)
@options.reads_files
@click.option(
    "--miscalibration",
    type=click.Choice(["temperature", "corner", "closest"]),
    default="temperature",
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
    type=options.COUNT,
    multiple=True,
    help="Rows of a data set; repeat for several. [default: 1/8 to 2 times those of FILE]",
)
@_test_option(
    default="calibrated",
    help="A question, and how it is answered: as truth, or calibrated:ece_conf:5:stacked.",
)
@click.option("--target", type=options.FRACTION, default=0.8, help="The chance that is wanted.")
@click.option(
    "-R",
    "--datasets",
    "n_datasets",
    type=options.COUNT,
    default=100,
    help="Data sets for each number of rows.",
)
@options.resamples(99)
@options.ALPHA
@options.SEED
@options.jobs("Processes")
@options.shows_results
@options.QUIET
def power(
    *, files: Files, out: Output, quiet: bool, n_samples: tuple[int, ...], **how: Any
) -> None:
    """Simulate data sets with the predictions of FILE, and count how often the test rejects.

    Labels are drawn from a truth that differs from the average member by the amount; those of FILE, if
    it has any, are not looked at.

    \b
    hullcal power predictions.npz
    hullcal power predictions.npz --test truth --amount 1.2 -N 500 -N 1000 -N 2000 --target 0.9
    hullcal power predictions.npz --miscalibration corner --amount 0.1 --format json
    """  # noqa: D301
    classifiers, _ = files.read(needs_labels=False)
    from hullcal import simulation

    with as_options(**_PARTS), working(quiet=quiet) as report:
        found = simulation.power(
            classifiers,
            n_samples=n_samples or None,
            progress=lambda done, total: report("tests", done, total),
            **how,
        )
    names = ("n_samples", "power", "lower", "upper")
    rows = zip(*(getattr(found, name).tolist() for name in names), strict=True)
    out.show(
        table=lambda: str(found),
        json=lambda: json.dumps(found.to_dict(), indent=2),
        csv=lambda: csv_text([dict(zip(names, row, strict=True)) for row in rows]),
    )
