"""Predictions in files that are read some rows at a time, wherever the rows are needed."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal.io.array_files import ARRAYS, StoredArray, open_arrays
from hullcal.io.forms import Wide
from hullcal.io.reading import Parts
from hullcal.io.source import Source
from hullcal.io.tables import TABLES, label_values

__all__ = ["Store", "is_path", "open_store"]

Array = NDArray[Any]

_SHARDS = (*(suffix for suffix in ARRAYS if suffix != ".zarr"), ".parquet")
#: What makes a folder a Zarr store, in the versions 3 and 2 of the format.
_ZARR = ("zarr.json", ".zgroup", ".zarray")


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

    @property
    def n_members(self) -> int:
        """Classifiers."""
        return self.shape[1] if len(self.shape) == 3 else 1

    @property
    def n_classes(self) -> int:
        """Classes."""
        return self.shape[-1]

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
    #: Whether labels that are text are numbers written out, in the whole store.
    numbers: bool | None = None

    @classmethod
    def of(cls, source: Source, labels: Source | None = None) -> _Shard:
        """What the files declare."""
        with source.guarded():
            if source.suffix in TABLES:
                with TABLES[source.suffix](source) as table:
                    wide = Wide.of(table, "labels")
                    probs, _ = wide.read(table, 0, 0)
                    return cls(
                        shape=(table.n_rows or 0, *probs.shape[1:]),
                        dtype=probs.dtype,
                        labelled=wide.label is not None,
                        classes=wide.classes,
                        members=wide.members,
                        source=source,
                    )
            with open_arrays(source) as arrays:
                parts = Parts(source, arrays)
                truth = parts.labels if labels is None else _lone(labels)
                if truth is not None and truth.shape[:1] != parts.probs.shape[:1]:
                    came = f"labels of shape {truth.shape} for shape {parts.probs.shape}"
                    rule = "must hold as many labels as predictions"
                    raise source.refuse(
                        rule, came, "Write labels and predictions of the same rows."
                    )
                return cls(
                    shape=parts.probs.shape,
                    dtype=parts.probs.dtype,
                    labelled=truth is not None,
                    classes=parts.classes,
                    members=parts.members,
                    source=source,
                    labels=labels,
                )

    def read(self, first: int, last: int) -> tuple[Array, Array | None]:
        with self.source.guarded():
            if self.source.suffix in TABLES:
                with TABLES[self.source.suffix](self.source) as table:
                    probs, names = Wide.of(table, "labels").read(table, first, last)
                    return probs, self._meant(names) if self.labelled else None
            with open_arrays(self.source) as arrays:
                probs, labels = Parts(self.source, arrays).read(first, last)
        if self.labels is not None:
            labels = np.array(_lone(self.labels).rows(first, last))
        # Mapped pages would count as a worker's memory, and it could be ended for them.
        return np.array(probs) if isinstance(probs, np.memmap) else probs, labels

    def _meant(self, names: list[Any]) -> Array:
        """Labels of a table; text means the same in all rows of the store."""
        labels = label_values(names, self.classes)
        text = all(isinstance(name, str) for name in names)
        if not text or self.numbers in (None, labels.dtype.kind in "iu"):
            return labels
        if not self.numbers:
            return np.array(names)
        rule = "must have labels that are all numbers or all names"
        raise self.source.refuse(rule, "both", "Write all of them alike.")


def _lone(source: Source) -> StoredArray:
    """The array of an `.npy` file, which is mapped and needs no open file."""
    with source.guarded(), open_arrays(source) as arrays:
        return arrays["probs"]


@dataclass(frozen=True, kw_only=True)
class _Shards(Store):
    """Shards one after the other."""

    shards: tuple[_Shard, ...]

    @classmethod
    def of(cls, shards: Sequence[_Shard]) -> _Shards:
        """Refuse shards that are no parts of one array."""
        start = shards[0]
        known = {"dtype": start.dtype, "labelled": start.labelled, "shape": start.shape[1:]}
        for shard in shards:
            own = {"dtype": shard.dtype, "labelled": shard.labelled, "shape": shard.shape[1:]}
            own |= {"classes": shard.classes, "members": shard.members}
            for what, value in own.items():
                if value is not None and known.setdefault(what, value) != value:
                    came = f"{value}, and {known[what]} in {start.source.shown}, not"
                    rule = f"must be shards that agree in `{what}`"
                    raise shard.source.refuse(rule, came, "Write all shards alike.")
        store = cls(
            shape=(sum(shard.n_samples for shard in shards), *start.shape[1:]),
            dtype=start.dtype,
            labelled=start.labelled,
            classes=known.get("classes"),
            members=known.get("members"),
            shards=tuple(shards),
        )
        if start.source.suffix not in TABLES or not store.labelled or not store.n_samples:
            return store
        # Decided once: what a label means must not depend on which rows are read with it.
        label = store.read(0, 1)[1]
        numbers = label is not None and label.dtype.kind in "iu"
        return replace(store, shards=tuple(replace(each, numbers=numbers) for each in shards))

    def read(self, first: int, last: int) -> tuple[Array, Array | None]:
        probs: list[tuple[_Shard, Array]] = []
        labels: list[tuple[_Shard, Array]] = []
        begin = 0
        for shard in self.shards:
            end = begin + shard.n_samples
            if max(first, begin) < min(last, end):
                some, their = shard.read(max(first, begin) - begin, min(last, end) - begin)
                probs.append((shard, some))
                if their is not None:
                    labels.append((shard, their))
            begin = end
        return _joined(probs), _joined(labels) if labels else None


def _joined(parts: list[tuple[_Shard, Array]]) -> Array:
    """Parts one after the other, which must mean the same side by side."""
    start, first = parts[0]
    for shard, part in parts[1:]:
        if (part.shape[1:], _family(part)) != (first.shape[1:], _family(first)):
            shown = [f"{each.dtype} of shape {each.shape}" for each in (part, first)]
            came = f"{shown[0]}, and {shown[1]} in {start.source.shown}, not"
            raise shard.source.refuse("must be alike in all shards", came, "Write all alike.")
    return first if len(parts) == 1 else np.concatenate([part for _, part in parts])


def _family(array: Array) -> str:
    """Types that can stand side by side."""
    families = {"numbers": "biufc", "text": "OSTU"}
    return next((name for name in families if array.dtype.kind in families[name]), str(array.dtype))


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
            "`labels-000.npy`, `.npz` with the arrays probs and labels, or `.parquet` in wide form."
        )
        came = f"files ending in {', '.join(kinds)}" if kinds else "no shard"
        raise source.refuse("must name stored predictions", came, repair)
    if kinds != [".npy"] or len(shards) == 1:
        return [_Shard.of(shard) for shard in shards]
    truths = {shard.path.name: shard for shard in shards if shard.path.name.startswith("labels")}
    predictions = [shard for shard in shards if shard.path.name not in truths]
    pairs = [(each, truths.pop(_partner(each.path.name), None)) for each in predictions]
    odd = [each for each in predictions if not each.path.name.startswith("probs")]
    if odd or truths:
        came = f"{[*odd, *truths.values()][0].path.name!r} without a partner"
        repair = "Call the shards `probs-000.npy`, `labels-000.npy` and so on."
        raise source.refuse("must be pairs of shards", came, repair)
    return [_Shard.of(probs, labels) for probs, labels in pairs]


def _partner(name: str) -> str:
    return name.replace("probs", "labels", 1)
