"""Pieces of a study: data sets of a cell, and all their tests."""

from __future__ import annotations

import math
import warnings
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hullcal._compiled.jit import is_compiled
from hullcal._validation import HullcalWarning
from hullcal.algorithm import calibration_test
from hullcal.io.journal import Key
from hullcal.sets import ClassifierSet
from hullcal.simulation import protocols
from hullcal.simulation.grid import Cell, Grid
from hullcal.simulation.specs import Test
from hullcal.simulation.workers import check_pickles, cut, in_any_order

__all__ = ["COLUMNS", "Block", "StudyError", "blocks_of", "run_all", "run_block"]

#: What a test leaves behind.
COLUMNS = ("pvalue", "statistic", "minimum", "n_evaluations")

Columns = dict[str, list[list[Any]]]


class StudyError(RuntimeError):
    """A test failed; the message names the data set on which it did."""


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
        blocks += [Block(cell, first, last) for first, last in cut(grid.n_datasets, seconds)]
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
                        rng=block.cell.test_seed(seed, r),
                    )
                columns["pvalue"][i].append(float(protocol.smallest_level(result)))
                columns["statistic"][i].append(_as_json(result.statistic))
                columns["minimum"][i].append(_as_json(result.minimum))
                columns["n_evaluations"][i].append(int(result.n_evaluations))
        except MemoryError:
            raise
        except Exception as error:
            where = f"data set {r} of {block.cell}" + (f", {current}" if current else "")
            raise StudyError(f"{where}: {type(error).__name__}: {error}") from error
    return block.key, columns


def _as_json(value: float) -> float | str:
    """JSON has no infinity; `float` reads either form."""
    return float(value) if math.isfinite(value) else str(float(value))


def run_all(
    grid: Grid, blocks: Sequence[Block], *, n_jobs: int | None, backend: Any
) -> Generator[tuple[Key, Columns], None, None]:
    """Results of blocks, in whatever order they are finished."""

    def prepare() -> None:
        for test in grid.tests:
            check_pickles(measure=test.measure.measure, minimizer=test.minimizer.minimizer)
        _compile(grid)

    # The grid has made one integer of whatever seed it was given.
    seed: Any = grid.seed
    work = partial(run_block, tests=grid.tests, seed=seed, n_resamples=grid.n_resamples)
    return in_any_order(work, blocks, n_jobs=n_jobs, backend=backend, prepare=prepare)


def _compile(grid: Grid) -> None:
    """Compile here and once, where a notice can be given; workers of this machine find it done."""
    compiled = [test for test in grid.tests if is_compiled(test.measure.measure.value)]
    smallest = min(grid.cells, key=lambda cell: cell.n_samples * cell.n_members * cell.n_classes)
    run_block(Block(smallest, 0, 1), compiled, 0, 1)
