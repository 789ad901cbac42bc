"""Which arrays are in a Zarr store, a folder or a zip, and may they be decoded?"""

from __future__ import annotations

import zipfile
from collections.abc import Container, Iterator
from contextlib import closing, contextmanager
from typing import Any

from hullcal.files.source import Source
from hullcal.files.zarr_blosc import guard_blosc
from hullcal.files.zarr_codecs import KNOWN, names_of

__all__ = ["check_codecs", "open_arrays"]


@contextmanager
def open_arrays(
    source: Source, only: Container[str | None] | None = None
) -> Iterator[dict[str | None, Any]]:
    """Give the arrays of a store by name, or only these; one that is no group is under None."""
    zarr = source.needs("zarr")
    storage = source.needs("zarr.storage")
    if source.path.is_dir():
        children = sorted(each.name for each in source.path.iterdir() if each.is_dir())
        store = storage.LocalStore(source.path, read_only=True)
    else:
        # Opened here first, since this says what is wrong with an archive and its store does not.
        with zipfile.ZipFile(source.path) as archive:
            inside = (name.partition("/") for name in archive.namelist())
            children = list(dict.fromkeys(first for first, slash, _ in inside if slash))
        store = storage.ZipStore(source.path, mode="r")
    guard_blosc()
    with closing(store):
        root = zarr.open(store=store, mode="r")
        if isinstance(root, zarr.Array):
            yield {None: root}
            return
        # One by one: where zarr looks at all of them at once and two are damaged, the fault of
        # the second is printed by asyncio, traceback and all.
        found = {name: root.get(name) for name in children if only is None or name in only}
        yield {name: each for name, each in found.items() if isinstance(each, zarr.Array)}


def check_codecs(source: Source, array: Any) -> None:
    """Refuse an array that asks to be decoded by anybody else than Zarr's own codecs."""
    metadata = array.metadata.to_dict()
    used = [metadata.get(key) for key in ("codecs", "filters", "compressor")]
    for name in names_of(used):
        if name == "pickle":
            raise source.python_objects()
        if name not in KNOWN:
            repair = "Write it again with one of zarr's own codecs, such as zstd."
            raise source.refuse("must use known codecs", f"the codec {name!r}", repair)
