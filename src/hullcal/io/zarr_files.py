"""How is Zarr read, and by which codecs only?"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from hullcal.files.source import Source
from hullcal.files.zarr_codecs import KNOWN, names_of
from hullcal.io.arrays import Contents, Stored, python_objects

__all__ = ["open_zarr"]


@contextmanager
def open_zarr(source: Source) -> Iterator[Contents]:
    """List the arrays of a Zarr folder, or of a zip of one."""
    zarr = source.needs("zarr", "zarr")
    storage = source.needs("zarr.storage", "zarr")
    if source.path.is_dir():
        store = storage.LocalStore(source.path, read_only=True)
        children = sorted(each.name for each in source.path.iterdir() if each.is_dir())
    elif not zipfile.is_zipfile(source.path):
        raise ValueError("neither a folder nor a zip archive")
    else:
        with zipfile.ZipFile(source.path) as archive:
            inside = (name.partition("/") for name in archive.namelist())
            children = list(dict.fromkeys(first for first, slash, _ in inside if slash))
        store = storage.ZipStore(source.path, mode="r")
    with closing(store):
        root = zarr.open(store=store, mode="r")
        if isinstance(root, zarr.Array):
            yield Contents([source.path.stem], lambda _: _look(source, root))
        else:
            # One by one: where zarr looks at all of them at once and two are damaged, the fault of
            # the second is printed by asyncio, traceback and all.
            arrays = {name: root.get(name) for name in children}
            names = [name for name, each in arrays.items() if isinstance(each, zarr.Array)]
            yield Contents(names, lambda name: _look(source, arrays[name]))


def _look(source: Source, array: Any) -> Stored:
    metadata = array.metadata.to_dict()
    used = [metadata.get(key) for key in ("codecs", "filters", "compressor")]
    for name in names_of(used):
        if name == "pickle":
            raise python_objects(source)
        if name not in KNOWN:
            repair = "Write it again with one of zarr's own codecs, such as zstd."
            raise source.refuse("must use known codecs", f"the codec {name!r}", repair)
    itemsize = array.dtype.itemsize
    # A chunk is decoded whole, however little of it the array needs.
    needed = Stored.bytes_of(array.shape, itemsize) + Stored.bytes_of(array.chunks, itemsize)
    return Stored(needed, lambda: array[...])
