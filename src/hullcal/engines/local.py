"""The engine of one machine: predictions packed for the compiled loops, and threads over replicates."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import F1, F2, F3, I2, INT, L1, driver
from hullcal._compiled.mixing import maximum_likelihood, mix
from hullcal.distinct import Distinct
from hullcal.measures import Measure
from hullcal.sets import ClassifierSet

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]

#: EM steps behind the label-dependent start of a search; a start need not be at the maximum.
START_ITERATIONS = 12
EM_ITERATIONS = 500
#: Probabilities read by one block of replicates.
_BLOCK = 50_000_000
EM_TOLERANCE = 1e-9
#: Bytes of working memory that need no thought.
_ROOM = 2**27
#: Probabilities packed at a time.
_PACKED = 2_000_000


@dataclass(frozen=True, slots=True)
class Objective:
    """g as a function of the weights, for one set of predictions and one or more *cases*.

    A case is a labelling and a weighting of the rows: the data are one case, replicates are others.
    `members` holds the distinct members in an order that does not depend on the user's, as
    (n_members, n_classes, n_samples).
    """

    measure: Measure
    members: Floats
    labels: NDArray[np.int32]
    row_weights: Floats
    parameters: Floats
    offset: Floats

    @property
    def n_members(self) -> int:
        return int(self.members.shape[0])

    @property
    def n_classes(self) -> int:
        return int(self.members.shape[1])

    @property
    def n_samples(self) -> int:
        return int(self.members.shape[2])

    @property
    def n_cases(self) -> int:
        return int(self.labels.shape[0])

    @property
    def sizes(self) -> tuple[int, int]:
        """Floats of state and scratch that the measure's loop needs."""
        return (
            self.measure.state_size(self.n_classes),
            self.measure.scratch_size(self.n_classes, self.n_samples),
        )

    def threads(self, wanted: int) -> int:
        """As many threads as their mixed predictions leave room for in memory.

        A search holds two of them; where they are large, those of all threads together stay within
        a quarter of the members' own size.
        """
        needed = 2 * int(self.members[0].nbytes)
        if wanted * needed <= _ROOM:
            return wanted
        return max(1, min(wanted, int(self.members.nbytes) // (4 * needed)))

    def values(self, weights: Floats, cases: NDArray[np.int64]) -> Floats:
        """g at each row of `weights`, for the case named beside it."""
        out = np.empty(len(weights))
        _values(
            self.measure.value,
            self.members,
            self.labels,
            self.row_weights,
            self.parameters,
            self.offset,
            *self.sizes,
            np.ascontiguousarray(weights),
            cases,
            out,
        )
        return out

    def mixed(self, weights: Floats) -> Floats:
        """The combination itself, (n_classes, n_samples)."""
        out = np.empty(self.members.shape[1:])
        mix(self.members, weights, out)
        return out

    def starts(self) -> Floats:
        """Where a search of each case begins: the mean and a few steps towards maximum likelihood.

        The shape is (n_cases, 2, n_members).
        """
        out = np.full((self.n_cases, 2, self.n_members), 1.0 / self.n_members)
        for labels, row_weights, starts in zip(self.labels, self.row_weights, out, strict=True):
            maximum_likelihood(self.members, labels, row_weights, START_ITERATIONS, -1.0, starts[1])
        return out

    def maximum_likelihood(self) -> Floats:
        """EM weights of the first case."""
        weights = np.empty(self.n_members)
        maximum_likelihood(
            self.members, self.labels[0], self.row_weights[0], EM_ITERATIONS, EM_TOLERANCE, weights
        )
        return weights

    def recentered(self, weights: Floats) -> Objective:
        """The objective whose residual vector has the first case's at `weights` subtracted."""
        mixed = self.mixed(weights)
        return replace(self, offset=self.measure.offset_at(mixed, self.labels[0], self.parameters))

    def with_labels(self, labels: NDArray[np.int32]) -> Objective:
        """The same rows under other labellings."""
        return replace(self, labels=labels, row_weights=np.ones(labels.shape))

    def with_row_weights(self, row_weights: Floats) -> Objective:
        """The first case's labels under other weightings of the rows."""
        labels = np.repeat(self.labels[:1], len(row_weights), axis=0)
        return replace(self, labels=labels, row_weights=row_weights)


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
) -> Floats:
    """Collect block(first, last) over all replicates; the split never changes a value.

    `work` is the number of probabilities that one replicate reads, a guess at its cost.
    """
    # A block takes a fraction of a second: steady progress, prompt interruption, modest memory.
    size = min(-(-n_resamples // (4 * n_jobs)) if n_jobs > 1 else n_resamples, _BLOCK // work)
    out = np.empty(n_resamples)

    def fill(first: int, last: int) -> None:
        out[first:last] = block(first, last)

    run_blocks(fill, n_resamples, max(1, size), n_jobs=n_jobs, progress=progress)
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


@driver(F3, I2, F2, F1, F1, INT, INT, F2, L1, F1)
def _values(  # type: ignore[no-untyped-def]
    value, members, labels, row_weights, parameters, offset, state_size, scratch_size,
    weights, cases, out,
):  # fmt: skip
    mixed = np.empty(members.shape[1:])
    state = np.zeros(state_size)
    scratch = np.zeros(scratch_size)
    for r in range(weights.shape[0]):
        mix(members, weights[r], mixed)
        case = cases[r]
        out[r] = value(mixed, labels[case], row_weights[case], parameters, offset, state, scratch)
