"""The engine of one machine: predictions packed for the compiled loops, and threads over replicates."""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.mixing import mix
from hullcal.engines.engine import Data, Engine, Problem
from hullcal.engines.entries import MANY_CLASSES, Entries
from hullcal.engines.jobs import Job, Rows, range_size
from hullcal.engines.packed import Packed
from hullcal.engines.streamed import Passes, Streamed
from hullcal.io.source import available
from hullcal.measures import Measure
from hullcal.sets import ClassifierSet

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]
Item = TypeVar("Item")
Result = TypeVar("Result")

#: From so many rows and probabilities on data are not packed, but read where they are. With many
#: classes they are packed for as long as they take no more than this share of the memory that is left:
#: a search then looks at a few entries of them.
_MANY_ROWS, _LARGE, _SHARE = 100_000, 2**22, 0.5

#: Probabilities packed at a time.
_PACKED = 2_000_000


@dataclass(frozen=True, slots=True)
class Local(Engine):
    """This machine: compiled loops over packed predictions, or passes over data too large for that."""

    name: ClassVar[str] = "local"

    @contextmanager
    def open(
        self, probs: Any, labels: Any, *, classes: Any, from_logits: bool, from_log: bool
    ) -> Iterator[Data]:
        data = LocalData(
            *ClassifierSet.with_labels(
                probs, labels, classes=classes, from_logits=from_logits, from_log=from_log
            )
        )
        yield data
        data.forget()


class LocalData(Data):
    """A set of classifiers and the labels of its rows."""

    def __init__(self, classifiers: ClassifierSet, labels: NDArray[np.int32]) -> None:
        self.n_samples = classifiers.n_samples
        self.n_members = classifiers.n_members
        self.n_classes = classifiers.n_classes
        self.members, self.notes = classifiers.members, classifiers.notes
        self.classifiers, self.labels = classifiers, labels
        self.fits_memory = _fits(classifiers)
        # Several tests of the same data share what is packed for the first.
        self._packed: Problem | None = None

    def forget(self) -> None:
        """Let go of what was packed; it can be packed again."""
        self._packed = None

    def check(self, measure: Measure, *, in_memory: bool, draws_rows: bool) -> None:
        """Let everything pass: data in memory can be asked for anything."""

    def problem(self, measure: Measure, *, in_memory: bool, n_jobs: int) -> Problem:
        classifiers, labels = self.classifiers, self.labels
        assert classifiers is not None
        assert labels is not None
        if in_memory or not measure.streams() or not _stays_in_place(classifiers):
            if self._packed is None or self._packed.packed.measure != measure:
                members = None if self._packed is None else self._packed.packed.members
                self._packed = packed_problem(classifiers, labels, measure, members)
            return self._packed
        distinct = classifiers.distinct
        passes = ArrayPasses(classifiers.probs, labels, distinct.positions, n_jobs)
        return Problem(Streamed.of(measure, passes), distinct)


def _stays_in_place(classifiers: ClassifierSet) -> bool:
    size = classifiers.probs.size
    if classifiers.n_samples < _MANY_ROWS or size < _LARGE:
        return False
    if classifiers.n_classes < MANY_CLASSES:
        return True
    return not _fits(classifiers)


def _fits(classifiers: ClassifierSet) -> bool:
    size = classifiers.probs.size
    if size < _LARGE:
        return True
    left = available()
    return left is None or 8 * size <= _SHARE * left


def packed_problem(
    classifiers: ClassifierSet,
    labels: NDArray[np.int32],
    measure: Measure,
    members: Floats | None = None,
) -> Problem:
    """Pack predictions for the compiled loops, unless they are; identical members become one."""
    distinct = classifiers.distinct
    if members is None:
        members = _packed(classifiers.probs, distinct.positions)
    average = np.empty(members.shape[1:])
    mix(members, distinct.copies / len(distinct.owner), average)
    packed = Packed(
        measure=measure,
        members=members,
        labels=np.array(labels[np.newaxis]),
        row_weights=np.ones((1, len(labels))),
        parameters=measure.parameters(average.T),
        offset=measure.no_offset(members.shape[1]),
        entries=Entries.of(members, measure),
    )
    return Problem(packed, distinct)


class ArrayPasses(Passes):
    """Threads over ranges of the rows of an array, which is read where it is."""

    def __init__(
        self,
        probs: NDArray[np.floating],
        labels: NDArray[np.int32],
        positions: NDArray[np.int64],
        n_jobs: int,
    ) -> None:
        self.n_samples, _, self.n_classes = probs.shape
        self.positions = positions
        self._probs, self._labels, self._n_jobs = probs, labels, n_jobs
        # Those that threads work on, and those that wait to be added.
        self.n_returned = 2 * n_jobs

    def total(self, job: Job) -> Floats:
        size = range_size(self.n_samples)

        def over(first: int) -> Floats:
            rows = slice(first, first + size)
            return job.over(Rows(self._probs[rows], self._labels[rows], first))

        total = np.zeros(job.shape)
        # In order, so that the number of threads cannot change a bit.
        for sums in in_order(over, range(0, self.n_samples, size), n_jobs=self._n_jobs):
            total += sums
        return total


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
    together: int,
    *,
    n_jobs: int,
    progress: Progress | None,
    wave: int | None = None,
    enough: Callable[[Floats], int | None] | None = None,
) -> Floats:
    """Collect block(first, last), (last - first, 2), over all replicates; no split changes a value.

    A block has at most `together` of them. After every `wave` of replicates `enough` is asked how
    many of them will do; None asks for more.
    """
    size = min(-(-n_resamples // (4 * n_jobs)) if n_jobs > 1 else n_resamples, together)
    out = np.empty((n_resamples, 2))
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
        kept = enough(out[:end, 0]) if enough is not None else None
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
    done = 0
    for _, (first, last) in zip(
        in_order(lambda b: block(*b), bounds, n_jobs=n_jobs), bounds, strict=True
    ):
        done += last - first
        if progress is not None:
            progress(done, n_items)


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], *, n_jobs: int
) -> Iterator[Result]:
    """function(item) of every item, on threads; results come in the order of the items."""
    if n_jobs == 1:
        yield from map(function, items)
        return
    # No further ahead than keeps the threads busy: what waits takes memory, and what was begun must
    # end before an interruption can.
    begun: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(n_jobs) as pool:
        try:
            for item in items:
                if len(begun) == 2 * n_jobs:
                    yield begun.popleft().result()
                begun.append(pool.submit(function, item))
            while begun:
                yield begun.popleft().result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
