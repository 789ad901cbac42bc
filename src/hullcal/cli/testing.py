"""`hullcal test`: the three questions, for the predictions of a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from hullcal._validation import InvalidInputError
from hullcal.cli.options import (
    FORCE,
    OUTPUT,
    PATH,
    QUIET,
    VERBOSE,
    Files,
    TestOptions,
    as_options,
    check_outputs,
    columns,
    command_line,
    format_option,
    in_options,
    input_options,
    print_or_write,
    testing_options,
)
from hullcal.cli.running import REJECTED, resumable, tell, working
from hullcal.io.journal import LOCK
from hullcal.words import printable, weights_in_words

#: Seconds on this machine beyond which `--measure all` leaves a measure out.
_LONG = 60.0


@click.command("test", short_help="Is the average calibrated, some combination, the truth inside?")
@input_options
@testing_options
@OUTPUT
@format_option
@click.option("--report", type=PATH, help="Also write a report, one HTML file.")
@FORCE
@click.option(
    "--exit-code",
    is_flag=True,
    help='End with 1 if "calibrated" is rejected; with --question, if any question asked is.',
)
@QUIET
@VERBOSE
def test(
    *,
    files: Files,
    how: TestOptions,
    form: str,
    output: Path | None,
    report: Path | None,
    force: bool,
    exit_code: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Is the plain average calibrated? Is some combination? Does the hull contain the truth?

    FILE holds predictions of shape (rows, members, classes) and labels: .npz with the keys probs and
    labels, .npy, .csv, .parquet, .zarr, .h5 or .safetensors; - is standard input. Predictions must
    be on rows that no member was fitted to.

    \b
    hullcal test predictions.npz
    hullcal test predictions.npz -m ece_conf,ece_cwise --report report.html
    hullcal test --member a.npy --member b.npy --labels y.npy --format json
    """  # noqa: D301
    from hullcal import io

    check_outputs(force=force, output=output, report=report)
    if report is not None and _only_workers_read(files, how):
        raise InvalidInputError(
            "`--report` needs predictions in memory; got a store that only workers read. Run "
            "`hullcal test` without a report, or use `--engine local`."
        )
    found = run_tests(files, how, quiet=quiet)
    if form == "table":
        named = "" if files.file is None else f"{files.file.name}: "
        text = printable(named) + table(found, verbose=verbose)
    else:
        text = found.to_json() if form == "json" else found.to_csv()
    # Results come first, so that no fault of the page can lose them.
    print_or_write(text, output, force=force)
    if report is not None:
        from hullcal.report import render

        page = render(found, command=command_line(found.results[0].seed))
        io.write_atomic(report, page, force=force)
        if not quiet:
            tell(f"report: {report}")
    asked = found.answers.values() if how.questions else [found.calibrated]
    return (
        REJECTED if exit_code and any(each is not None and each.rejected for each in asked) else 0
    )


def run_tests(files: Files, how: TestOptions, *, quiet: bool) -> Any:
    """Ask all questions that were named, by all measures."""
    _check_engine(how)
    if how.journal is not None:
        _check_journal(how.journal, resume=how.resume)
    elif how.resume:
        raise InvalidInputError("`--resume` needs `--journal`; got none. Name the run's journal.")
    probs, labels, options = _predictions(files, how)
    from hullcal.assessment import assess
    from hullcal.verdicts import QUESTIONS

    names = _all(probs, labels, how, quiet=quiet) if "all" in how.measures else how.measures
    with _engine(how) as engine, working(quiet=quiet) as report:
        return assess(
            probs,
            labels,
            measures=names,
            questions=how.questions or tuple(QUESTIONS),
            null=how.null,
            minimizer=how.minimizer,
            n_resamples=how.n_resamples,
            alpha=how.alpha,
            rng=how.seed,
            stop_after=how.stop_after,
            engine=engine,
            journal=how.journal,
            n_jobs=how.jobs,
            progress=report,
            **options,
        )


def _all(probs: Any, labels: Any, how: TestOptions, *, quiet: bool) -> list[str]:
    """Every measure that does not take too long; what is left out, and what the rest takes, is said."""
    from hullcal import measures, minimizers, nulls
    from hullcal._validation import check_jobs
    from hullcal.assessment import expected_seconds

    if not hasattr(probs, "labels"):  # only workers have the predictions
        return [name for name in measures.available() if measures.resolve(name).streams()]
    null = None if how.null is None else nulls.resolve(how.null)
    search = minimizers.resolve(how.minimizer)
    positions, jobs = probs.labels(labels), check_jobs(how.jobs)
    times = {}
    for name in measures.available():
        given = probs, positions, measures.resolve(name), null, search, how.n_resamples
        times[name] = expected_seconds(*given) / jobs
    kept = [name for name, seconds in times.items() if seconds <= _LONG or name in how.measures]
    left = [f"{name} ({_lasting(times[name])})" for name in times if name not in kept]
    if not quiet:
        tell(f"{len(kept)} measures, {_lasting(sum(times[name] for name in kept))} at most")
        if left:
            tell(f"left out, as they take longer: {', '.join(left)}; name them to run them")
    return kept


def _lasting(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("hours", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"about {seconds / size:.0f} {unit}"
    return f"about {max(seconds, 1.0):.0f} s"


def _only_workers_read(files: Files, how: TestOptions) -> bool:
    return how.engine == "dask" and files.file is not None and files.file.is_dir()


def _check_engine(how: TestOptions) -> None:
    given = [name for name in ("scheduler", "workers") if getattr(how, name) is not None]
    if given and how.engine != "dask":
        raise InvalidInputError(
            f"`--{given[0]}` is for `--engine dask`; got `--engine {how.engine or 'local'}`. Add "
            "`--engine dask`, or leave it out."
        )
    if len(given) > 1:
        raise InvalidInputError(
            "`--scheduler` and `--workers` exclude each other; got both. Use the workers at an "
            "address, or start some here."
        )


@contextmanager
def _engine(how: TestOptions) -> Iterator[Any]:
    """The engine by name, or a client of the cluster that was named."""
    if how.scheduler is None and how.workers is None:
        yield how.engine
        return
    from hullcal.objectives.dask import at_address, local_cluster

    cluster = local_cluster(how.workers) if how.scheduler is None else at_address(how.scheduler)
    with cluster as client:
        yield client


def _predictions(files: Files, how: TestOptions) -> tuple[Any, Any, dict[str, Any]]:
    """Predictions and labels of the files, or the path of a store that only workers will read."""
    path = files.file
    if path is None or not _only_workers_read(files, how):
        classifiers, labels = files.read()
        return classifiers, labels, {}
    for name, usual in (("probs_key", "probs"), ("labels_key", "labels")):
        if getattr(files, name) != usual:
            option = f"--{name.replace('_', '-')}"
            raise InvalidInputError(
                f"`{option}` cannot be used with `--engine dask`; got {getattr(files, name)!r}. "
                f"Call the array {usual!r} in the store."
            )
    labels = None
    if files.labels is not None:
        from hullcal.io.reading import read_labels
        from hullcal.io.source import Source

        with as_options(path="--labels"):
            labels = read_labels(Source.of(files.labels), files.labels_key, files.names)
    if files.names is None:
        return path, labels, files.options
    from hullcal.io.stores import open_store

    store = open_store(path)
    seen = store.read(0, 1)[1] if labels is None and store.labelled else labels
    return path, labels, files.options | {"classes": files.classes_of(seen, store.classes)}


def _check_journal(folder: Path, *, resume: bool) -> None:
    # A run that was stopped before its first line leaves a lock, which is nothing to resume.
    files = folder.rglob("*") if folder.is_dir() else ()
    there = any(path.name != LOCK and not path.is_dir() for path in files)
    if there and not resume:
        raise InvalidInputError(
            f"`--journal` must be a new folder; got {str(folder)!r}, which is not empty. Add "
            "`--resume` to resume its run, or name another."
        )
    if resume and not there:
        raise InvalidInputError(
            f"`--resume` needs the journal of a run; got {str(folder)!r} without one. Leave "
            "`--resume` out to begin."
        )
    resumable(folder)


def table(found: Any, *, verbose: bool = False) -> str:
    """Answers and next steps; the figures of every test if asked for."""
    first = found.results[0]
    said = in_options(found.summary()).replace(
        found.described, f"{found.described}; alpha {first.alpha:g}, seed {first.seed}", 1
    )
    lines = [said, *(f"Note: {note}" for note in found.notes())]
    return "\n".join([*lines, "", figures(found)] if verbose else lines)


def figures(found: Any) -> str:
    """A line for each test, and the weights of the best combination."""
    from hullcal.words import measure_in_words

    header = ["question", "measure", "null", "statistic", "critical", "p", "95 % interval"]
    header += ["adjusted p", "resamples", "headline"]
    rows = []
    for question, answer in found.answers.items():
        each = zip(answer.results, answer.adjusted, answer.headlines, strict=True)
        for result, adjusted, headline in each:
            low, high = result.pvalue_interval
            rows.append(
                [
                    *(question, measure_in_words(result), getattr(result, "null", "likelihood")),
                    *(f"{result.statistic:.4g}", f"{result.critical_value:.4g}"),
                    *(f"{result.pvalue:.3g}", f"{low:.3g} to {high:.3g}", f"{adjusted:.3g}"),
                    *(str(result.n_resamples), headline),
                ]
            )
    shown = columns(header, rows)
    if found.data.n_members == 1:
        return shown
    return f"{shown}\n\nBest weights: {weights_in_words(found.weights, found.data.members)}"
