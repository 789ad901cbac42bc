"""From what users pass to a set with its labels, wherever it is, and from there to objectives."""

from __future__ import annotations

import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.mixing import mix
from hullcal._validation import InvalidInputError, check_whole
from hullcal.distinct import Distinct
from hullcal.io.source import available
from hullcal.measures import Measure
from hullcal.notes import Note
from hullcal.objectives.base import Floats, Objective
from hullcal.objectives.chunked import ArrayPasses, Chunked, Passes
from hullcal.objectives.entries import MANY_CLASSES, Entries
from hullcal.objectives.memory import InMemory
from hullcal.sets import ClassifierSet

if TYPE_CHECKING:
    from distributed import Client


#: From so many rows and probabilities on data are not packed, but read where they are. With many
#: classes they are packed for as long as they take no more than this share of the memory that is left:
#: a search then looks at a few entries of them.
_MANY_ROWS, _LARGE, _SHARE = 100_000, 2**22, 0.5
#: Probabilities packed at a time.
_PACKED = 2_000_000


class LabelledSet(ABC):
    """A checked set of classifiers and the labels of its rows, wherever they are."""

    n_samples: int
    n_members: int
    n_classes: int
    members: tuple[str, ...] | None
    distinct: Distinct
    #: What was done to the input on the way in.
    notes: tuple[Note, ...]
    #: The set itself and its labels, where they are in memory.
    classifiers: ClassifierSet | None = None
    labels: NDArray[np.int32] | None = None
    #: Whether predictions can be packed in memory.
    fits_memory: bool

    @abstractmethod
    def check(self, measure: Measure, *, in_memory: bool) -> None:
        """Refuse before any work what cannot be asked of these data.

        `in_memory` says that a search or a null needs the predictions themselves.
        """

    @abstractmethod
    def passes(self, n_jobs: int) -> Passes:
        """Passes over the rows, for likelihoods."""

    @abstractmethod
    def objective(self, measure: Measure, *, in_memory: bool, n_jobs: int) -> Objective:
        """λ ↦ g(p_λ, D), for what `check` let pass."""


@contextmanager
def open_set(
    probs: Any,
    labels: Any,
    *,
    engine: str | Client | None = None,
    **options: Any,
) -> Iterator[LabelledSet]:
    """Check the data, by options of `ClassifierSet`, and hold them as long as the context lasts."""
    if engine not in (None, "local", "dask") and not comes_from("distributed", engine):
        raise InvalidInputError(
            '`engine` must be None, "local", "dask" or a `distributed.Client`; got '
            f"{engine!r:.80}. Leave it out."
        )
    several = isinstance(probs, list | tuple) and len(probs) > 0
    if engine != "local" and (
        engine is not None or comes_from("dask", probs[0] if several else probs)
    ):
        from hullcal.objectives.dask import on_workers

        client = None if engine in (None, "dask") else engine
        with on_workers(probs, labels, client=client, **options) as data:
            yield data
        return
    if isinstance(probs, str | os.PathLike):
        raise InvalidInputError(
            f"`probs` must be an array unless workers read it; got the path {str(probs)!r}. Read "
            'the file with `hullcal.io.read`, or test it with `engine="dask"`.'
        )
    local = LocalSet(*ClassifierSet.with_labels(probs, labels, **options))
    yield local
    # What was packed can be packed again.
    local.packed = None


def comes_from(package: str, value: Any) -> bool:
    """Whether a value's class is of a package, which need not be imported to tell."""
    return type(value).__module__.partition(".")[0] == package


class LocalSet(LabelledSet):
    """A set in the memory of this machine, or mapped into it."""

    classifiers: ClassifierSet
    labels: NDArray[np.int32]

    def __init__(self, classifiers: ClassifierSet, labels: NDArray[np.int32]) -> None:
        self.n_samples, self.n_members, self.n_classes = classifiers.probs.shape
        self.members, self.notes = classifiers.members, classifiers.notes
        self.distinct = classifiers.distinct
        self.classifiers, self.labels = classifiers, labels
        left = None if classifiers.probs.size < _LARGE else available()
        self.fits_memory = left is None or 8 * classifiers.probs.size <= _SHARE * left
        #: Several tests of the same data share what is packed for the first.
        self.packed: InMemory | None = None

    def check(self, measure: Measure, *, in_memory: bool) -> None:
        """Let everything pass: data in memory can be asked for anything."""

    def passes(self, n_jobs: int) -> ArrayPasses:
        return ArrayPasses(self.classifiers.probs, self.labels, self.distinct.positions, n_jobs)

    def objective(self, measure: Measure, *, in_memory: bool, n_jobs: int) -> Objective:
        large = self.n_samples >= _MANY_ROWS and self.classifiers.probs.size >= _LARGE
        stays = large and not (self.n_classes >= MANY_CLASSES and self.fits_memory)
        if stays and not in_memory and measure.streams():
            return Chunked.of(measure, self.distinct.copies, self.passes(n_jobs))
        if self.packed is None or self.packed.measure != measure:
            members = None if self.packed is None else self.packed.members
            self.packed = packed(self.classifiers, self.labels, measure, members)
        return self.packed


def packed(
    classifiers: ClassifierSet,
    labels: NDArray[np.int32],
    measure: Measure,
    members: Floats | None = None,
) -> InMemory:
    """Predictions for the compiled loops, packed unless they are; identical members become one."""
    distinct = classifiers.distinct
    if members is None:
        members = _rows_last(classifiers.probs, distinct.positions)
    average = np.empty(members.shape[1:])
    mix(members, distinct.copies / len(distinct.owner), average)
    return InMemory(
        measure=measure,
        copies=distinct.copies,
        members=members,
        labels=np.array(labels[np.newaxis]),
        row_weights=np.ones((1, len(labels))),
        parameters=measure.parameters(average.T),
        offset=measure.no_offset(members.shape[1]),
        entries=Entries.of(members, measure),
    )


def _rows_last(probs: NDArray[np.floating], positions: NDArray[np.int64]) -> Floats:
    """The members at these positions as (n_members, n_classes, n_samples) in float64.

    Rows come last, since they are the inner loop of everything that follows. A memory map is read
    once, block by block, and its pages are let go: a file may be as large as memory.
    """
    n_samples, _, n_classes = probs.shape
    members = np.empty((len(positions), n_classes, n_samples))
    size = max(1, _PACKED // (probs.shape[1] * n_classes))
    for first in range(0, n_samples, size):
        mapped = check_whole(probs)
        rows = slice(first, min(first + size, n_samples))
        block = probs[rows]
        for m, position in enumerate(positions):
            members[m, :, rows] = block[:, position, :].T
        if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)
    return members
