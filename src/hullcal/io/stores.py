"""Predictions in files that are read some rows at a time, wherever the rows are needed."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal.io.array_files import ARRAYS, StoredArray, open_arrays
from hullcal.io.forms import Wide
from hullcal.io.reading import Parts
from hullcal.io.source import Source
from hullcal.io.tables import TABLES

__all__ = ["Store", "is_path", "open_store"]

Array = NDArray[Any]

_SHARDS = (*(suffix for suffix in ARRAYS if suffix != ".zarr"), ".parquet")
#: What makes a folder a Zarr store, in the versions 3 and 2 of the format.
_ZARR = ("zarr.json", ".zgroup", ".zarray")
_AGREE = ("dtype", "labelled", "classes", "members", "label_kind")


@dataclass(frozen=True, kw_only=True)
class Store(ABC):
    """Predictions that somebody else will read; small, and made to be sent to workers."""

    #: (n_samples, n_members, n_classes), or (n_samples, n_classes) for one member.
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    #: Whether there are labels beside the predictions.
    labelled: bool
    classes: tuple[Any, ...] | None = None
    members: tuple[str, ...] | None = None

    @property
    def n_samples(self) -> int:
        """Rows."""
        return self.shape[0]

    @abstractmethod
    def read(self, first: int, last: int) -> tuple[Array, Array | None]:
        """Predictions and labels of the rows from `first` to `last` - 1, unchecked."""


def is_path(probs: Any) -> bool:
    """Whether predictions are named rather than given."""
    return isinstance(probs, str | os.PathLike)


def open_store(path: str | os.PathLike[str]) -> Store:
    """Look at headers only, and tell what is there; shards come in the order of their names.

    Parameters
    ----------
    path : str or path-like
        A Zarr store, one file of arrays or Parquet in wide form, or a folder of such shards of one
        kind; `probs-000.npy` goes with `labels-000.npy`.

    Returns
    -------
    Store
        Holds paths and no data, so that it can be sent to those who read.
    """
    # Workers may have another working directory.
    source = Source(Source.of(path, "probs").path.absolute(), "probs")
    source.check_kind(folder_allowed=True)
    with source.guarded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a library's notes on how the files were written
        store = _Shards.of(_shards_in(source))
    if store.n_samples == 0:
        repair = "Check how the rows were selected."
        raise source.refuse("must have at least one row", f"shape {store.shape}", repair)
    return store


@dataclass(frozen=True, kw_only=True)
class _Shard(Store):
    """One file, with labels in the same file or in one of their own."""

    source: Source
    labels: Source | None = None
    #: What labels are, text or numbers; None in tables, where text may be numbers written out.
    label_kind: str | None = None

    @classmethod
    def of(cls, source: Source, labels: Source | None = None) -> _Shard:
        """What the files declare."""
        with _opened(source) as parts:
            truth = parts.labels if labels is None else _mapped(labels)
            if truth is not None and truth.shape[:1] != parts.shape[:1]:
                came = f"labels of shape {truth.shape} for predictions of shape {parts.shape}"
                repair = "Write labels and predictions of the same rows."
                raise source.refuse("must have a label for every row", came, repair)
            return cls(
                shape=parts.shape,
                dtype=parts.dtype,
                labelled=parts.labelled or truth is not None,
                classes=parts.classes,
                members=parts.members,
                source=source,
                labels=labels,
                label_kind=None if truth is None else truth.kind,
            )

    def read(self, first: int, last: int) -> tuple[Array, Array | None]:
        with _opened(self.source) as parts:
            probs, labels = parts.read(first, last)
        if self.labels is not None:
            labels = np.array(_mapped(self.labels).read(first, last))
        if labels is not None and (labels.dtype.kind == "U") != (self.label_kind == "text"):
            if self.label_kind == "numbers":
                rule = "must have labels that are all numbers or all names"
                raise self.source.refuse(rule, "both", "Write all of them alike.")
            labels = labels.astype(np.str_) if self.label_kind == "text" else labels
        # Mapped pages would count as a worker's memory, and it could be ended for them.
        return np.array(probs) if isinstance(probs, np.memmap) else probs, labels


@contextmanager
def _opened(source: Source) -> Iterator[Parts | Wide]:
    with source.guarded():
        if source.suffix in TABLES:
            with TABLES[source.suffix](source) as table:
                yield Wide(table)
        else:
            with open_arrays(source) as arrays:
                yield Parts(source, arrays, "probs", "labels")


def _mapped(source: Source) -> StoredArray:
    """The array of an `.npy` file, which needs no open file."""
    with source.guarded(), open_arrays(source) as arrays:
        return arrays["probs"]()


@dataclass(frozen=True, kw_only=True)
class _Shards(Store):
    """Shards one after the other."""

    shards: tuple[_Shard, ...]

    @classmethod
    def of(cls, shards: Sequence[_Shard]) -> _Shards:
        """Refuse shards that are no parts of one array; those without rows say nothing."""
        shards = [shard for shard in shards if shard.n_samples] or shards[:1]
        known: dict[str, Any] = {}
        for shard in shards:
            own = {name: getattr(shard, name) for name in _AGREE} | {"shape": shard.shape[1:]}
            for what, value in own.items():
                if value is not None and known.setdefault(what, value) != value:
                    came = f"{value}, and {known[what]} in {shards[0].source.shown}, not"
                    rule = f"must be shards that agree in `{what}`"
                    raise shard.source.refuse(rule, came, "Write all shards alike.")
        # Decided once: what text in a table means must not depend on the rows that are read with it.
        if known["labelled"] and "label_kind" not in known and shards[0].n_samples:
            label = shards[0].read(0, 1)[1]
            kind = "text" if label is not None and label.dtype.kind == "U" else "numbers"
            shards = [replace(shard, label_kind=kind) for shard in shards]
        shape = (sum(shard.n_samples for shard in shards), *shards[0].shape[1:])
        names = {name: known.get(name) for name in ("classes", "members")}
        return cls(
            shape=shape,
            dtype=known["dtype"],
            labelled=known["labelled"],
            shards=tuple(shards),
            **names,
        )

    def read(self, first: int, last: int) -> tuple[Array, Array | None]:
        parts, begin = [], 0
        for shard in self.shards:
            end = begin + shard.n_samples
            if max(first, begin) < min(last, end):
                parts.append(shard.read(max(first, begin) - begin, min(last, end) - begin))
            begin = end
        if len(parts) == 1:
            return parts[0]
        probs, labels = zip(*parts, strict=True)
        with self.shards[0].source.guarded():
            return np.concatenate(probs), np.concatenate(labels) if self.labelled else None


def _shards_in(source: Source) -> list[_Shard]:
    """The files of a store."""
    place = source.path
    if source.suffix == ".zarr" or any((place / name).exists() for name in _ZARR):
        return [_Shard.of(source)]
    files = sorted(place.iterdir()) if place.is_dir() else [place]
    shards = [Source(file, "probs") for file in files if file.suffix.lower() in _SHARDS]
    kinds = sorted({shard.suffix for shard in shards})
    if len(kinds) != 1:
        repair = (
            "Name a Zarr store, or a folder of shards of one kind: `probs-000.npy` with "
            "`labels-000.npy`, `.npz`, `.h5` or `.safetensors` with the arrays probs and labels, or "
            "`.parquet` in wide form."
        )
        came = f"files ending in {', '.join(kinds)}" if kinds else "no shard"
        raise source.refuse("must name stored predictions", came, repair)
    if kinds != [".npy"] or len(shards) == 1:
        return [_Shard.of(shard) for shard in shards]
    truths = {shard.path.name: shard for shard in shards if shard.path.name.startswith("labels")}
    predictions = [shard for shard in shards if shard.path.name not in truths]
    pairs = [
        (each, truths.pop(each.path.name.replace("probs", "labels", 1), None))
        for each in predictions
    ]
    odd = [each for each in predictions if not each.path.name.startswith("probs")]
    if odd or truths:
        came = f"{[*odd, *truths.values()][0].path.name!r} without a partner"
        repair = "Call the shards `probs-000.npy`, `labels-000.npy` and so on."
        raise source.refuse("must be pairs of shards", came, repair)
    return [_Shard.of(probs, labels) for probs, labels in pairs]
