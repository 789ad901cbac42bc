"""How is Zarr read?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hullcal.files.source import Source
from hullcal.files.zarr_arrays import check_codecs, open_arrays
from hullcal.io.arrays import Contents, Stored

__all__ = ["open_zarr"]


@contextmanager
def open_zarr(source: Source) -> Iterator[Contents]:
    """List the arrays of a Zarr folder, or of a zip of one."""
    with open_arrays(source) as arrays:
        named = {name or source.path.stem: array for name, array in arrays.items()}
        yield Contents(list(named), lambda name: _look(source, named[name]))


def _look(source: Source, array: Any) -> Stored:
    check_codecs(source, array)
    itemsize = array.dtype.itemsize
    # A chunk is decoded whole, however little of it the array needs.
    needed = Stored.bytes_of(array.shape, itemsize) + Stored.bytes_of(array.chunks, itemsize)
    return Stored(needed, lambda: array[...])
