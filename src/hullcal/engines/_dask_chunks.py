"""What a worker does with a chunk of the rows: read and check it once, then add up what is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError, check_set_and_labels
from hullcal.distinct import traits
from hullcal.engines._dask_members import order_of_members
from hullcal.engines._dask_words import placed
from hullcal.engines.jobs import Job, Rows
from hullcal.io.stores import Store

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Checked predictions and labels of consecutive whole ranges."""

    rows: Rows
    notes: tuple[str, ...] = ()

    def __sizeof__(self) -> int:
        # How a worker knows when to move chunks from memory to disk.
        return int(self.rows.probs.nbytes + self.rows.labels.nbytes)


@dataclass(frozen=True, slots=True)
class Reading:
    """How predictions and labels are to be understood."""

    n_samples: int
    #: Names that labels are looked up in; None where labels are positions already.
    classes: tuple[Any, ...] | None
    from_logits: bool
    from_log: bool


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """What the client has to know of a chunk."""

    notes: tuple[str, ...]
    #: By (a, b): -1 or 1 as member a is smaller or larger where the two first differ, 0 if nowhere.
    order: NDArray[np.int8]


def taken(probs: NDArray[Any], labels: NDArray[np.int32], first: int) -> Chunk:
    """A chunk of data that were checked before."""
    return Chunk(Rows(probs, labels, first))


def checked(probs: Any, labels: Any, first: int, reading: Reading) -> Chunk:
    """A chunk of data that nobody has looked at."""
    try:
        predictions, truth = check_set_and_labels(
            probs,
            labels,
            classes=reading.classes,
            from_logits=reading.from_logits,
            from_log=reading.from_log,
        )
    except InvalidInputError as error:
        message = placed(str(error), first, len(probs), reading.n_samples)
        raise InvalidInputError(message) from None
    return Chunk(Rows(np.asarray(predictions.probs), truth, first), predictions.notes)


def read_and_checked(
    store: Store, labels: NDArray[np.int32] | None, first: int, last: int, reading: Reading
) -> Chunk:
    """A chunk that the worker reads for itself; labels that came by another way count."""
    probs, stored = store.read(first, last)
    return checked(probs, stored if labels is None else labels, first, reading)


def summary(chunk: Chunk) -> Summary:
    """Look at the chunk once more, for what only all chunks together can tell."""
    return Summary(chunk.notes, order_of_members(chunk.rows.probs))


def traits_of(chunk: Chunk, positions: NDArray[np.int64]) -> Floats:
    """The chunk's share of the sums that number the distinct members."""
    return traits(chunk.rows.probs, positions)


def sums_over(chunk: Chunk, job: Job, size: int) -> Floats:
    """The job's sums over each range of the chunk, (n_ranges, *job.shape)."""
    rows = chunk.rows
    sums = []
    for begin in range(0, len(rows.labels), size):
        here = slice(begin, begin + size)
        sums.append(job.over(Rows(rows.probs[here], rows.labels[here], rows.first + begin)))
    return np.stack(sums)


def itself(value: Any) -> Any:
    """What came. As a task's result it can be made again, which data that were scattered cannot."""
    return value
