"""Predictions in files that are read some rows at a time, wherever the rows are needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal.io.array_files import ARRAYS
from hullcal.io.reading import agreed, opened, quietly
from hullcal.io.source import Parts, Source

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
        with _both(source, truth) as parts:
            shape, labels = parts.probs.shape, parts.labels
            if labels is not None and labels.shape[:1] != shape[:1]:
                came = f"labels of shape {labels.shape} for predictions of shape {shape}"
                repair = "Write labels and predictions of the same rows."
                raise source.refuse("must have a label for every row", came, repair)
            kind = "" if labels is None else labels.dtype.kind
            names = dict.fromkeys("biuf", "numbers") | dict.fromkeys("OSTU", "names")
            declared = {
                "shape": shape[1:],
                "dtype": parts.probs.dtype,
                "classes": parts.classes,
                "members": parts.members,
                "labelled": labels is not None,
                "kind of labels": names.get(kind, kind),
            }
            return cls(source, truth, shape[0], declared)

    def read(self, first: int, last: int) -> tuple[Array, Array | None]:
        """As `Store.read`, with rows counted in this file."""
        with _both(self.source, self.truth) as parts:
            probs, labels = parts.read(first, last)
        # What text in a table means must not depend on the rows that are read with it.
        kind = self.declared["kind of labels"]
        if labels is not None and kind == "names":
            labels = labels.astype(np.str_)
        elif labels is not None and kind == "numbers" and labels.dtype.kind == "U":
            rule = "must have labels that are all numbers or all names"
            raise self.source.refuse(rule, "both", "Write all of them alike.")
        # Mapped pages would count as a worker's memory, and it could be ended for them.
        return _unmapped(probs), None if labels is None else _unmapped(labels)


@contextmanager
def _both(source: Source, truth: Source | None) -> Iterator[Parts]:
    """A shard with its labels, which may be in an `.npy` file of their own."""
    with opened(source) as parts:
        if truth is None:
            yield parts
            return
        with truth.guarded(), ARRAYS[".npy"](truth) as arrays:
            yield replace(parts, labels=arrays["probs"]())


def _unmapped(array: Array) -> Array:
    return np.array(array) if isinstance(array, np.memmap) else array


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
    with source.guarded(), quietly():
        shards = [_Shard.of(*files) for files in _files_in(source)]
        shards = [shard for shard in shards if shard.n_rows] or shards[:1]  # the others say nothing
        known = agreed([shard.source for shard in shards], [shard.declared for shard in shards])
    del known["kind of labels"]
    known["shape"] = (sum(shard.n_rows for shard in shards), *known["shape"])
    if known["shape"][0] == 0:
        repair = "Check how the rows were selected."
        raise source.refuse("must have at least one row", f"shape {known['shape']}", repair)
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
