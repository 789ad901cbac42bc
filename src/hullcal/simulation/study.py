"""A study: many data sets, many tests, how often these err, and the folder where all that is kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError, check_flag, check_jobs, refusal
from hullcal.io import write_atomic
from hullcal.io.journal import JOURNAL, Journal, check_folder
from hullcal.io.results import versions
from hullcal.io.writing import as_text, csv_line
from hullcal.measures import CustomMeasure, Measure
from hullcal.nulls import Null
from hullcal.simulation.grid import Grid
from hullcal.simulation.rates import kind_of_error, rates_of
from hullcal.simulation.running import COLUMNS, run_tests

#: What a study leaves in its folder beside the journal.
NAMES = ("tests.csv", "rates.csv", "manifest.json")


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
        rows = self.tests["pvalue"].reshape(-1, self.grid.n_datasets)
        kinds = [
            kind_of_error(cell.scenario, test.null)
            for cell, test in product(self.grid.cells, self.grid.tests)
        ]
        return [
            {**names, **row}
            for names, kind, values in zip(self.grid.names(), kinds, rows, strict=True)
            for row in rates_of(kind, values, levels)
        ]


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

    Neither the number of processes nor interruptions change a single bit of the result.

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

    Returns
    -------
    Study

    Raises
    ------
    StudyError, WorkerDied
        If a test fails, of which the message names the data set; if a worker process is lost, after
        which `resume` continues.

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
        raise InvalidInputError(
            "`resume` continues and `force` starts over; got both. Choose one of them."
        )
    # joblib's own reading of other negative numbers is not ours.
    n_jobs = None if n_jobs is None else check_jobs(n_jobs)
    with ExitStack() as stack:
        journal = None
        if folder is not None:
            place = _checked(grid, check_folder(folder, "folder"), resume=resume, force=force)
            opened = Journal.open(
                place, configuration(grid), resume=resume, new=not (resume or force)
            )
            journal = stack.enter_context(opened)
            if force:
                # Tables of another study must not stand beside this one's journal.
                for name in NAMES:
                    (place / name).unlink(missing_ok=True)
        seed: Any = grid.seed
        values = run_tests(
            [cell.source() for cell in grid.cells],
            grid.tests,
            n_datasets=grid.n_datasets,
            n_resamples=grid.n_resamples,
            seed=seed,
            n_jobs=n_jobs,
            backend=backend,
            journal=journal,
            progress=progress,
        )
        study = Study(grid, _table(grid, values))
        if journal is not None:
            _write(study, journal.path.parent)
    return study


def _checked(grid: Grid, folder: Path, *, resume: bool, force: bool) -> Path:
    """Refuse what cannot be kept, and a folder that holds something already, before any work."""
    for measure in (test.measure for test in grid.tests):
        if isinstance(measure, CustomMeasure):
            # A name cannot tell a function from its successor.
            came = (
                f"the function {measure.name!r}, which may be another one when the study is resumed"
            )
            repair = "Leave `folder` out, or derive a Measure."
            raise refusal("folder", "needs measures that are values", came, repair)
    has_journal = (folder / JOURNAL).exists()
    if has_journal and not (resume or force):
        repair = "Continue it with `resume=True`, or start over with `force=True`."
        came = f"{str(folder)!r} with a journal"
        raise refusal("folder", "must not hold a study yet", came, repair)
    others = [str(folder / name) for name in NAMES if (folder / name).exists()]
    if others and not has_journal and not force:
        repair = "Choose another folder, or replace them with `force=True`."
        rule = "must not hold files that would be replaced"
        raise refusal("folder", rule, repr(others[0]), repair)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


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
    contents = (as_csv(_rows(study)), as_csv(study.rates()), json.dumps(manifest, indent=2) + "\n")
    for name, content in zip(NAMES, contents, strict=True):
        write_atomic(folder / name, content, force=True)


def _rows(study: Study) -> Iterator[dict[str, Any]]:
    """What every test was and what it found."""
    found = {name: study.tests[name].tolist() for name in ("dataset", *COLUMNS)}
    for i, names in enumerate(study.grid.names()):
        for row in range(i * study.grid.n_datasets, (i + 1) * study.grid.n_datasets):
            yield names | {name: column[row] for name, column in found.items()}


def as_csv(rows: Iterable[dict[str, Any]]) -> str:
    """A line for each row; a number that has no meaning is missing."""
    lines: list[str] = []
    for row in rows:
        if not lines:
            lines.append(csv_line(row))
        cells = ("" if value is None or value != value else value for value in row.values())
        lines.append(csv_line(as_text(v) if isinstance(v, str) else str(v) for v in cells))
    return "".join(lines)


@dataclass(frozen=True, kw_only=True, eq=False)
class ErrorRates:
    """Errors of a test among simulated data sets, by level.

    Attributes
    ----------
    alpha, rejection_rate : ndarray
        The levels, and the share of the data sets in which the hypothesis was rejected.
    error, lower, upper : ndarray
        Share in which the test erred, rejections for "Type I" and the others for "Type II", and
        Wilson's 95 % interval of it.
    kind : str
        "Type I" if what the null tests is true of the scenario, otherwise "Type II".
    pvalues : ndarray of shape (n_datasets,)
    n_datasets : int
    seed : int
        Gives the same rates again as `rng`.
    settings : dict
        What was drawn and how it was tested.
    """

    alpha: NDArray[np.float64]
    rejection_rate: NDArray[np.float64]
    error: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    kind: str
    pvalues: NDArray[np.float64]
    n_datasets: int
    seed: int
    settings: dict[str, Any]

    def __str__(self) -> str:
        lines = [
            ", ".join(f"{name}={value}" for name, value in self.settings.items()),
            f"{self.kind} error in {self.n_datasets} data sets, with 95 % intervals",
            " alpha  rejected  error  interval",
        ]
        columns = (self.alpha, self.rejection_rate, self.error, self.lower, self.upper)
        lines += [
            f"{alpha:6.3g}  {rejected:8.3f}  {error:5.3f}  {low:.3f} to {high:.3f}"
            for alpha, rejected, error, low, high in zip(*columns, strict=True)
        ]
        return "\n".join(lines)


def error_rates(
    *,
    scenario: str = "S1",
    measure: str | Measure = "ece_conf",
    null: str | Null = "stacked",
    alpha: float | Iterable[float] = (0.05, 0.2),
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    progress: bool | Callable[[int, int], None] = False,
    **settings: Any,
) -> ErrorRates:
    """Error rates of one test in one scenario, from simulated data sets.

    The numbers are those that `run` gives for a grid with this cell.

    Parameters
    ----------
    scenario, measure, null, alpha
        As for `Grid`, one value each; `alpha` may be several.
    rng : int, numpy.random.Generator or None
        Seed.
    n_jobs, progress
        As for `run`.
    **settings
        The other parameters of `Grid`, one value each: `minimizer`, `n_datasets`, `n_resamples`,
        `n_samples`, `n_members`, `n_classes`, `spread`, `strength` and `protocol`.

    Returns
    -------
    ErrorRates

    Examples
    --------
    >>> rates = error_rates(scenario="S2", null="paper", n_datasets=20, alpha=0.95, rng=0)
    >>> rates.kind, rates.error.shape
    ('Type II', (1,))
    """
    settings |= {"scenario": scenario, "measure": measure, "null": null}
    for name, value in settings.items():
        if isinstance(value, list | tuple | np.ndarray):
            repair = "Several make a Grid, for `run`."
            raise refusal(name, "must be one value", f"{value!r:.80}", repair)
    grid = Grid(**settings, alpha=alpha, seed=rng)
    study = run(grid, n_jobs=n_jobs, progress=progress)
    rows = study.rates()
    names = ("alpha", "rejection_rate", "error", "error_lower", "error_upper")
    columns = {
        name.removeprefix("error_"): np.array([row[name] for row in rows], dtype=np.float64)
        for name in names
    }
    for column in columns.values():
        column.flags.writeable = False
    seed: Any = grid.seed
    return ErrorRates(
        **columns,
        kind=rows[0]["kind"],
        pvalues=study.tests["pvalue"],
        n_datasets=grid.n_datasets,
        seed=seed,
        settings={name: value for name, value in grid.names()[0].items() if value is not None},
    )
