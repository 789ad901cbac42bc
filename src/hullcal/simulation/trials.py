"""Which of many simulated data sets does a test reject? Counted in pieces, by one process or several."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hullcal._validation import HullcalWarning
from hullcal.algorithm import calibration_test
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.nulls import Null
from hullcal.simulation.blocks import StudyError
from hullcal.simulation.miscalibration import Alternative
from hullcal.simulation.specs import MeasureSpec, MinimizerSpec, Test
from hullcal.simulation.workers import cut, in_any_order

__all__ = ["Trials", "run_trials"]

#: What streams are for.
_DATA, _TEST = 0, 1

#: Number of rows, first data set, and the one after the last.
Block = tuple[int, int, int]


@dataclass(frozen=True)
class Trials:
    """Data sets of an alternative, and the test that each is put to."""

    alternative: Alternative
    measure: Measure
    null: Null
    minimizer: Minimizer
    n_resamples: int
    alpha: float
    seed: int

    def rejections(self, block: Block) -> tuple[Block, int]:
        """How many of the data sets first, ..., last - 1 of so many rows are rejected."""
        n_samples, first, last = block
        return block, sum(self._rejected(n_samples, r) for r in range(first, last))

    def _rejected(self, n_samples: int, r: int) -> bool:
        try:
            rng = np.random.default_rng(self._stream(n_samples, r, _DATA))
            probs, labels = self.alternative.draw(n_samples, rng)
            words = self._stream(n_samples, r, _TEST).generate_state(4)
            with warnings.catch_warnings():
                # What is to be said was said at the door.
                warnings.simplefilter("ignore", HullcalWarning)
                return calibration_test(
                    probs,
                    labels,
                    measure=self.measure,
                    null=self.null,
                    minimizer=self.minimizer,
                    n_resamples=self.n_resamples,
                    alpha=self.alpha,
                    rng=sum(int(word) << (32 * i) for i, word in enumerate(words)),
                ).rejected
        except MemoryError:
            raise
        except Exception as error:
            where = f"data set {r} of {n_samples} rows"
            raise StudyError(f"{where}: {type(error).__name__}: {error}") from error

    def _stream(self, n_samples: int, r: int, purpose: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.seed, spawn_key=(n_samples, r, purpose))


def _blocks(trials: Trials, sizes: Sequence[int], n_datasets: int) -> list[Block]:
    """All work in pieces; the largest first, so that no worker is left with one in the end."""
    test = Test(
        measure=MeasureSpec(trials.measure),
        null=trials.null.name,
        minimizer=MinimizerSpec(trials.minimizer),
    )
    _, n_members, n_classes = trials.alternative.probs.shape
    blocks = []
    for n_samples in reversed(sizes):
        seconds = test.cost(n_samples, n_members, n_classes, trials.n_resamples)
        blocks += [(n_samples, first, last) for first, last in cut(n_datasets, seconds)]
    return blocks


def run_trials(
    trials: Trials, sizes: Sequence[int], n_datasets: int, n_jobs: int
) -> Generator[tuple[Block, int], None, None]:
    """Rejections in pieces of the work, in whatever order they are finished."""
    blocks = _blocks(trials, sizes, n_datasets)
    if n_jobs == 1:
        yield from map(trials.rejections, blocks)
        return

    def prepare() -> None:
        # Compile here and once, where a notice can be given; workers find it done.
        replace(trials, n_resamples=1).rejections((blocks[-1][0], 0, 1))

    yield from in_any_order(trials.rejections, blocks, n_jobs=n_jobs, prepare=prepare)
