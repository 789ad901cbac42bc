"""Pieces of a study, and the processes that work on them."""

from __future__ import annotations

import importlib
import itertools
import math
import multiprocessing
import pickle
import signal
import threading
import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hullcal._compiled.jit import is_compiled
from hullcal._validation import HullcalWarning, InvalidInputError
from hullcal.algorithm import calibration_test
from hullcal.files.journal import Key
from hullcal.sets import ClassifierSet
from hullcal.simulation import protocols
from hullcal.simulation.grid import Cell, Grid
from hullcal.simulation.specs import Test

__all__ = ["COLUMNS", "Block", "StudyError", "WorkerDied", "blocks_of", "run_all", "run_block"]

#: What a test leaves behind.
COLUMNS = ("pvalue", "statistic", "n_evaluations")
#: Seconds a block should take: long beside its way to a worker, short beside what a crash may cost.
_SECONDS = 1.0
_MOST = 100

Columns = dict[str, list[list[Any]]]


class StudyError(RuntimeError):
    """A test failed; the message names the data set on which it did."""


class WorkerDied(BrokenExecutor):
    """A worker was killed, ran out of memory or was lost; what is in the journal is sound."""


@dataclass(frozen=True)
class Block:
    """Data sets first, ..., last - 1 of a cell, with all their tests."""

    cell: Cell
    first: int
    last: int

    @property
    def key(self) -> Key:
        """What the journal knows it by."""
        return self.cell.key, self.first, self.last


def blocks_of(grid: Grid) -> list[Block]:
    """The whole study in pieces of about a second; they depend on the grid alone."""
    blocks = []
    for cell in grid.cells:
        sizes = (cell.n_samples, cell.n_members, cell.n_classes)
        drawing = 3e-7 * cell.n_samples * cell.n_members * cell.n_classes
        seconds = drawing + sum(test.cost(*sizes, grid.n_resamples) for test in grid.tests)
        size = min(_MOST, max(1, round(_SECONDS / seconds)))
        blocks += [
            Block(cell, first, min(first + size, grid.n_datasets))
            for first in range(0, grid.n_datasets, size)
        ]
    return blocks


def run_block(
    block: Block, tests: Sequence[Test], seed: int, n_resamples: int
) -> tuple[Key, Columns]:
    """Draw the data sets of a block and test them; a list of values for every test."""
    protocol = protocols.resolve(block.cell.protocol)
    columns: Columns = {name: [[] for _ in tests] for name in COLUMNS}
    for r in range(block.first, block.last):
        current: Test | None = None
        try:
            data = block.cell.draw(seed, r)
            classifiers = ClassifierSet(data.probs)
            for i, current in enumerate(tests):
                measure, null, search = current.parts(protocol)
                with warnings.catch_warnings():
                    # The grid has said once what is to be said.
                    warnings.simplefilter("ignore", HullcalWarning)
                    result = calibration_test(
                        classifiers,
                        data.labels,
                        measure=measure,
                        null=null,
                        minimizer=search,
                        n_resamples=n_resamples,
                        alpha=0.5,
                        # A quantile needs all null values, a p-value only those above the statistic.
                        pvalue_only=not protocol.interpolated_quantile,
                        rng=block.cell.test_seed(seed, r),
                    )
                columns["pvalue"][i].append(float(protocol.smallest_level(result)))
                columns["statistic"][i].append(_as_json(result.statistic))
                columns["n_evaluations"][i].append(int(result.n_evaluations))
        except MemoryError:
            raise
        except Exception as error:
            where = f"data set {r} of {block.cell}" + (f", {current}" if current else "")
            raise StudyError(f"{where}: {type(error).__name__}: {error}") from error
    return block.key, columns


def in_worker(block: Block, tests: Sequence[Test], seed: int, n_resamples: int) -> Any:
    """The same where the process may be a worker's."""
    leave_interrupts_to_the_parent()
    return run_block(block, tests, seed, n_resamples)


def leave_interrupts_to_the_parent() -> None:
    """In a worker, ignore the Ctrl-C of a terminal: the parent ends its workers in good order."""
    worker = multiprocessing.current_process().name != "MainProcess"
    if worker and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _as_json(value: float) -> float | str:
    """JSON has no infinity; `float` reads either form."""
    return float(value) if math.isfinite(value) else str(float(value))


def run_all(
    grid: Grid, blocks: Sequence[Block], *, n_jobs: int | None, backend: Any
) -> Generator[tuple[Key, Columns], None, None]:
    """Results of blocks, in whatever order they are finished."""
    import joblib

    how = {} if n_jobs is None else {"n_jobs": n_jobs}
    with _chosen(backend):
        parallel = joblib.Parallel(batch_size=1, **how)
        task = joblib.delayed(run_block if parallel.n_jobs == 1 else in_worker)
        tasks = [task(block, grid.tests, grid.seed, grid.n_resamples) for block in blocks]
        if parallel.n_jobs != 1:
            for test in grid.tests:
                check_pickles(measure=test.measure.measure, minimizer=test.minimizer.minimizer)
            _compile(grid)
        results: Any
        try:
            # Not in their own order: a slow block must not keep others from the journal.
            results = joblib.Parallel(batch_size=1, return_as="generator_unordered", **how)(tasks)
        except ValueError:
            # Backends made from multiprocessing, as ray's is, give all results of a call at once.
            results = _in_rounds(parallel, tasks)
    try:
        while True:
            try:
                result = next(results)
            except StopIteration:
                return
            except Exception as error:
                if not _is_loss(error):
                    raise
                raise WorkerDied(
                    f"a worker was lost ({type(error).__name__}: {_first_line(error)})"
                ) from error
            yield result
    finally:
        with warnings.catch_warnings():
            # Whoever stops early knows that results are lost.
            warnings.simplefilter("ignore")
            results.close()


@contextmanager
def _chosen(backend: Any) -> Iterator[None]:
    """Let joblib use a backend, or the one of the user's own `joblib.parallel_config`."""
    import joblib

    if backend is None:
        yield
        return
    try:
        if backend == "ray":
            # joblib finds dask by itself; ray has to introduce itself.
            importlib.import_module("ray.util.joblib").register_ray()
        config = joblib.parallel_config(backend=backend)
    except (ValueError, ImportError) as error:
        raise InvalidInputError(
            f"`backend` must be one that joblib knows and can start; got {backend!r} ({error})."
        ) from error
    with config:
        yield


def _in_rounds(parallel: Any, tasks: Iterable[Any]) -> Iterator[tuple[Key, Columns]]:
    waiting = iter(tasks)
    with parallel:
        while some := list(itertools.islice(waiting, 4 * max(1, parallel.n_jobs))):
            yield from parallel(some)


def _compile(grid: Grid) -> None:
    """Compile here and once, where a notice can be given; workers of this machine find it done."""
    compiled = [test for test in grid.tests if is_compiled(test.measure.measure.value)]
    smallest = min(grid.cells, key=lambda cell: cell.n_samples * cell.n_members * cell.n_classes)
    run_block(Block(smallest, 0, 1), compiled, 0, 1)


def check_pickles(**parts: Any) -> None:
    """Refuse what no process could be sent, before any is started; parts by their parameter."""
    from joblib.externals.loky.backend import reduction

    for parameter, part in parts.items():
        try:
            reduction.dumps(part)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise InvalidInputError(
                f"`{parameter}` {part.name} must be one that other processes can be sent; got {error}. "
                "Define it at the top of a module, or pass `n_jobs=1`."
            ) from error


def _is_loss(error: Exception) -> bool:
    """Whether an exception speaks of a lost worker, and not of the work."""
    lost = (BrokenExecutor, CancelledError, ConnectionError, EOFError, TimeoutError)
    cluster = type(error).__module__.partition(".")[0] in ("distributed", "ray")
    return isinstance(error, lost) or cluster


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0][:200]
