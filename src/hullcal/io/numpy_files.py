"""How are `.npy` and `.npz` read without unpickling anything?"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numpy.lib import format as npy
from numpy.typing import NDArray

from hullcal.files.npy import read_header
from hullcal.files.source import Source
from hullcal.io.arrays import Contents, Stored

__all__ = ["open_npy", "open_npz"]

#: What `scipy.sparse.save_npz` writes for every kind of matrix.
_SPARSE = {"format", "shape", "data"}


@contextmanager
def open_npy(source: Source) -> Iterator[Contents]:
    """Map the one array of an `.npy` file, read-only; it costs no memory."""
    with open(source.path, "rb") as file:
        read_header(source, file)
    mapped = npy.open_memmap(source.path, mode="r")
    yield Contents([source.path.stem], lambda _: Stored(0, lambda: mapped))


@contextmanager
def open_npz(source: Source) -> Iterator[Contents]:
    """List the arrays of an `.npz` file; only headers are read until one is asked for."""
    with zipfile.ZipFile(source.path) as archive:
        entries = archive.namelist()
        names = [entry.removesuffix(".npy") for entry in entries if entry.endswith(".npy")]
        if not names and any(entry.endswith(".pkl") for entry in entries):
            raise source.python_objects()
        if set(names) >= _SPARSE:
            repair = "Save `.toarray()` of it, or of each member."
            raise source.refuse("must hold dense arrays", "a sparse matrix", repair)
        yield Contents(names, lambda name: _look(source, archive, f"{name}.npy"))


def _look(source: Source, archive: zipfile.ZipFile, entry: str) -> Stored:
    with archive.open(entry) as file:
        header = read_header(source, file, entry.removesuffix(".npy"))
    # An archive can declare more than its array does; the larger of the two counts.
    needed = max(
        Stored.bytes_of(header.shape, header.dtype.itemsize), archive.getinfo(entry).file_size
    )

    def read() -> NDArray[Any]:
        with archive.open(entry) as file:
            array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
            if file.read(1):  # reading to the end is also what checks the checksum
                came = f"an array {entry!r} longer than its header says"
                raise source.refuse("must be a sound `.npz` file", came, "Write it again.")
        return array

    return Stored(needed, read)
