"""A study: many data sets, many tests, how often these err, and the folder where all that is kept."""

from __future__ import annotations

import json
import math
import os
import pickle
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import is_compiled
from hullcal._validation import HullcalWarning, check_flag, check_jobs, refusal
from hullcal.io import write_atomic
from hullcal.io.journal import JOURNAL, Journal, Key, check_folder, columns_of
from hullcal.io.results import versions
from hullcal.io.writing import as_text, csv_line
from hullcal.measures import CustomMeasure
from hullcal.progress import reporting
from hullcal.sets import ClassifierSet
from hullcal.simulation.grid import Grid, Source, Test
from hullcal.simulation.scenarios import HOLDS

Floats = NDArray[np.float64]
#: Data sets first, ..., last - 1 of the source in a place: (place, source, first, last).
Block = tuple[int, Source, int, int]
#: What a test leaves behind.
COLUMNS = ("pvalue", "statistic", "minimum", "n_evaluations")
#: Blocks of a cell, each a line of the journal. joblib hands short ones out together, so that a crash
#: costs each process one long block, or about a second.
_BLOCKS = 50
#: What a study leaves in its folder beside the journal.
NAMES = ("tests.csv", "rates.csv", "manifest.json")
#: The 97.5 % quantile of the standard normal distribution.
_Z = 1.959963984540054


class StudyError(RuntimeError):
    """A test failed; the message names the data set on which it did."""


class WorkerDied(BrokenExecutor):
    """A worker was killed, ran out of memory or was lost; what is in the journal is sound."""


def wilson(count: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a proportion.

    Unlike the usual interval it keeps its coverage where errors are rare, and is never empty.

    >>> low, high = wilson(0, 100)
    >>> low, round(high, 4)
    (0.0, 0.037)
    """
    if not 0 <= count <= total or total < 1:
        rule = "must lie between 0 and `total`, and `total` be at least 1"
        raise refusal("count", rule, f"{count} and {total}", "Are they exchanged?")
    share, square = count / total, _Z * _Z / total
    middle = (share + square / 2.0) / (1.0 + square)
    half = _Z / (1.0 + square) * math.sqrt(share * (1.0 - share) / total + square / (4.0 * total))
    # At the ends the two terms are equal, and rounding must not show.
    return 0.0 if count == 0 else middle - half, 1.0 if count == total else middle + half


@dataclass(frozen=True, eq=False)
class Study:
    """What was found.

    Attributes
    ----------
    grid : Grid
    tests : dict of ndarray
        One entry for each test, by cell, way of testing and data set: what was drawn (`scenario`,
        `n_samples`, `n_members`, `n_classes`, `spread`, `strength`, `protocol`, `dataset`), how it
        was tested (`question`, `measure`, `n_bins`, `null`, `minimizer`), and `pvalue`, `statistic`,
        `minimum` and `n_evaluations`. A number without a meaning is NaN, a name empty. `pvalue` is the
        smallest level at which the protocol rejects.
    """

    grid: Grid
    tests: dict[str, NDArray[Any]]

    def rates(self) -> list[dict[str, Any]]:
        """Rows for every cell, way of testing and level.

        Each holds `rejections` among `n_datasets`, the `rejection_rate`, the `kind` of error that the
        test can make there and the rate of this `error`, all with Wilson's 95 % intervals. What is an
        error depends on the question: where the hull contains a calibrated classifier but not the
        truth, a test of the truth errs by not rejecting and others by rejecting.
        """
        levels: Any = self.grid.alpha
        total = self.grid.n_datasets
        rows = []
        pvalues = self.tests["pvalue"].reshape(-1, total)
        for (names, values), level in product(zip(self.grid.names(), pvalues, strict=True), levels):
            true = names["question"] in HOLDS[names["scenario"]]
            rejections = int(np.count_nonzero(values <= level))
            errors = rejections if true else total - rejections
            low, high = wilson(rejections, total)
            # Counted anew rather than taken from 1, so that an error rate of 0 is 0.
            error_low, error_high = wilson(errors, total)
            found = {
                "alpha": level,
                "rejections": rejections,
                "n_datasets": total,
                "rejection_rate": rejections / total,
                "rejection_lower": low,
                "rejection_upper": high,
                "kind": "Type I" if true else "Type II",
                "error": errors / total,
                "error_lower": error_low,
                "error_upper": error_high,
            }
            rows.append(names | found)
        return rows


def run(
    grid: Grid,
    *,
    folder: Any = None,
    resume: bool = False,
    force: bool = False,
    n_jobs: int | None = None,
    backend: Any = None,
    progress: bool | Callable[[int, int], None] = False,
) -> Study:
    """Run a study.

    Neither the number of processes nor interruptions change a single bit of the result. A test that
    fails raises a StudyError, a worker process that is lost WorkerDied, after which `resume` continues.

    Parameters
    ----------
    grid : Grid
    folder : path-like, optional
        Gets journal.jsonl, to which finished work goes at once, and in the end tests.csv, rates.csv
        and manifest.json.
    resume, force : bool
        Whether to continue the journal in `folder`, or to start over what is there.
    n_jobs : int, optional
        Processes; -1 for one a core. Left out, a `joblib.parallel_config` around the call decides,
        and without one there is one process.
    backend : str or joblib backend, optional
        "loky" (processes) by default, "dask" for the workers of the current Client.
    progress : bool or callable
        True shows a bar on stderr; a callable gets (done, total) in tests.

    Examples
    --------
    >>> study = run(Grid(scenario="S1", test="truth", n_datasets=5, alpha=0.05))
    >>> [(row["kind"], row["rejections"]) for row in study.rates()]
    [('Type I', 1)]
    """
    if not isinstance(grid, Grid):
        raise refusal("grid", "must be a Grid", f"{grid!r:.80}", "Pass `Grid(n_samples=100)`.")
    check_flag(resume, "resume")
    check_flag(force, "force")
    if folder is None and (resume or force):
        rule = "must name what `resume` or `force` is about"
        raise refusal("folder", rule, "None", "Name the study's folder.")
    if resume and force:
        raise refusal("force", "must not come with `resume`", "both", "Choose one of them.")
    # joblib's own reading of other negative numbers is not ours.
    n_jobs = None if n_jobs is None else check_jobs(n_jobs)
    with ExitStack() as stack:
        journal = None
        if folder is not None:
            journal = stack.enter_context(_journal(grid, folder, resume=resume, force=force))
            if force:
                # Tables of another study must not stand beside this one's journal.
                for name in NAMES:
                    (journal.path.parent / name).unlink(missing_ok=True)
        values = run_tests(
            [cell.source() for cell in grid.cells],
            grid.tests,
            n_datasets=grid.n_datasets,
            n_resamples=grid.n_resamples,
            seed=grid.seed,
            n_jobs=n_jobs,
            backend=backend,
            journal=journal,
            progress=progress,
        )
        study = Study(grid, _table(grid, values))
        if journal is not None:
            _write(study, journal.path.parent)
    return study


def _journal(
    grid: Grid, folder: Any, *, resume: bool, force: bool
) -> AbstractContextManager[Journal]:
    """The journal of a folder, refused before any work where the study cannot be kept there."""
    place = check_folder(folder, "folder")
    for test in grid.tests:
        if isinstance(test.measure, CustomMeasure):
            came = f"the function {test.measure.name!r}, which may be another one on resuming"
            repair = "Leave `folder` out, or derive a Measure."
            raise refusal("folder", "needs measures that are values", came, repair)
    there = [name for name in (JOURNAL, *NAMES) if (place / name).exists()]
    if there and not force and not (resume and JOURNAL in there):
        came = repr(str(place / there[0]))
        repair = "Continue a journal with `resume=True`, or start over with `force=True`."
        raise refusal("folder", "must not hold a study yet", came, repair)
    place.mkdir(parents=True, exist_ok=True)
    return Journal.open(place, configuration(grid), resume=resume, new=not (resume or force))


def _table(grid: Grid, values: Floats) -> dict[str, NDArray[Any]]:
    """All tests in the order of the grid, one column each for what they were and what they found."""
    names = grid.names()
    table: dict[str, NDArray[Any]] = {}
    for name in names[0]:
        each = [row[name] for row in names]
        array = np.array(each, dtype=np.float64 if None in each else None)
        table[name] = np.repeat(array, grid.n_datasets)
    table["dataset"] = np.tile(np.arange(grid.n_datasets), len(names))
    for name, found in zip(COLUMNS, values, strict=True):
        table[name] = found.ravel().astype(np.int64 if name == "n_evaluations" else np.float64)
    for column in table.values():
        column.flags.writeable = False
    return table


def configuration(grid: Grid) -> dict[str, Any]:
    """All that a number depends on: the grid, and the versions of what computes."""
    return {**grid.configuration(), **versions()}


def _write(study: Study, folder: Path) -> None:
    """Write every file whole or not at all; the same bytes for the same study, however it was run."""
    manifest = {"grid": study.grid.configuration(), "versions": versions()}
    columns = ("dataset", *COLUMNS)
    found = zip(*(study.tests[name].tolist() for name in columns), strict=True)
    ways = product(study.grid.names(), range(study.grid.n_datasets))
    rows = (names | dict(zip(columns, next(found), strict=True)) for names, _ in ways)
    contents = (as_csv(rows), as_csv(study.rates()), json.dumps(manifest, indent=2) + "\n")
    for name, content in zip(NAMES, contents, strict=True):
        write_atomic(folder / name, content, force=True)


def as_csv(rows: Iterable[dict[str, Any]]) -> str:
    """A line for each row; a number that has no meaning is missing."""
    lines: list[str] = []
    for row in rows:
        if not lines:
            lines.append(csv_line(row))
        cells = ("" if value is None or value != value else value for value in row.values())
        lines.append(csv_line(as_text(v) if isinstance(v, str) else str(v) for v in cells))
    return "".join(lines)


def run_tests(
    sources: Sequence[Source],
    tests: Sequence[Test],
    *,
    n_datasets: int,
    n_resamples: int,
    seed: Any,
    n_jobs: int | None,
    backend: Any = None,
    journal: Journal | None = None,
    progress: bool | Callable[[int, int], None] = False,
) -> Floats:
    """What every test left behind, of shape (len(COLUMNS), n_sources, n_tests, n_datasets)."""
    values = np.empty((len(COLUMNS), len(sources), len(tests), n_datasets))
    size = max(1, n_datasets // _BLOCKS)
    missing = []
    for (place, source), first in product(enumerate(sources), range(0, n_datasets, size)):
        last = min(first + size, n_datasets)
        if journal is None or (source.key, first, last) not in journal.blocks:
            missing.append((place, source, first, last))
        else:
            there = values[:, place, :, first:last]
            there[:] = _kept(journal, (source.key, first, last), there.shape)
    work = partial(run_block, tests=tests, seed=seed, n_resamples=n_resamples, home=os.getpid())
    total = values[0].size
    done = total - len(tests) * sum(last - first for *_, first, last in missing)
    with reporting(progress, "tests") as wanted:
        report = wanted or (lambda *_: None)
        report(done, total)
        with closing(_in_any_order(work, missing, tests, n_jobs, backend)) as results:
            for (place, first, last), found in results:
                if journal is not None:
                    columns = dict(zip(COLUMNS, found.tolist(), strict=True))
                    journal.append((sources[place].key, first, last), columns)
                values[:, place, :, first:last] = found
                done += len(tests) * (last - first)
                report(done, total)
    return values


def _kept(journal: Journal, key: Key, shape: tuple[int, ...]) -> Floats:
    """What a journal has of a block, refused if no run could have written it."""
    found = columns_of(journal.blocks[key], COLUMNS)
    if found is not None and found.shape == shape:
        levels, evaluations = found[0], found[-1]
        if ((levels >= 0) & (levels <= 1) & (np.abs(evaluations) < 2**53)).all():
            return found
    repair = "Delete that line to compute it again, or start over with `force=True`."
    came = f"another block {key} in {journal.path}"
    raise refusal("resume", "needs a sound journal", came, repair)


def run_block(
    block: Block, *, tests: Sequence[Test], seed: int, n_resamples: int, home: int
) -> tuple[tuple[int, int, int], Floats]:
    """Draw the data sets of a block and test them: values of shape (len(COLUMNS), n_tests, n)."""
    place, source, first, last = block
    if os.getpid() != home and threading.current_thread() is threading.main_thread():
        # The Ctrl-C of a terminal is for the parent of a worker.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _end_with(home)
    values = np.empty((len(COLUMNS), len(tests), last - first))
    for r in range(first, last):
        current: Test | None = None
        try:
            # Words of the spawn key never run into those of the seed.
            of_data, of_tests = (
                np.random.SeedSequence(seed, spawn_key=(*source.stream, r, purpose))
                for purpose in (0, 1)
            )
            probs, labels = source.draw(np.random.default_rng(of_data))
            classifiers = ClassifierSet(probs)
            # One seed for all tests of a data set: measures and nulls are compared on common draws.
            words = of_tests.generate_state(4).astype("<u4")
            test_seed = int.from_bytes(words.tobytes(), "little")
            for i, current in enumerate(tests):
                with warnings.catch_warnings():
                    # What is to be said was said before the first data set.
                    warnings.simplefilter("ignore", HullcalWarning)
                    test = current.under(source.protocol)
                    how = {"n_resamples": n_resamples, "alpha": 0.5, "rng": test_seed}
                    result = test.run(classifiers, labels, **how)
                level = source.protocol.smallest_level(result)
                # A test by likelihood evaluates no measure.
                minimum = getattr(result, "minimum", math.nan)
                evaluations = getattr(result, "n_evaluations", 0)
                values[:, i, r - first] = level, result.statistic, minimum, evaluations
        except MemoryError:
            raise
        except Exception as error:
            what = f", test {current}" if current else ""
            where = f"data set {r} of {source.name}{what}"
            raise StudyError(f"{where}: {type(error).__name__}: {error}") from error
    return (place, first, last), values


@cache
def _end_with(parent: int) -> None:
    """End this process soon after its parent, which may be killed before it can tell."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    if os.getppid() == parent:  # and is not on another machine
        threading.Thread(target=watch, daemon=True).start()


def _in_any_order(
    work: Callable[[Block], Any],
    blocks: Sequence[Block],
    tests: Sequence[Test],
    n_jobs: int | None,
    backend: Any,
) -> Generator[Any, None, None]:
    """Results of blocks as they are finished: a slow one must not keep others from the journal."""
    import joblib

    try:
        # Only such a setting finds dask by its name.
        with nullcontext() if backend is None else joblib.parallel_config(backend=backend):
            parallel: Any = joblib.Parallel(n_jobs, return_as="generator_unordered")
    except (ValueError, ImportError, TypeError, AttributeError) as error:
        rule = "must be loky, dask, threading or another that joblib can start"
        repair = "Leave it out for processes on this machine."
        raise refusal("backend", rule, f"{backend!r} ({error})", repair) from error
    if not blocks:
        return
    if parallel.n_jobs != 1:
        _check_pickles(tests)
        # Compiled here and once, where a notice can be given; workers of this machine find it done.
        smallest = min((source for _, source, *_ in blocks), key=lambda source: source.sizes)
        compiled = [t for t in tests if t.measure is None or is_compiled(t.measure.value)]
        run_block((0, smallest, 0, 1), tests=compiled, seed=0, n_resamples=1, home=os.getpid())
    results = parallel(joblib.delayed(work)(block) for block in blocks)
    try:
        # `yield from` would close them before the warnings of that are ignored.
        for result in results:  # noqa: UP028
            yield result
    except Exception as error:
        # A cluster has words of its own for a worker that is lost.
        lost = (BrokenExecutor, CancelledError, ConnectionError, EOFError, TimeoutError)
        if not (isinstance(error, lost) or type(error).__module__.startswith("distributed")):
            raise
        first_line = (str(error).strip().splitlines() or [""])[0][:200]
        raise WorkerDied(f"a worker was lost ({type(error).__name__}: {first_line})") from error
    finally:
        with warnings.catch_warnings():
            # Whoever stops early knows that results are lost.
            warnings.simplefilter("ignore")
            results.close()


def _check_pickles(tests: Sequence[Test]) -> None:
    """Refuse what no process could be sent, before any is started."""
    from joblib.externals.loky.backend import reduction

    for test, parameter in product(tests, ("measure", "null", "minimizer")):
        part = getattr(test, parameter)
        try:
            reduction.dumps(part)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            rule = f"{part.name} must be one that other processes can be sent"
            repair = "Define it at the top of a module, or pass `n_jobs=1`."
            raise refusal(parameter, rule, str(error), repair) from error
