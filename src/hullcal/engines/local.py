"""The engine of one machine: predictions packed for the compiled loops, and threads over replicates."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.mixing import mix
from hullcal.distinct import Distinct
from hullcal.engines.entries import Entries
from hullcal.engines.objective import Objective
from hullcal.measures import Measure
from hullcal.sets import ClassifierSet

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]

#: Probabilities read by one block of replicates.
_BLOCK = 50_000_000
#: Probabilities packed at a time.
_PACKED = 2_000_000


@dataclass(frozen=True, slots=True)
class Problem:
    """An objective for the data, and the way back from distinct members to the user's."""

    objective: Objective
    distinct: Distinct

    @classmethod
    def of(cls, classifiers: ClassifierSet, labels: NDArray[np.int32], measure: Measure) -> Problem:
        """Pack predictions for the compiled loops; identical members become one."""
        distinct = classifiers.distinct
        members = _packed(classifiers.probs, distinct.positions)
        average = np.empty(members.shape[1:])
        mix(members, distinct.copies / len(distinct.owner), average)
        objective = Objective(
            measure=measure,
            members=members,
            labels=np.array(labels[np.newaxis]),
            row_weights=np.ones((1, len(labels))),
            parameters=measure.parameters(average.T),
            offset=measure.no_offset(members.shape[1]),
            entries=Entries.of(members, measure),
        )
        return cls(objective, distinct)

    def notes(self) -> tuple[str, ...]:
        """What the data say that a user should hear."""
        objective = self.objective
        rows = np.arange(objective.n_samples)
        chances = objective.members[:, objective.labels[0], rows].max(axis=0)
        impossible = int((chances == 0.0).sum())
        if impossible == 0:
            return ()
        return (
            f"every member gives the label of {impossible} rows probability 0, so the log score of "
            "every combination is infinite; likelihoods leave these rows out",
        )


def _packed(probs: NDArray[np.floating], positions: NDArray[np.int64]) -> Floats:
    """The members at these positions as (n_members, n_classes, n_samples) in float64.

    Rows come last, since they are the inner loop of everything that follows. A memory map is read
    once, block by block, and its pages are let go: a file as large as memory will do.
    """
    n_samples, _, n_classes = probs.shape
    members = np.empty((len(positions), n_classes, n_samples))
    size = max(1, _PACKED // (probs.shape[1] * n_classes))
    for first in range(0, n_samples, size):
        _let_go(probs)
        rows = slice(first, min(first + size, n_samples))
        block = probs[rows]
        for m, position in enumerate(positions):
            members[m, :, rows] = block[:, position, :].T
    _let_go(probs)
    return members


def _let_go(array: NDArray[np.floating]) -> None:
    """Give back the pages of a memory map that have been read, where the system can."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def run_replicates(
    block: Callable[[int, int], Floats],
    n_resamples: int,
    work: int,
    *,
    n_jobs: int,
    progress: Progress | None,
    wave: int | None = None,
    enough: Callable[[Floats], int | None] | None = None,
) -> Floats:
    """Collect block(first, last) over all replicates; the split never changes a value.

    `work` is the number of probabilities that one replicate reads, a guess at its cost. After every
    `wave` of replicates `enough` is asked how many of them will do; None asks for more.
    """
    # A block takes a fraction of a second: steady progress, prompt interruption, modest memory.
    size = min(-(-n_resamples // (4 * n_jobs)) if n_jobs > 1 else n_resamples, _BLOCK // work)
    out = np.empty(n_resamples)
    wave = wave or max(1, n_resamples)
    for begin in range(0, n_resamples, wave):
        end = min(begin + wave, n_resamples)

        def fill(first: int, last: int, begin: int = begin) -> None:
            out[begin + first : begin + last] = block(begin + first, begin + last)

        def report(done: int, _: int, begin: int = begin) -> None:
            if progress is not None:
                progress(begin + done, n_resamples)

        # A wave is shared out among the threads, too.
        most = max(1, min(size, -(-(end - begin) // n_jobs)))
        run_blocks(fill, end - begin, most, n_jobs=n_jobs, progress=report)
        kept = enough(out[:end]) if enough is not None else None
        if kept is not None:
            report(n_resamples - begin, 0)
            return out[:kept]
    return out


def run_blocks(
    block: Callable[[int, int], None],
    n_items: int,
    size: int,
    *,
    n_jobs: int,
    progress: Progress | None = None,
) -> None:
    """Call block(first, last) over all items, `size` of them at a time, on threads."""
    bounds = [(first, min(first + size, n_items)) for first in range(0, n_items, size)]

    def run(bound: tuple[int, int]) -> int:
        block(*bound)
        return bound[1] - bound[0]

    done = 0
    if n_jobs == 1:
        for bound in bounds:
            done += run(bound)
            if progress is not None:
                progress(done, n_items)
        return
    with ThreadPoolExecutor(n_jobs) as pool:
        try:
            for count in pool.map(run, bounds):
                done += count
                if progress is not None:
                    progress(done, n_items)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
