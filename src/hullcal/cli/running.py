"""From options on the command line to an assessment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hullcal._validation import InvalidInputError
from hullcal.cli.ending import resumable
from hullcal.cli.inputs import Files
from hullcal.cli.options import TestOptions
from hullcal.cli.wording import as_options
from hullcal.cli.working import working
from hullcal.io.journal import LOCK


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
