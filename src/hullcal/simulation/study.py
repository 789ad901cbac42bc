"""A study: many data sets, many tests, and how often these err."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError, check_jobs
from hullcal._validation.flags import check_flag
from hullcal.io.journal import JOURNAL, Journal, Key, check_folder, columns_of
from hullcal.measures import CustomMeasure
from hullcal.progress import reporting
from hullcal.simulation import files
from hullcal.simulation.blocks import COLUMNS, Block, Columns, blocks_of, run_all
from hullcal.simulation.grid import Grid
from hullcal.simulation.rates import rate_table

__all__ = ["Study", "run"]


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
        values = self.tests["pvalue"].reshape(-1, self.grid.n_datasets)
        return rate_table(_names(self.grid), list(values), levels)


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
        Gets journal.jsonl, to which finished work goes at once, and in the end tests.csv (also
        tests.parquet, if pyarrow is installed), rates.csv and manifest.json.
    resume : bool
        Whether to continue the journal in `folder`, if there is one.
    force : bool
        Whether to start over where `folder` holds a study already.
    n_jobs : int, optional
        Processes; -1 for one a core. Left out, a `joblib.parallel_config` around the call decides,
        and without one there is one process.
    backend : str or joblib backend, optional
        "loky" (processes) by default; "dask", "ray" and others as joblib knows them.
    progress : bool or callable
        True shows a bar on stderr; a callable gets (done, total) in tests.

    Returns
    -------
    Study

    Raises
    ------
    StudyError
        If a test fails; it names the data set.
    WorkerDied
        If a worker process is lost; `resume` continues.

    Examples
    --------
    >>> study = run(Grid(scenario="S1", measure="ece_conf", n_datasets=5, alpha=0.05))
    >>> [(row["kind"], row["rejections"]) for row in study.rates()]
    [('Type I', 0)]
    """
    if not isinstance(grid, Grid):
        raise InvalidInputError(
            f"`grid` must be a Grid; got {grid!r:.80}. Pass for example `Grid(n_samples=100)`."
        )
    check_flag(resume, "resume")
    check_flag(force, "force")
    if folder is None and (resume or force):
        raise InvalidInputError(
            "`folder` must name what `resume` or `force` is about; got None. Name the study's folder."
        )
    if resume and force:
        raise InvalidInputError(
            "`resume` continues and `force` starts over; got both. Choose one of them."
        )
    if folder is not None:
        _check_named(grid)
    # joblib's own reading of other negative numbers is not ours.
    n_jobs = None if n_jobs is None else check_jobs(n_jobs)
    blocks = blocks_of(grid)
    with ExitStack() as stack:
        finished: dict[Key, Columns] = {}
        journal = None
        if folder is not None:
            place = _checked(check_folder(folder, "folder"), resume=resume, force=force)
            opened = Journal.open(
                place, files.configuration(grid), resume=resume, new=not (resume or force)
            )
            journal = stack.enter_context(opened)
            finished = journal.blocks
            _check_sound(grid, blocks, finished, journal.path)
            if force:
                # Tables of another study must not stand beside this one's journal.
                for name in files.NAMES:
                    (place / name).unlink(missing_ok=True)
        _run(grid, blocks, finished, journal, n_jobs, backend, progress)
        study = Study(grid, _table(grid, blocks, finished))
        if journal is not None:
            files.write(study, journal.path.parent)
    return study


def _run(
    grid: Grid,
    blocks: list[Block],
    finished: dict[Key, Columns],
    journal: Journal | None,
    n_jobs: int | None,
    backend: Any,
    progress: bool | Callable[[int, int], None],
) -> None:
    """Run the blocks that are not finished yet, and put each away at once."""
    ways = len(grid.tests)
    missing = [block for block in blocks if block.key not in finished]
    done = grid.n_tests - ways * sum(block.last - block.first for block in missing)
    with reporting(progress, "tests") as report:
        if report is not None:
            report(done, grid.n_tests)
        if not missing:
            return
        with closing(run_all(grid, missing, n_jobs=n_jobs, backend=backend)) as results:
            for key, columns in results:
                if journal is not None:
                    journal.append(key, columns)
                finished[key] = columns
                done += ways * (key[2] - key[1])
                if report is not None:
                    report(done, grid.n_tests)


def _check_sound(grid: Grid, blocks: list[Block], finished: dict[Key, Columns], path: Path) -> None:
    """Refuse finished blocks that are not what a run of this grid writes."""
    for block in blocks:
        if block.key not in finished:
            continue
        found = columns_of(finished[block.key], COLUMNS)
        shape = (len(COLUMNS), len(grid.tests), block.last - block.first)
        sound = False
        if found is not None and found.shape == shape:
            own = dict(zip(COLUMNS, found, strict=True))
            levels, evaluations = own["pvalue"], own["n_evaluations"]
            sound = bool(((levels >= 0) & (levels <= 1) & (np.abs(evaluations) < 2**53)).all())
        if not sound:
            raise InvalidInputError(
                f"`resume` needs a sound journal; got another block {block.key} in {path}. Delete that "
                "line to compute it again, or start over with `force=True`."
            )


def _check_named(grid: Grid) -> None:
    """Refuse functions where results are kept: a name cannot tell a function from its successor."""
    for test in grid.tests:
        if isinstance(test.measure.measure, CustomMeasure):
            raise InvalidInputError(
                f"`folder` needs measures that are values; got the function {test.measure.name!r}, "
                "which may be another one when the study is resumed. Leave `folder` out, or derive a "
                "Measure."
            )


def _checked(folder: Path, *, resume: bool, force: bool) -> Path:
    """Refuse a folder that holds something already, before any work."""
    has_journal = (folder / JOURNAL).exists()
    if has_journal and not (resume or force):
        raise InvalidInputError(
            f"`folder` must not hold a study yet; got {str(folder)!r} with a journal. Continue it "
            "with `resume=True`, or start over with `force=True`."
        )
    others = [name for name in files.NAMES if (folder / name).exists()]
    if others and not has_journal and not force:
        raise InvalidInputError(
            f"`folder` must not hold files that would be replaced; got {str(folder / others[0])!r}. "
            "Choose another folder, or replace them with `force=True`."
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _names(grid: Grid) -> list[dict[str, Any]]:
    """What identifies the tests of a cell and a way of testing, in the order of the table."""
    return [asdict(cell) | test.names() for cell, test in product(grid.cells, grid.tests)]


def _table(
    grid: Grid, blocks: list[Block], finished: dict[Key, Columns]
) -> dict[str, NDArray[Any]]:
    """All tests in the order of the grid, whatever order they were finished in."""
    names = _names(grid)
    table = {
        name: np.repeat(files.as_array([row[name] for row in names]), grid.n_datasets)
        for name in names[0]
    }
    table["dataset"] = np.tile(np.arange(grid.n_datasets), len(names))
    for name in COLUMNS:
        values: list[Any] = [[] for _ in names]
        for block in blocks:
            place = grid.cells.index(block.cell) * len(grid.tests)
            for i, some in enumerate(finished[block.key][name]):
                values[place + i] += some
        kind = np.int64 if name == "n_evaluations" else np.float64
        table[name] = np.array([float(v) for some in values for v in some]).astype(kind)
    for column in table.values():
        column.flags.writeable = False
    return table
