"""Where predictions come from, and how they become chunks on the workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import check_classes, check_labels, check_probs
from hullcal._validation.axes import reordering
from hullcal._validation.errors import refusal
from hullcal._validation.labels import label_array
from hullcal.distinct import Distinct
from hullcal.engines._dask_chunks import Reading, checked, itself, read_and_checked, taken
from hullcal.engines.engine import is_dask
from hullcal.io.stores import Store, is_path, open_store
from hullcal.sets import ClassifierSet

#: First and last row, the last not included.
Bounds = tuple[int, int]

#: Bytes of a chunk that workers read for themselves.
_CHUNK = 2**27


@dataclass(frozen=True, kw_only=True, eq=False)
class Origin(ABC):
    """Predictions of known shape."""

    #: (n_samples, n_members, n_classes)
    shape: tuple[int, int, int]
    members: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    #: Known before any chunk is looked at, for predictions that are here.
    distinct: Distinct | None = None
    #: Set and labels, if they are in the client's memory.
    here: tuple[ClassifierSet, NDArray[np.int32]] | tuple[None, None] = (None, None)

    @abstractmethod
    def rows_at_a_time(self, n_threads: int) -> int:
        """About how many rows a chunk should have."""

    @abstractmethod
    def chunks(self, client: Any, bounds: Sequence[Bounds]) -> list[Any]:
        """Futures of checked chunks, which can all be made again if a worker dies."""


def origin_of(
    probs: Any, labels: Any, *, classes: Any, from_logits: bool, from_log: bool
) -> Origin:
    """Find out what predictions are, and check all that can be checked without reading them."""
    flags = {"from_logits": from_logits, "from_log": from_log}
    probs = _stacked(probs)
    if is_path(probs) or isinstance(probs, Store):
        store = probs if isinstance(probs, Store) else open_store(probs)
        known = store.classes if classes is None else classes
        truth = _Labels.of(labels, store.shape, store.dtype, known, flags, stored=store.labelled)
        return _Stored(shape=truth.shape, members=store.members, store=store, labels=truth)
    if is_dask(probs):
        _check_known(probs, "probs")
        truth = _Labels.of(labels, probs.shape, probs.dtype, classes, flags)
        return _Lazy(shape=truth.shape, probs=probs, labels=truth)
    # What is in memory here is checked here, with nothing left to say about chunks.
    here, positions = ClassifierSet.with_labels(probs, labels, classes=classes, **flags)
    shape = here.n_samples, here.n_members, here.n_classes
    return _Here(
        shape=shape,
        members=here.members,
        notes=here.notes,
        distinct=here.distinct,
        here=(here, positions),
        probs=here.probs,
        labels=positions,
    )


@dataclass(frozen=True, eq=False)
class _Labels:
    """Labels beside predictions that are elsewhere, and how both are to be understood."""

    shape: tuple[int, int, int]
    reading: Reading
    #: Checked positions, if the labels are here.
    here: NDArray[np.int32] | None = None
    #: A dask array, if they are not; neither, if they are in the store.
    lazy: Any = None

    @classmethod
    def of(
        cls,
        labels: Any,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        classes: Any,
        flags: dict[str, bool],
        *,
        stored: bool = False,
    ) -> _Labels:
        _check_shape(shape, dtype, flags)
        n_samples, n_classes = shape[0], shape[-1]
        three = (n_samples, shape[1] if len(shape) == 3 else 1, n_classes)
        reading = Reading(n_samples, check_classes(classes, n_classes), **flags)
        if labels is None and stored:
            return cls(three, reading)
        if is_dask(labels):
            _check_known(labels, "labels")
            _check_length(shape, labels.shape)
            return cls(three, reading, lazy=labels)
        given = label_array(labels)
        _check_length(shape, given.shape)
        here = check_labels(given, n_samples=n_samples, n_classes=n_classes, classes=classes)
        return cls(three, Reading(n_samples, None, **flags), here=here)

    def of_rows(self, client: Any, bounds: Sequence[Bounds]) -> list[Any]:
        """Labels of each chunk: futures, delayed values, or None where the store has them."""
        if self.here is not None:
            parts = [self.here[first:last] for first, last in bounds]
            return [client.submit(itself, part, pure=False) for part in parts]
        if self.lazy is None:
            return [None] * len(bounds)
        return _blocks(self.lazy, bounds)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Here(Origin):
    """Predictions in the client's memory."""

    probs: NDArray[Any]
    labels: NDArray[np.int32]

    def rows_at_a_time(self, n_threads: int) -> int:
        return _rows(self.shape, self.probs.itemsize, n_threads)

    def chunks(self, client: Any, bounds: Sequence[Bounds]) -> list[Any]:
        import dask

        # As arguments of their tasks, which the scheduler keeps: scattered data die with a worker.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return [
                client.submit(taken, self.probs[a:b], self.labels[a:b], a, pure=False)
                for a, b in bounds
            ]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Stored(Origin):
    """Predictions in files that workers read for themselves."""

    store: Store
    labels: _Labels = field(repr=False)

    def rows_at_a_time(self, n_threads: int) -> int:
        return _rows(self.shape, self.store.dtype.itemsize, n_threads)

    def chunks(self, client: Any, bounds: Sequence[Bounds]) -> list[Any]:
        labels = client.compute(self.labels.of_rows(client, bounds))
        return [
            client.submit(
                read_and_checked, self.store, truth, a, b, self.labels.reading, pure=False
            )
            for (a, b), truth in zip(bounds, labels, strict=True)
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Lazy(Origin):
    """Predictions that a dask array will compute."""

    probs: Any
    labels: _Labels = field(repr=False)

    def rows_at_a_time(self, n_threads: int) -> int:
        return int(max(self.probs.chunks[0]))

    def chunks(self, client: Any, bounds: Sequence[Bounds]) -> list[Any]:
        from dask.delayed import delayed

        check = delayed(checked, pure=False)
        parts = zip(
            _blocks(self.probs, bounds),
            self.labels.of_rows(client, bounds),
            bounds,
            strict=True,
        )
        promised = [check(p, y, first, self.labels.reading) for p, y, (first, _) in parts]
        return list(client.compute(promised))


def _blocks(array: Any, bounds: Sequence[Bounds]) -> list[Any]:
    """Cut an array at these rows only; where it is cut so already, nothing moves."""
    rows = tuple(last - first for first, last in bounds)
    whole = array.rechunk((rows, *((length,) for length in array.shape[1:])))
    return list(whole.to_delayed().ravel())


def _rows(shape: tuple[int, int, int], itemsize: int, n_threads: int) -> int:
    """Chunks of a moderate size, and enough of them for all threads."""
    n_samples, n_members, n_classes = shape
    return min(_CHUNK // (n_members * n_classes * itemsize), -(-n_samples // (2 * n_threads)))


def _stacked(probs: Any) -> Any:
    """A list of members, each a dask array, as one."""
    if not isinstance(probs, list | tuple) or not probs or not all(map(is_dask, probs)):
        return probs
    import dask.array

    return dask.array.stack(probs, axis=1)


def _check_known(array: Any, name: str) -> None:
    if not hasattr(array, "chunks") or not hasattr(array, "rechunk"):
        came = f"a {type(array).__module__} {type(array).__name__}"
        raise refusal(name, "must be an array", came, "Pass `.to_dask_array(lengths=True)` of it.")
    if any(np.isnan(length) for length in array.shape):
        came = f"shape {array.shape}"
        repair = "Call its `compute_chunk_sizes()` first."
        raise refusal(name, "must be an array of known shape", came, repair)


def _check_shape(shape: tuple[int, ...], dtype: np.dtype[Any], flags: dict[str, bool]) -> None:
    """Have the usual checks refuse what no look at the values could mend."""
    useless = len(shape) not in (2, 3) or 0 in shape or shape[-1] == 1
    if useless or dtype.kind not in "fiub":
        check_probs(np.broadcast_to(np.zeros((), dtype=dtype), shape))
    if any(flag is not False for flag in flags.values()):
        n_classes = shape[-1]
        check_probs(np.full((1, n_classes), -np.log(n_classes)), **flags)


def _check_length(probs: tuple[int, ...], labels: tuple[int, ...]) -> None:
    if labels[:1] == probs[:1]:
        return
    rule = "and `labels` must have the same number of samples, on the first axis"
    came = f"`probs` of shape {probs} and `labels` of shape {labels}"
    fitting = [axis for axis in range(1, len(probs)) if labels and probs[axis] == labels[0]]
    repair = "Pass predictions and labels of the same rows."
    if fitting:
        repair = f"The order that fits is `{reordering(len(probs), fitting[0], None)}`."
    raise refusal("probs", rule, came, repair)
