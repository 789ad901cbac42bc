"""Predictions in files that are read some rows at a time, wherever the rows are needed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal.io.array_files import ARRAYS
from hullcal.io.reading import agreed, opened
from hullcal.io.source import Source, StoredArray

Array = NDArray[Any]

_SHARDS = (*(suffix for suffix in ARRAYS if suffix != ".zarr"), ".parquet")
#: What makes a folder a Zarr store, in the versions 3 and 2 of the format.
_ZARR = ("zarr.json", ".zgroup", ".zarray")


@dataclass(frozen=True)
class _Shard:
    """One file, with labels in the same file or in one of their own."""

    source: Source
    truth: Source | None
    n_rows: int
    #: What all shards must agree in.
    declared: dict[str, Any]

    @classmethod
    def of(cls, source: Source, truth: Source | None) -> _Shard:
        """What the files declare."""
        with opened(source) as parts:
            shape, labels = parts.probs.shape, parts.labels if truth is None else _mapped(truth)
            if labels is not None and labels.shape[:1] != shape[:1]:
                came = f"labels of shape {labels.shape} for predictions of shape {shape}"
                repair = "Write labels and predictions of the same rows."
                raise source.refuse("must have a label for every row", came, repair)
            declared = {"shape": shape[1:], "dtype": parts.probs.dtype, "classes": parts.classes}
            declared |= {"members": parts.members, "labelled": labels is not None}
            kind = None if labels is None else labels.dtype.kind
            names = dict.fromkeys("biuf", "numbers") | dict.fromkeys("OSTU", "names")
            declared["kind of labels"] = names.get(str(kind), kind)
            return cls(source, truth, shape[0], declared)

    def read(self, first: int, last: int) -> tuple[Array, Array | None]:
        """As `Store.read`, with rows counted in this file."""
        with opened(self.source) as parts:
            probs, labels = parts.read(first, last)
        if self.truth is not None:
            labels = np.array(_mapped(self.truth).read(first, last))
        # What text in a table means must not depend on the rows that are read with it.
        kind = self.declared["kind of labels"]
        if labels is not None and kind == "names":
            labels = labels.astype(np.str_)
        elif labels is not None and kind == "numbers" and labels.dtype.kind == "U":
            rule = "must have labels that are all numbers or all names"
            raise self.source.refuse(rule, "both", "Write all of them alike.")
        # Mapped pages would count as a worker's memory, and it could be ended for them.
        return np.array(probs) if isinstance(probs, np.memmap) else probs, labels


@dataclass(frozen=True, kw_only=True)
class Store:
    """Predictions that somebody else will read, in shards; small, and made to be sent to workers."""

    #: (n_samples, n_members, n_classes), or (n_samples, n_classes) for one member.
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    #: Whether there are labels beside the predictions.
    labelled: bool
    classes: tuple[Any, ...] | None = None
    members: tuple[str, ...] | None = None
    shards: tuple[_Shard, ...] = ()

    def read(self, first: int, last: int) -> tuple[Array, Array | None]:
        """Predictions and labels of the rows from `first` to `last` - 1, unchecked."""
        parts, begin = [], 0
        for shard in self.shards:
            end = begin + shard.n_rows
            if max(first, begin) < min(last, end):
                parts.append(shard.read(max(first, begin) - begin, min(last, end) - begin))
            begin = end
        if len(parts) == 1:
            return parts[0]
        probs, labels = zip(*parts, strict=True)
        with self.shards[0].source.guarded():
            return np.concatenate(probs), np.concatenate(labels) if self.labelled else None


def open_store(path: str | os.PathLike[str]) -> Store:
    """Look at headers only: a Zarr store, one file, or a folder of shards in the order of their names."""
    # Workers may have another working directory.
    source = Source(Source.of(path, "probs").path.absolute(), "probs")
    source.check_kind(folder_allowed=True)
    # A library's notes on how the files were written are of no use here.
    with source.guarded(), warnings.catch_warnings(action="ignore"):
        store = _joined([_Shard.of(*files) for files in _files_in(source)])
    if store.shape[0] == 0:
        repair = "Check how the rows were selected."
        raise source.refuse("must have at least one row", f"shape {store.shape}", repair)
    return store


def _mapped(source: Source) -> StoredArray:
    """The array of an `.npy` file, which needs no open file."""
    with source.guarded(), ARRAYS[".npy"](source) as arrays:
        return arrays["probs"]()


def _joined(shards: Sequence[_Shard]) -> Store:
    """Refuse shards that are no parts of one array; those without rows say nothing."""
    shards = [shard for shard in shards if shard.n_rows] or shards[:1]
    known = agreed([shard.source for shard in shards], [shard.declared for shard in shards])
    del known["kind of labels"]
    known["shape"] = (sum(shard.n_rows for shard in shards), *known["shape"])
    return Store(**known, shards=tuple(shards))


def _files_in(source: Source) -> list[tuple[Source, Source | None]]:
    """The files of a store, each with that of its labels if they have one."""
    place = source.path
    if source.suffix == ".zarr" or any((place / name).exists() for name in _ZARR):
        return [(source, None)]
    files = sorted(place.iterdir()) if place.is_dir() else [place]
    files = [file for file in files if file.suffix.lower() in _SHARDS]
    kinds = sorted({file.suffix.lower() for file in files})
    if len(kinds) != 1:
        repair = (
            "Name a Zarr store, or a folder of shards of one kind: `probs-000.npy` with "
            "`labels-000.npy`, `.npz`, `.h5` or `.safetensors` with the arrays probs and labels, or "
            "`.parquet` in wide form."
        )
        came = f"files ending in {', '.join(kinds)}" if kinds else "no shard"
        raise source.refuse("must name stored predictions", came, repair)
    pairs: dict[Path, Path | None] = dict.fromkeys(files)
    if kinds == [".npy"] and len(files) > 1:
        probs = [file for file in files if file.name.startswith("probs")]
        pairs = {file: file.with_name(file.name.replace("probs", "labels", 1)) for file in probs}
        odd = sorted({*files} - {*pairs} - {*pairs.values()})
        if odd:
            came = f"{odd[0].name!r} without a partner"
            repair = "Call the shards `probs-000.npy`, `labels-000.npy` and so on."
            raise source.refuse("must be pairs of shards", came, repair)
    return [
        (Source(file, "probs"), Source(labels, "probs") if labels in files else None)
        for file, labels in pairs.items()
    ]
