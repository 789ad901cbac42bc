"""How is Zarr read, and by which codecs only?"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from hullcal.files.source import Source
from hullcal.io.arrays import Contents, Stored, python_objects

__all__ = ["open_zarr"]

# The file chooses who decodes it, and numcodecs offers to unpickle: only these may.
# fmt: off
_CODECS = frozenset({
    "adler32", "astype", "bitround", "blosc", "bytes", "bz2", "crc32", "crc32c", "delta", "endian",
    "fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma", "packbits",
    "quantize", "sharding_indexed", "shuffle", "transpose", "vlen-utf8", "zlib", "zstd",
})
# fmt: on


@contextmanager
def open_zarr(source: Source) -> Iterator[Contents]:
    """List the arrays of a Zarr folder, or of a zip of one."""
    zarr = source.needs("zarr", "zarr")
    storage = source.needs("zarr.storage", "zarr")
    if source.path.is_dir():
        store = storage.LocalStore(source.path, read_only=True)
    elif not zipfile.is_zipfile(source.path):
        raise ValueError("neither a folder nor a zip archive")
    else:
        store = storage.ZipStore(source.path, mode="r")
    with closing(store):
        root = zarr.open(store=store, mode="r")
        if isinstance(root, zarr.Array):
            yield Contents([source.path.stem], lambda _: _look(source, root))
        else:
            names = list(root.array_keys())
            yield Contents(names, lambda name: _look(source, root[name]))


def _look(source: Source, array: Any) -> Stored:
    metadata = array.metadata.to_dict()
    used = [metadata.get(key) for key in ("codecs", "filters", "compressor")]
    for name in _codec_names(used):
        if name == "pickle":
            raise python_objects(source)
        if name not in _CODECS:
            repair = "Write it again with one of zarr's own codecs, such as zstd."
            raise source.refuse("must use known codecs", f"the codec {name!r}", repair)
    itemsize = array.dtype.itemsize
    # A chunk is decoded whole, however little of it the array needs.
    needed = Stored.bytes_of(array.shape, itemsize) + Stored.bytes_of(array.chunks, itemsize)
    return Stored(needed, lambda: array[...])


def _codec_names(codecs: Any) -> Iterator[str]:
    """Name every codec in a piece of metadata, also those inside shards."""
    if isinstance(codecs, dict):
        name = codecs.get("name", codecs.get("id"))
        if name is not None:
            yield str(name).removeprefix("numcodecs.")
        for key in ("configuration", "codecs", "index_codecs"):
            yield from _codec_names(codecs.get(key))
    elif isinstance(codecs, list | tuple):
        for each in codecs:
            yield from _codec_names(each)
