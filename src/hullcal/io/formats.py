"""Who reads which kind of file?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal.files.names import label_values
from hullcal.files.source import Source
from hullcal.io.arrays import Opener, labels_among, parts_among
from hullcal.io.csv_files import open_csv
from hullcal.io.dataset import Parts
from hullcal.io.forms import labels_in, parts_in
from hullcal.io.hdf5_files import open_hdf5
from hullcal.io.numpy_files import open_npy, open_npz
from hullcal.io.parquet_files import open_parquet
from hullcal.io.safetensors_files import open_safetensors
from hullcal.io.tables import TableOpener
from hullcal.io.text import read_lines
from hullcal.io.zarr_files import open_zarr

__all__ = ["SUFFIXES", "read_labels", "read_parts"]

_ARRAYS: dict[str, Opener] = {
    ".npy": open_npy,
    ".npz": open_npz,
    ".h5": open_hdf5,
    ".hdf5": open_hdf5,
    ".zarr": open_zarr,
    ".safetensors": open_safetensors,
}
_TABLES: dict[str, TableOpener] = {".csv": open_csv, ".parquet": open_parquet}
_PICKLED = (".pkl", ".pickle", ".pt", ".pth", ".joblib")

#: The endings of files that can be read.
SUFFIXES = (*_ARRAYS, *_TABLES)


def read_parts(source: Source, probs_key: str, labels_key: str) -> Parts:
    """Read predictions, and what else the file tells, by its ending."""
    _check(source, SUFFIXES)
    with source.guarded():
        if source.suffix in _ARRAYS:
            with _ARRAYS[source.suffix](source) as contents:
                return parts_among(source, contents, probs_key, labels_key)
        with _TABLES[source.suffix](source) as table:
            return parts_in(table, labels_key)


def read_labels(source: Source, labels_key: str, classes: tuple[Any, ...] | None) -> NDArray[Any]:
    """Read labels by the ending of their file; `classes` tells names from positions."""
    _check(source, (*SUFFIXES, ".txt"))
    with source.guarded():
        if source.suffix in _ARRAYS:
            with _ARRAYS[source.suffix](source) as contents:
                return np.asarray(labels_among(source, contents, labels_key))
        if source.suffix == ".txt":
            return label_values(read_lines(source), classes)
        with _TABLES[source.suffix](source) as table:
            return label_values(labels_in(table, labels_key), classes)


def _check(source: Source, known: tuple[str, ...]) -> None:
    if source.suffix in _PICKLED:
        raise source.python_objects()
    if source.suffix == "" and source.path.is_dir():
        repair = (
            'Shards in a folder are for the engine of Dask: pass its path with `engine="dask"`.'
        )
        raise source.refuse("must be a file, or a Zarr store", "a folder", repair)
    if source.suffix not in known:
        came = f"the ending {source.suffix!r}"
        raise source.refuse("must have a known ending", came, f"Known are {', '.join(known)}.")
    source.check_kind(folder_allowed=source.suffix == ".zarr")
