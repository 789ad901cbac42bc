"""A study: many data sets, many tests, how often these err, and the folder where all that is kept."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import check_flag, check_jobs, refusal
from hullcal.io import write_atomic
from hullcal.io.journal import JOURNAL, Journal, check_folder
from hullcal.io.results import versions
from hullcal.io.writing import as_text, csv_line
from hullcal.measures import CustomMeasure
from hullcal.nulls import TRUTH
from hullcal.simulation.grid import Grid
from hullcal.simulation.running import COLUMNS, run_tests
from hullcal.simulation.scenarios import HOLDS

#: What a study leaves in its folder beside the journal.
NAMES = ("tests.csv", "rates.csv", "manifest.json")
#: The 97.5 % quantile of the standard normal distribution.
_Z = 1.959963984540054


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
    low = 0.0 if count == 0 else max(0.0, middle - half)
    return low, 1.0 if count == total else min(1.0, middle + half)


@dataclass(frozen=True, eq=False)
class Study:
    """What was found.

    Attributes
    ----------
    grid : Grid
    tests : dict of ndarray
        One entry for each test, by cell, way of testing and data set: what was drawn (`scenario`,
        `n_samples`, `n_members`, `n_classes`, `spread`, `strength`, `protocol`, `dataset`), how it
        was tested (`measure`, `n_bins`, `null`, `minimizer`), and `pvalue`, `statistic`, `minimum`
        and `n_evaluations`. A number is NaN where it has no meaning. `pvalue` is the smallest level
        at which the protocol rejects.
    """

    grid: Grid
    tests: dict[str, NDArray[Any]]

    def rates(self) -> list[dict[str, Any]]:
        """Rows for every cell, way of testing and level.

        Each holds `rejections` among `n_datasets`, the `rejection_rate`, the `kind` of error that the
        test can make there and the rate of this `error`, all with Wilson's 95 % intervals. A test
        errs by the hypothesis of its own null: where the hull contains a calibrated classifier but
        not the truth, "refit" errs by not rejecting and the others by rejecting.
        """
        levels: Any = self.grid.alpha
        total = self.grid.n_datasets
        pvalues = self.tests["pvalue"].reshape(-1, total)
        ways = product(self.grid.cells, self.grid.tests)
        rows = []
        for names, (cell, test), values in zip(self.grid.names(), ways, pvalues, strict=True):
            holds = HOLDS[cell.scenario]
            true = holds.truth if test.null.hypothesis == TRUTH else holds.calibrated
            for level in levels:
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
    >>> study = run(Grid(scenario="S1", measure="ece_conf", n_datasets=5, alpha=0.05))
    >>> [(row["kind"], row["rejections"]) for row in study.rates()]
    [('Type I', 0)]
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


def _journal(grid: Grid, folder: Any, *, resume: bool, force: bool) -> Journal:
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


def _table(grid: Grid, values: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
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
