"""Shards that numpy writes: pairs of `.npy` files, or `.npz` files with probs and labels."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from hullcal._validation import refusal
from hullcal.engines._stores_base import Array, Shard, Shards, readable, text
from hullcal.engines._stores_sizes import Shape, bytes_of, check_memory, check_names
from hullcal.files.npy import Header, read_header
from hullcal.files.source import Source


@dataclass(frozen=True)
class _Pair(Shard):
    """One `.npy` file of predictions, and perhaps one of labels."""

    labels: Path | None

    def read(self, first: int, last: int) -> tuple[Array, Array | None]:
        # Mapped pages would count as a worker's memory, and it could be ended for them.
        probs = np.array(npy.open_memmap(self.path, mode="r")[first:last])
        if self.labels is None:
            return probs, None
        with readable(self.labels):
            return probs, text(np.array(npy.open_memmap(self.labels, mode="r")[first:last]))


def open_npy(files: Sequence[Path]) -> Shards:
    """Pair `probs-000.npy` with `labels-000.npy`; a single file has any name."""
    truths = {file.name: file for file in files if file.name.startswith("labels")}
    shards = []
    for file in files:
        if file.name in truths:
            continue
        if not file.name.startswith("probs") and len(files) > 1:
            repair = "Call the shards `probs-000.npy`, `labels-000.npy` and so on."
            rule = "must be shards named probs... and labels..."
            raise refusal("probs", rule, f"{str(file)!r}", repair)
        labels = truths.pop(file.name.replace("probs", "labels", 1), None)
        shape, _, dtype = _npy_header(file)
        if labels is not None:
            _check_length(labels, _npy_header(labels)[0], shape)
        shards.append(_Pair(file, shape, dtype, labels is not None, labels))
    if truths or not shards:
        came = f"{str(next(iter(truths.values())))!r} without predictions"
        raise refusal("probs", "must be pairs of shards", came, "Name pairs alike.")
    return Shards.of(shards)


def _npy_header(path: Path) -> Header:
    with readable(path), open(path, "rb") as file:
        return _header(path, file, path.stat().st_size)


@dataclass(frozen=True)
class _Archive(Shard):
    """One `.npz` file."""

    def read(self, first: int, last: int) -> tuple[Array, Array | None]:
        with zipfile.ZipFile(self.path) as archive:
            probs = _rows(self.path, archive, "probs.npy", first, last)
            if not self.labelled:
                return probs, None
            return probs, text(_rows(self.path, archive, "labels.npy", first, last))


def open_npz(files: Sequence[Path]) -> Shards:
    """Read the headers of archives, and the names of classes and members in the first."""
    shards, names = [], {}
    for file in files:
        with readable(file), zipfile.ZipFile(file) as archive:
            entries = archive.namelist()
            if "probs.npy" not in entries:
                came = f"the arrays {', '.join(entries)[:200]} in {str(file)!r}"
                repair = "Write it with `np.savez(file, probs=probs, labels=labels)`."
                raise refusal("probs", "must be archives with an array 'probs'", came, repair)
            shape, dtype = _declared(file, archive, "probs.npy")
            labelled = "labels.npy" in entries
            if labelled:
                _check_length(file, _declared(file, archive, "labels.npy")[0], shape)
            shards.append(_Archive(file, shape, dtype, labelled))
            for name in ("classes", "members"):
                if name not in names and f"{name}.npy" in entries:
                    length = _declared(file, archive, f"{name}.npy")[0]
                    check_names(file, name, length)
                    values = text(_rows(file, archive, f"{name}.npy", 0, *length))
                    names[name] = tuple(values.tolist())
    if "members" in names:
        names["members"] = tuple(str(name) for name in names["members"])
    return Shards.of(shards, **names)


def _declared(path: Path, archive: zipfile.ZipFile, entry: str) -> tuple[Shape, np.dtype[Any]]:
    with archive.open(entry) as file:
        shape, _, dtype = _header(path, file, archive.getinfo(entry).file_size)
    return shape, dtype


def _rows(path: Path, archive: zipfile.ZipFile, entry: str, first: int, last: int) -> Array:
    """Some rows, with no more in memory than these."""
    with archive.open(entry) as file:
        shape, by_columns, dtype = _header(path, file, archive.getinfo(entry).file_size)
        row = bytes_of(shape[1:], dtype)
        check_memory(path, (shape[0] if by_columns else last - first) * row)
        if by_columns:
            file.seek(0)
            whole: Array = npy.read_array(file, allow_pickle=False)
            return whole[first:last]
        file.seek(file.tell() + first * row)
        # Less than was declared does not fit the shape, which is an error as it should be.
        data = np.frombuffer(file.read((last - first) * row), dtype=dtype)
    return data.reshape(last - first, *shape[1:])


def _header(path: Path, file: IO[bytes], size: int) -> Header:
    """What an array declares; a lie about its size would be found only by some worker."""
    header = read_header(Source(path, "probs"), file)
    shape, _, dtype = header
    if min(shape, default=0) < 0 or bytes_of(shape, dtype) > size - file.tell():
        raise ValueError(f"shape {shape} of {dtype} declared, in {size} bytes")
    return header


def _check_length(path: Path, labels: Shape, probs: Shape) -> None:
    if labels[:1] != probs[:1]:
        came = f"{labels} for predictions of shape {probs} in {str(path)!r}"
        rule = "must be as many as the predictions of their shard"
        raise refusal("labels", rule, came, "Write labels and predictions of the same rows.")
