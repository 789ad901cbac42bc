"""`hullcal test`: the three questions, for the predictions of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

from hullcal import io
from hullcal._validation import refusal
from hullcal.cli import options
from hullcal.cli.options import Files, Output, as_options, command_line, in_options
from hullcal.cli.running import REJECTED, lasting, resumable, tell, working
from hullcal.io.journal import LOCK
from hullcal.io.reading import read_labels
from hullcal.io.source import Source
from hullcal.io.stores import open_store
from hullcal.words import in_columns, plural, printable, weights_in_words

#: Seconds on this machine beyond which `--measure all` leaves a measure out.
_LONG = 60.0


@click.command(
    "test",
    cls=options.Command,
    short_help="Answer the three questions for the predictions of a file.",
)
@options.reads_files
@options.named(
    "-m",
    "--measure",
    "measures",
    room="measures",
    also=("all",),
    multiple=True,
    default=("ece_conf",),
    help="Calibration measure (see `hullcal measures`), or ece_conf:5 for five bins; several as "
    'a,b, or "all" that take less than a minute.',
)
@click.option(
    "--question",
    "questions",
    type=click.Choice(["average", "calibrated", "truth"]),
    multiple=True,
    help="Which question to ask; repeat for several.  [default: all three]",
)
@options.named(
    "--null",
    room="nulls",
    help='How "calibrated" gets its reference distribution: stacked, recentered, maximized or '
    "paper.  [default: stacked, or recentered beyond memory]",
)
@options.MINIMIZER
@options.resamples(999)
@options.ALPHA
@click.option(
    "--stop-after",
    type=click.IntRange(min=2),
    metavar="H",
    default=100,
    help="Stop a test once H null values have reached its statistic: p is clearly large.",
)
@options.SEED
@options.jobs("Threads")
@click.option(
    "--engine",
    type=click.Choice(["local", "dask"]),
    help="Backend: this machine, or the workers of a Dask cluster. FILE may then be a Zarr "
    "store or a folder of .npy, .npz, .h5, .safetensors or .parquet shards.",
)
@click.option("--scheduler", metavar="ADDRESS", help="A Dask scheduler, e.g. tcp://host:8786.")
@click.option("--workers", type=options.COUNT, help="Start so many Dask workers here.")
@click.option(
    "--journal",
    type=options.PATH,
    metavar="FOLDER",
    help="Keep finished resamples in this folder, so that an interrupted run can be resumed.",
)
@click.option("--resume", is_flag=True, help="Resume an interrupted run (needs --journal).")
@options.shows_results
@click.option("--report", type=options.PATH, help="Also write a report, one HTML file.")
@click.option(
    "--exit-code",
    is_flag=True,
    help='End with 1 if "calibrated" is rejected; with --question, if any question asked is.',
)
@options.QUIET
@click.option("-v", "--verbose", is_flag=True, help="Print the figures of every test, too.")
def test(
    *,
    files: Files,
    out: Output,
    measures: tuple[str, ...],
    questions: tuple[str, ...],
    engine: str | None,
    scheduler: str | None,
    workers: int | None,
    journal: Path | None,
    resume: bool,
    report: Path | None,
    exit_code: bool,
    quiet: bool,
    verbose: bool,
    **how: Any,
) -> int:
    """Is the plain average calibrated? Is some combination? Does the hull contain the truth?

    FILE holds predictions of shape (rows, members, classes) and labels: .npz with the keys probs and
    labels, .npy, .csv, .parquet, .zarr, .h5 or .safetensors; - is standard input. A .csv has a line for
    each row, with columns member:class and label. No member may have been fitted to these rows.

    \b
    hullcal test predictions.npz
    hullcal test predictions.npz -m ece_conf,ece_cwise --report report.html
    hullcal test --member a.npy --member b.npy --labels y.npy --format json
    """  # noqa: D301
    path = files.file
    # Only workers read a folder, which need not fit into memory here.
    store = path if engine == "dask" and path is not None and path.is_dir() else None
    if report is not None and store is not None:
        repair = "Run `hullcal test` without a report, or use `--engine local`."
        came = "a store that only workers read"
        raise refusal("--report", "needs predictions in memory", came, repair)
    backend = _backend(engine, scheduler, workers)
    _check_journal(journal, resume=resume)
    probs, labels, said = (*files.read(), {}) if store is None else _beside(store, files)
    from hullcal.assessment import assess
    from hullcal.verdicts import QUESTIONS

    if "all" in measures:
        measures = _affordable(probs, labels, measures, how, quiet=quiet)
    with backend as client, working(quiet=quiet) as progress:
        found: Any = assess(
            probs,
            labels,
            measures=measures,
            questions=questions or tuple(QUESTIONS),
            engine=client,
            journal=journal,
            progress=progress,
            **said,
            **how,
        )
    named = "" if path is None else f"{printable(path.name)}: "
    # Results come first, so that no fault of the page can lose them.
    out.show(
        table=lambda: named + _table(found, verbose=verbose),
        json=found.to_json,
        csv=found.to_csv,
    )
    if report is not None:
        from hullcal.report import render

        page = render(found, command=command_line(found.results[0].seed))
        io.write_atomic(report, page, force=out.force)
        if not quiet:
            tell(f"report: {printable(str(report))}")
    asked = found.answers.values() if questions else [found.calibrated]
    rejected = any(answer is not None and answer.rejected for answer in asked)
    return REJECTED if exit_code and rejected else 0


def _affordable(
    probs: Any, labels: Any, named: Sequence[str], how: Mapping[str, Any], *, quiet: bool
) -> tuple[str, ...]:
    """Every measure that is named or does not take too long; what is left out is said."""
    from hullcal import measures, minimizers, nulls
    from hullcal._validation import check_jobs
    from hullcal.assessment import expected_seconds

    known = {name: measures.resolve(name) for name in measures.available()}
    if not hasattr(probs, "labels"):  # only workers have the predictions
        return tuple(name for name, measure in known.items() if measure.streams())
    null = None if how["null"] is None else nulls.resolve(how["null"])
    run = (null, minimizers.resolve(how["minimizer"]), how["n_resamples"])
    positions, jobs = probs.labels(labels), check_jobs(how["n_jobs"])
    times = {
        name: expected_seconds(probs, positions, measure, *run) / jobs
        for name, measure in known.items()
    }
    kept = tuple(name for name, seconds in times.items() if seconds <= _LONG or name in named)
    left = [f"{name} ({lasting(times[name])})" for name in times if name not in kept]
    if not quiet:
        whole = lasting(sum(times[name] for name in kept))
        tell(f"{len(kept)} {plural(len(kept), 'measure')}, {whole} at most")
        if left:
            tell(f"left out, as they take longer: {', '.join(left)}; name them to run them")
    return kept


def _backend(
    engine: str | None, scheduler: str | None, workers: int | None
) -> AbstractContextManager[Any]:
    """The engine by name, or a client of the cluster that was named."""
    given = {"scheduler": scheduler, "workers": workers}
    named = [name for name, value in given.items() if value is not None]
    if not named:
        return nullcontext(engine)
    if engine != "dask":
        repair = "Add `--engine dask`, or leave it out."
        came = f"`--engine {engine or 'local'}`"
        raise refusal(f"--{named[0]}", "is for `--engine dask`", came, repair)
    if len(named) > 1:
        repair = "Use the workers at an address, or start some here."
        raise refusal("--scheduler", "and `--workers` exclude each other", "both", repair)
    from hullcal.objectives.dask import at_address, local_cluster

    return local_cluster(workers) if scheduler is None else at_address(scheduler)


def _beside(path: Path, files: Files) -> tuple[Path, Any, dict[str, Any]]:
    """A store that only workers will read, labels from elsewhere, and what is said of both."""
    for name, usual in (("probs_key", "probs"), ("labels_key", "labels")):
        if getattr(files, name) != usual:
            repair = f"Call the array {usual!r} in the store."
            rule = "cannot be used with `--engine dask`"
            raise refusal(name, rule, repr(getattr(files, name)), repair)
    labels = None
    if files.labels is not None:
        with as_options(path="--labels"):
            labels = read_labels(Source.of(files.labels), files.labels_key, files.names)
    if files.names is None:
        return path, labels, files.options(labels, None)
    store = open_store(path)
    seen = store.read(0, 1)[1] if labels is None and store.labelled else labels
    return path, labels, files.options(seen, store.classes)


def _check_journal(folder: Path | None, *, resume: bool) -> None:
    """Refuse to continue what is not there, and to begin over what is."""
    if folder is None:
        if resume:
            raise refusal("--resume", "needs `--journal`", "none", "Name the run's journal.")
        return
    # A run that was stopped before its first line leaves a lock, which is nothing to resume.
    files = folder.rglob("*") if folder.is_dir() else ()
    there = any(path.name != LOCK and not path.is_dir() for path in files)
    if there and not resume:
        came = f"{str(folder)!r}, which is not empty"
        repair = "Add `--resume` to resume its run, or name another."
        raise refusal("--journal", "must be a new folder", came, repair)
    if resume and not there:
        came, repair = f"{str(folder)!r} without one", "Leave `--resume` out to begin."
        raise refusal("--resume", "needs the journal of a run", came, repair)
    resumable(folder)


def _table(found: Any, *, verbose: bool) -> str:
    """Answers and next steps; the figures of every test if asked for."""
    first = found.results[0]
    said = in_options(found.summary()).replace(
        found.described, f"{found.described}; alpha {first.alpha:g}, seed {first.seed}", 1
    )
    lines = [said, *(f"Note: {note}" for note in found.notes)]
    return "\n".join([*lines, "", _figures(found)] if verbose else lines)


def _figures(found: Any) -> str:
    """A line for each test, and the weights of the best combination."""
    header = ["question", "measure", "null", "statistic", "critical", "own p", "95 % interval"]
    rows = [[*header, "adjusted p", "resamples", "headline"]]
    tests = [test for answer in found.answers.values() for test in answer.tests]
    for result, test in zip(found.results, tests, strict=True):
        low, high = result.pvalue_interval
        rows.append(
            [
                *(test["question"], test["measure"], getattr(result, "null", "likelihood")),
                *(f"{result.statistic:.4g}", f"{result.critical_value:.4g}"),
                *(f"{result.pvalue:.3g}", f"{low:.3g} to {high:.3g}", f"{test['pvalue']:.3g}"),
                *(str(result.n_resamples), test["headline"]),
            ]
        )
    shown = in_columns(rows, numbers=True)
    if found.data.n_members == 1:
        return shown
    return f"{shown}\n\nBest weights: {weights_in_words(found.weights, found.data.members)}"
