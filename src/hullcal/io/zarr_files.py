"""Zarr, a folder or a zip: known codecs only, and every chunk is checked before it is decoded."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import math
import operator
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from hullcal.io.source import Source

__all__ = ["opened"]

_METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
#: A chunk may unfold to this multiple of what its shape and type declare, since filters may widen it.
_WIDENED = 8
#: Bytes allowed for a string of variable length.
_STRING = 4096
#: Offset of an inner chunk that a shard does not have.
_ABSENT = 2**64 - 1


@contextmanager
def opened(source: Source) -> Iterator[tuple[list[str], Callable[[str], Any]]]:
    """Names of the arrays, and a function that opens one; a lone array is called probs."""
    zarr, storage = source.needs("zarr"), source.needs("zarr.storage")
    if source.path.is_dir():
        children = sorted(each.name for each in source.path.iterdir() if each.is_dir())
        store = storage.LocalStore(source.path, read_only=True)
    else:
        # Opened here first, since this says what is wrong with an archive and its store does not.
        with zipfile.ZipFile(source.path) as archive:
            inside = (name.partition("/") for name in archive.namelist())
            children = list(dict.fromkeys(first for first, slash, _ in inside if slash))
        store = storage.ZipStore(source.path, mode="r")
    with closing(_checked_store()(store)) as checked:
        root = zarr.open(store=checked, mode="r")
        # One by one: if zarr opens all at once and two are damaged, asyncio prints a traceback.
        found = (
            {"probs": root}
            if isinstance(root, zarr.Array)
            else {name: root.get(name) for name in children}
        )
        arrays = {name: each for name, each in found.items() if isinstance(each, zarr.Array)}

        def look(name: str) -> Any:
            checked.chunks[arrays[name].path] = _chunks_of(source, arrays[name])
            return arrays[name]

        yield list(arrays), look


@cache
def _checked_store() -> Any:
    from zarr.storage import WrapperStore

    class CheckedStore(WrapperStore[Any]):
        """A store that looks at every chunk before zarr's codecs do: their C code believes it."""

        def __init__(self, store: Any) -> None:
            super().__init__(store)
            self.chunks: dict[str, _Chunks] = {}

        async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
            buffer = await super().get(key, prototype, byte_range)
            array = "" if "" in self.chunks else key.partition("/")[0]
            if buffer is not None and array in self.chunks and not key.endswith(_METADATA):
                self.chunks[array].check(buffer.to_bytes(), byte_range)
            return buffer

    return CheckedStore


@dataclass(frozen=True)
class _Chunks:
    """How the chunks of an array are packed, and how large one may become."""

    compressor: str | None
    #: Whether a checksum of four bytes follows.
    summed: bool
    limit: int
    #: Inner chunks of a shard; 0 without shards.
    n_inner: int

    def check(self, data: bytes, byte_range: Any) -> None:
        """Check what was read: a chunk, an inner chunk, the index of a shard, or all of it."""
        if not self.n_inner or (byte_range is not None and not hasattr(byte_range, "suffix")):
            self._check_one(data)
        elif byte_range is None:
            index = np.frombuffer(data[-16 * self.n_inner - 4 : -4], dtype="<u8").tolist()
            for offset, length in zip(index[::2], index[1::2], strict=True):
                if offset != _ABSENT:
                    self._check_one(data[offset : offset + length])

    def _check_one(self, data: bytes) -> None:
        if self.compressor is not None:
            packed = data[:-4] if self.summed else data
            size = _UNFOLDED[self.compressor](packed, self.limit)
            if size > self.limit:
                raise ValueError(f"a chunk of {len(data)} bytes unfolds beyond its shape and type")


def _chunks_of(source: Source, array: Any) -> _Chunks:
    """Refuse an array that needs other codecs than Zarr's own, or unpacks in several steps."""
    metadata = array.metadata.to_dict()
    codecs = metadata.get("codecs")
    if codecs is None:  # version 2 of the format
        codecs = [*(metadata["filters"] or ()), metadata["compressor"]]
    shard: dict[str, Any] = {}
    if len(codecs) == 1 and codecs[0] and _name(codecs[0]) == "sharding_indexed":
        shard = codecs[0]["configuration"]
        codecs = shard["codecs"]
    names = [_name(each) for each in codecs if each]
    for name in names:
        if name == "pickle":
            raise source.python_objects()
        if name not in _KNOWN:
            repair = "Write it again with one of zarr's own codecs, such as zstd."
            raise source.refuse("must use known codecs", f"the codec {name!r}", repair)
    index = [_name(each) for each in shard.get("index_codecs", ())]
    usual = not shard or (index == ["bytes", "crc32c"] and shard["index_location"] == "end")
    summed = names[-1:] == ["crc32c"]
    packed = names[:-1] if summed else names
    if not usual or not _UNFOLDED.keys().isdisjoint(packed[:-1]):
        came = f"the codecs {', '.join([*names, *index])}"
        repair = "Use one compressor, as the last codec, and shards with their index at the end."
        raise source.refuse("must be packed in the usual way of zarr", came, repair)
    itemsize = _STRING if array.dtype.kind in "OT" else array.dtype.itemsize
    return _Chunks(
        compressor=packed[-1] if packed and packed[-1] in _UNFOLDED else None,
        summed=summed,
        limit=_WIDENED * itemsize * math.prod(array.chunks),
        n_inner=math.prod(map(operator.floordiv, array.shards, array.chunks)) if shard else 0,
    )


def _name(codec: Any) -> str:
    return str(codec.get("name", codec.get("id"))).removeprefix("numcodecs.")


def _blosc(frame: bytes, limit: int) -> int:
    """The last three numbers of the header, of 16 bytes, are the sizes of data, block and frame."""
    size = int.from_bytes(frame[12:16], "little")
    if not 16 <= size <= len(frame):
        raise ValueError(f"a Blosc frame of {len(frame)} bytes that claims {size}")
    return int.from_bytes(frame[4:8], "little")


def _zstd(frame: bytes, limit: int) -> int:
    """The header (RFC 8878) says the size, unless it was written as a stream."""
    descriptor = frame[4]
    single = descriptor >> 5 & 1
    width = (single, 2, 4, 8)[descriptor >> 6]
    if width == 0:
        raise ValueError("a zstd frame that does not say its size")
    start = 6 - single + (0, 1, 2, 4)[descriptor & 3]
    return int.from_bytes(frame[start : start + width], "little") + (256 if width == 2 else 0)


#: How many bytes a compressor will give; of those that do not say it, no more are unpacked than allowed.
_UNFOLDED: dict[str, Callable[[bytes, int], int]] = {
    "blosc": _blosc,
    "zstd": _zstd,
    "lz4": lambda data, limit: int.from_bytes(data[:4], "little"),
    "zlib": lambda data, limit: len(zlib.decompressobj().decompress(data, limit + 1)),
    "gzip": lambda data, limit: len(gzip.GzipFile(fileobj=io.BytesIO(data)).read(limit + 1)),
    "bz2": lambda data, limit: len(bz2.BZ2File(io.BytesIO(data)).read(limit + 1)),
    "lzma": lambda data, limit: len(lzma.LZMADecompressor().decompress(data, limit + 1)),
}
# The file chooses who decodes it, and numcodecs offers to unpickle: only these may.
# fmt: off
_KNOWN = _UNFOLDED.keys() | {
    "adler32", "astype", "bitround", "bytes", "crc32", "crc32c", "delta", "endian",
    "fixedscaleoffset", "fletcher32", "jenkins_lookup3", "packbits", "quantize", "shuffle",
    "transpose", "vlen-utf8",
}
# fmt: on
