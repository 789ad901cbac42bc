"""How is HDF5 read without following links out of the file?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hullcal.files.source import Source
from hullcal.io.arrays import Contents, Stored

__all__ = ["open_hdf5"]


@contextmanager
def open_hdf5(source: Source) -> Iterator[Contents]:
    """List the arrays of an HDF5 file, also those in groups (as ``group/name``)."""
    h5py = source.needs("h5py")
    with h5py.File(source.path, "r") as file:
        names: list[str] = []

        def note(name: str, each: Any) -> None:
            if isinstance(each, h5py.Dataset):
                names.append(name)

        file.visititems(note)  # which follows neither soft nor external links
        yield Contents(names, lambda name: _look(source, h5py, file[name]))


def _look(source: Source, h5py: Any, array: Any) -> Stored:
    if array.external or array.is_virtual:
        came = f"an array {array.name!r} that points to other files"
        repair = "Write the numbers into the file itself."
        raise source.refuse("must hold its own data", came, repair)
    needed = Stored.bytes_of(array.shape or (), array.dtype.itemsize)
    if array.chunks is not None:
        needed += Stored.bytes_of(array.chunks, array.dtype.itemsize)
    text = h5py.check_string_dtype(array.dtype)
    if text is not None and text.length is None:
        # They lie in a heap of their own, in which a damaged file sends the library round for ever.
        came = f"strings of variable length {array.name!r}"
        repair = "Save them by `np.char.encode(names, 'utf-8')`, which gives them one length."
        raise source.refuse("must hold strings of fixed length", came, repair)
    if array.dtype.hasobject:
        raise source.python_objects()
    return Stored(needed, lambda: array[...])
