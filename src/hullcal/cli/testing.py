"""`hullcal test`: both questions, for the predictions of a file."""

from __future__ import annotations

import sys
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
    Files,
    TestOptions,
    as_options,
    check_outputs,
    columns,
    command_line,
    format_option,
    input_options,
    testing_options,
)
from hullcal.cli.running import REJECTED, nobody_reads, resumable, tell, working
from hullcal.io.journal import LOCK
from hullcal.words import weights_in_words


@click.command("test", short_help="Does the hull contain a calibrated classifier, or the truth?")
@input_options
@testing_options
@format_option
@OUTPUT
@click.option("--report", type=PATH, help="Also write a report, one HTML file.")
@FORCE
@click.option(
    "--exit-code",
    is_flag=True,
    help="End with 1 if rejected: by the first null, after adjustment for several measures. A verdict "
    "of Unclear counts as well.",
)
def test(
    *,
    files: Files,
    how: TestOptions,
    form: str,
    output: Path | None,
    report: Path | None,
    force: bool,
    exit_code: bool,
) -> int:
    """Does the hull contain a calibrated classifier? Does it contain the truth?

    FILE holds predictions of shape (rows, members, classes) and labels: .npz with the keys probs and
    labels, .npy, .csv, .parquet, .zarr, .h5 or .safetensors.

    \b
    hullcal test predictions.npz
    hullcal test predictions.npz --measure all --report report.html
    hullcal test --member a.npy --member b.npy --labels y.npy --format json
    """  # noqa: D301
    from hullcal import io

    check_outputs(force=force, output=output, report=report)
    if report is not None:
        check_in_memory(files, how, "--report")
    assessment = run_tests(files, how)
    if form == "json":
        text = io.to_json(assessment.results, verdicts=assessment.verdicts())
    elif form == "csv":
        text = io.to_csv(assessment.results)
    else:
        text = table(assessment)
    # Results come first, so that no fault of the page can lose them.
    try:
        if output is not None:
            io.write_atomic(output, text.rstrip("\n") + "\n", force=force)
        else:
            click.echo(text.rstrip("\n"))
    except BrokenPipeError:
        # Whoever has read enough of the table still wants the page, and the decision.
        nobody_reads(sys.stdout)
    _write_page(report, assessment, how, force=force)
    return REJECTED if exit_code and assessment.rejected(assessment.nulls[0]) else 0


def _write_page(path: Path | None, assessment: Any, how: TestOptions, *, force: bool) -> None:
    if path is None:
        return
    from hullcal import io
    from hullcal.report import render

    io.write_atomic(
        path,
        render(assessment, command=command_line(assessment.results[0].seed)),
        force=force,
    )
    if not how.quiet:
        tell(f"report: {path}")


def run_tests(files: Files, how: TestOptions) -> Any:
    """All measures and nulls that were named; "all" stands for every measure."""
    _check_engine(how)
    if how.journal is not None:
        _check_journal(how.journal, resume=how.resume)
    elif how.resume:
        raise InvalidInputError("`--resume` needs `--journal`; got none. Name the run's journal.")
    probs, labels, options = _predictions(files, how)
    from hullcal import measures as room
    from hullcal.assessment import BOTH, assess

    names = room.available() if "all" in how.measures else tuple(dict.fromkeys(how.measures))
    # Of one classifier both questions are the same.
    usual = BOTH[:1] if getattr(probs, "n_members", 0) == 1 else BOTH
    with _engine(how) as engine, working(quiet=how.quiet) as report:
        return assess(
            probs,
            labels,
            measures=names,
            minimizer=how.minimizer,
            nulls=tuple(dict.fromkeys(how.nulls)) or usual,
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


def check_in_memory(files: Files, how: TestOptions, what: str) -> None:
    """Refuse to show predictions that only workers will read, before they do."""
    if _only_workers_read(files, how):
        raise InvalidInputError(
            f"`{what}` needs predictions in memory; got a store that only workers read. Run "
            "`hullcal test` without a report, or use `--engine local`."
        )


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
    # A run that was stopped before its first line leaves a lock, which is nothing to go on with.
    files = folder.rglob("*") if folder.is_dir() else ()
    there = any(path.name != LOCK and not path.is_dir() for path in files)
    if there and not resume:
        raise InvalidInputError(
            f"`--journal` must be a new folder; got {str(folder)!r}, which is not empty. Add "
            "`--resume` to go on with the run it is of, or name another."
        )
    if resume and not there:
        raise InvalidInputError(
            f"`--resume` needs the journal of a run; got {str(folder)!r} without one. Leave "
            "`--resume` out to begin."
        )
    resumable(folder)


#: Probabilities beyond which nothing is computed but what was asked for.
_MANY = 2**24


def table(found: Any) -> str:
    """Answers in words, then the figures."""
    results = found.results
    several = len(found.measures) > 1
    header = ["measure", "null", "statistic", "critical", "p", "95 % interval"]
    header += ["adjusted p"] * several + ["decision"]
    rows = []
    for result, adjusted in zip(results, found.adjusted, strict=True):
        low, high = result.pvalue_interval
        row = [
            *(result.measure, result.null),
            *(f"{result.statistic:.4g}", f"{result.critical_value:.4g}"),
            *(f"{result.pvalue:.3g}", f"{low:.3g} to {high:.3g}"),
        ]
        row += [f"{adjusted:.3g}"] * several
        rows.append([*row, "rejected" if adjusted <= result.alpha else "not rejected"])
    first = results[0]
    fewest, most = (end(result.n_resamples for result in results) for end in (min, max))
    resamples = str(most) if fewest == most else f"{fewest} to {most}"
    lines = [
        f"{first.n_samples} rows, {first.n_members} member{'s' * (first.n_members > 1)}, "
        f"{first.n_classes} classes; {resamples} resamples, alpha {first.alpha:g}, "
        f"seed {first.seed}",
        "",
        *found.sentences(),
        "",
        columns(header, rows),
        "",
        *(_weights_in_words(found) if first.n_members > 1 else ()),
        *_quality_in_words(found),
    ]
    if not all(found.rejected(null) for null in found.nulls):
        lines.append("Not rejecting is no proof.")
    return "\n".join(lines + [f"Note: {note}" for note in found.notes()])


def _quality_in_words(found: Any) -> list[str]:
    """What somebody would use: how good is the average, and what do the weights cost?"""
    classifiers = found.data.classifiers
    # Only workers have seen the predictions, or they are too many to be mixed by the way.
    if classifiers is None or classifiers.probs.size > _MANY:
        return []
    average = found.quality("mean")
    if found.best.n_members == 1:
        return [f"Accuracy {average['accuracy']:.3f}."]
    pairs = (("plain average", average), (found.combination, found.quality(found.weights)))
    said = (
        f"the {name} has " + ", ".join(f"{what} {value:.4g}" for what, value in each.items())
        for name, each in pairs
    )
    sentence = "; ".join(said) + "."
    return [sentence[0].upper() + sentence[1:]]


def _weights_in_words(found: Any) -> list[str]:
    best = found.best
    shown = weights_in_words(best.weights, best.members)
    return [
        f"{found.combination.capitalize()} by {best.measure} ({best.minimum:.4g}): {shown}",
        "Weights are fitted to these rows; expect worse calibration on new data.",
    ]
