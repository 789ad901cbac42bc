"""Predictions in files that are read a few rows at a time, wherever the rows are needed."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from hullcal._validation import InvalidInputError, refusal
from hullcal.engines._stores_base import Store, readable
from hullcal.files.source import Source

__all__ = ["Store", "is_path", "open_store"]

_SHARDS = (".npy", ".npz", ".parquet")
#: What makes a folder a Zarr store, in the versions 3 and 2 of the format.
_ZARR = ("zarr.json", ".zgroup", ".zarray")
_REPAIR = (
    "Name a Zarr store, or a folder of shards of one kind: `probs-000.npy` with `labels-000.npy`, "
    "`.npz` with the arrays probs and labels, or `.parquet` in wide form."
)


def is_path(probs: Any) -> bool:
    """Whether predictions are named rather than given."""
    return isinstance(probs, str | os.PathLike)


def open_store(path: str | os.PathLike[str]) -> Store:
    """Look at headers only, and tell what is there; shards come in the order of their names.

    Parameters
    ----------
    path : str or path-like
        A Zarr store, one `.npy`, `.npz` or `.parquet` file, or a folder of such shards.

    Returns
    -------
    Store
        Holds paths and no data, so that it can be sent to those who read.
    """
    # Workers may have another working directory.
    place = Source.of(path, "probs").path.absolute()
    with readable(place):
        if not place.exists():
            raise _refuse(place, "no file or folder")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a library's notes on how the files were written
            store = _looked_at(place)
    except MemoryError as error:
        raise _refuse(place, "headers or names larger than memory") from error
    if store.n_samples == 0:
        came = f"an empty array of shape {store.shape} in {str(place)!r}"
        rule, repair = "must have at least one row", "Check how the rows were selected."
        raise refusal("probs", rule, came, repair)
    return store


def _looked_at(place: Path) -> Store:
    Source(place, "probs").check_kind(folder_allowed=True)
    if place.suffix.lower() == ".zarr" or any((place / name).exists() for name in _ZARR):
        from hullcal.engines._stores_zarr import open_zarr

        return open_zarr(place)
    files = sorted(_files(place))
    kinds = {file.suffix.lower() for file in files}
    if len(kinds) != 1 or not kinds <= set(_SHARDS):
        raise _refuse(place, f"files ending in {', '.join(sorted(kinds))}" if kinds else "no shard")
    return _opened(kinds.pop(), files)


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    with readable(place):
        shards = [file for file in place.iterdir() if file.suffix.lower() in _SHARDS]
    for shard in shards:
        Source(shard, "probs").check_kind()
    return shards


def _opened(kind: str, files: list[Path]) -> Store:
    if kind == ".parquet":
        from hullcal.engines._stores_parquet import open_parquet

        return open_parquet(files)
    from hullcal.engines import _stores_numpy as numpy_shards

    return numpy_shards.open_npy(files) if kind == ".npy" else numpy_shards.open_npz(files)


def _refuse(place: Path, came: str) -> InvalidInputError:
    return refusal("probs", "must name stored predictions", f"{came} at {str(place)!r}", _REPAIR)
