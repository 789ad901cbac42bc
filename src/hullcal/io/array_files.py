"""Files of arrays: what they hold is known at once, rows are read on demand, nothing is unpickled."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import math
import operator
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from typing import IO, Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from hullcal.io.source import Source, StoredArray, n_bytes

#: How a pickle begins; `ndarray.dump` writes one under any name.
_PICKLE = b"\x80"
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
#: Types of safetensors that numpy has under a similar name.
_SAFETENSORS = re.compile("([FIU])(8|16|32|64)|BOOL")


#: The arrays of an open file by name, each looked at when its function is called.
Arrays = dict[str, Callable[[], StoredArray]]


@contextmanager
def _npy(source: Source) -> Iterator[Arrays]:
    with open(source.path, "rb") as file:
        _header(source, file, source.path.stat().st_size)
    mapped = npy.open_memmap(source.path, mode="r")
    yield {"probs": lambda: StoredArray.held(source, mapped)}


@contextmanager
def _npz(source: Source) -> Iterator[Arrays]:
    with zipfile.ZipFile(source.path) as archive:
        entries = archive.namelist()
        names = [entry.removesuffix(".npy") for entry in entries if entry.endswith(".npy")]
        if not names and any(entry.endswith(".pkl") for entry in entries):
            raise source.python_objects()
        yield {name: partial(_entry, source, archive, name) for name in names}


def _entry(source: Source, archive: zipfile.ZipFile, name: str) -> StoredArray:
    """One array of an archive, of which no more is in memory than the rows that are read."""
    entry = f"{name}.npy"
    with archive.open(entry) as file:
        shape, by_columns, dtype = _header(source, file, archive.getinfo(entry).file_size, name)
        begin = file.tell()
    size = n_bytes(shape[1:], dtype)

    def rows(start: int, stop: int) -> NDArray[Any]:
        first, last = (0, shape[0]) if by_columns else (start, stop)
        with archive.open(entry) as file:
            file.seek(begin + first * size)
            data = file.read((last - first) * size)
            # Reading to the end also verifies the checksum.
            if file.read(1) and last == shape[0]:
                raise ValueError(f"an array {name!r} longer than its header says")
        order: Literal["F", "C"] = "F" if by_columns else "C"
        array = np.ndarray((last - first, *shape[1:]), dtype, data, order=order)
        return array[start - first : stop - first]

    return StoredArray(source, shape, dtype, rows, n_bytes(shape, dtype) if by_columns else 0)


def _header(
    source: Source, file: IO[bytes], size: int, name: str = "probs"
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order by columns and type that an array in `size` bytes declares, and must fit into."""
    start = file.tell()
    if file.read(1) == _PICKLE:
        raise source.python_objects()
    file.seek(start)
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"version {version} of the npy format, which holds records")
    shape, by_columns, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise source.python_objects(name)
    if min(shape, default=0) < 0 or n_bytes(shape, dtype) > size - file.tell():
        source.check_fits(n_bytes(shape, dtype))
        raise ValueError(f"shape {shape} of {dtype} declared, in {size} bytes")
    return shape, by_columns, dtype


@contextmanager
def _hdf5(source: Source) -> Iterator[Arrays]:
    """Arrays in groups are called ``group/name``."""
    h5py = source.needs("h5py")

    def look(array: Any) -> StoredArray:
        if array.external or array.is_virtual:
            came = f"an array {array.name!r} that points to other files"
            raise source.refuse("must hold its own data", came, "Copy the numbers into the file.")
        text = h5py.check_string_dtype(array.dtype)
        if text is not None and text.length is None:
            # They lie in a heap, in which a damaged file can send the library round for ever.
            came = f"strings of variable length {array.name!r}"
            repair = "Save them by `np.char.encode(names, 'utf-8')`, which gives them one length."
            raise source.refuse("must hold strings of fixed length", came, repair)
        if array.dtype.hasobject:
            raise source.python_objects()
        stored = _sliced(source, array)
        plist = array.id.get_create_plist()
        filters = [plist.get_filter(i)[0] for i in range(plist.get_nfilters())]
        if h5py.h5z.FILTER_DEFLATE not in filters:
            return stored
        if filters.count(h5py.h5z.FILTER_DEFLATE) > 1:
            came, repair = "several layers of it", "Write it again with one compressor."
            raise source.refuse("must be packed by gzip once", came, repair)

        def checked(start: int, stop: int) -> NDArray[Any]:
            _check_chunks(array, start, stop, 1 << filters.index(h5py.h5z.FILTER_DEFLATE))
            return stored.rows(start, stop)

        return replace(stored, rows=checked)

    with h5py.File(source.path, "r") as file:
        found: dict[str, Any] = {}
        file.visititems(found.__setitem__)  # follows neither soft nor external links
        arrays = {name: each for name, each in found.items() if isinstance(each, h5py.Dataset)}
        yield {name: partial(look, each) for name, each in arrays.items()}


def _check_chunks(array: Any, start: int, stop: int, unpacked: int) -> None:
    """Refuse chunks of deflated rows that unfold beyond their shape and type: the library believes them.

    `unpacked` is the bit of a chunk that was stored as it is.
    """
    limit = n_bytes(array.chunks, array.dtype) + 4  # a checksum
    first, *others = array.chunks
    places = product(
        range(start // first * first, stop, first),
        *(range(0, n, step) for n, step in zip(array.shape[1:], others, strict=True)),
    )
    for place in places:
        if array.id.get_chunk_info_by_coord(place).byte_offset is not None:
            mask, data = array.id.read_direct_chunk(place)
            if not mask & unpacked and _inflated(data, limit) > limit:
                raise ValueError(f"a chunk of {len(data)} bytes unfolds beyond its shape and type")


def _inflated(data: bytes, limit: int) -> int:
    return len(zlib.decompressobj().decompress(data, limit + 1))


@contextmanager
def _safetensors(source: Source) -> Iterator[Arrays]:
    """`classes` and `members` are JSON lists in the metadata."""
    with source.needs("safetensors").safe_open(source.path, framework="np") as file:
        tensors, metadata = list(file.keys()), file.metadata() or {}
        names = {key: metadata[key] for key in ("classes", "members") if key in metadata}

        def look(name: str) -> StoredArray:
            if name not in tensors:
                return StoredArray.held(source, np.array(json.loads(names[name]), dtype=np.str_))
            part = file.get_slice(name)
            kind = _SAFETENSORS.fullmatch(part.get_dtype())
            if kind is None:
                came = f"{name!r} of type {part.get_dtype()}"
                raise source.refuse("must hold numbers that numpy knows", came, "Save float32.")
            dtype = np.dtype(f"{kind[1].lower()}{int(kind[2]) // 8}" if kind[1] else "?")
            shape = tuple(part.get_shape())
            return StoredArray(source, shape, dtype, lambda i, j: np.asarray(part[i:j]))

        yield {name: partial(look, name) for name in (*tensors, *names)}


def _sliced(source: Source, array: Any) -> StoredArray:
    """An array of HDF5 or Zarr, which is read by slicing."""
    shape, dtype = tuple(array.shape or ()), array.dtype
    extra = n_bytes(array.chunks, dtype) if array.chunks else 0
    return StoredArray(source, shape, dtype, lambda i, j: np.asarray(array[i:j]), extra)


# Zarr: known codecs only, and every chunk is checked before it is decoded

_METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
#: A chunk may unfold to this multiple of what its shape and type declare, since filters may widen it.
_WIDENED = 8
#: Bytes allowed for a string of variable length.
_STRING = 4096
#: Offset of an inner chunk that a shard does not have.
_ABSENT = 2**64 - 1


@contextmanager
def _zarr(source: Source) -> Iterator[Arrays]:
    """A folder or a zip; an array without a group is called probs."""
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
    checks: dict[str, Callable[[bytes, Any], None]] = {}

    class CheckedStore(storage.WrapperStore):  # type: ignore[misc, name-defined]
        """A store that looks at every chunk before zarr's codecs do: their C code believes it."""

        async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
            buffer = await super().get(key, prototype, byte_range)
            array = "" if "" in checks else key.partition("/")[0]
            if buffer is not None and array in checks and not key.endswith(_METADATA):
                checks[array](buffer.to_bytes(), byte_range)
            return buffer

    def look(array: Any) -> StoredArray:
        checks[array.path] = _check_of(source, array)
        return _sliced(source, array)

    with closing(CheckedStore(store)) as checked:
        root = zarr.open(store=checked, mode="r")
        # One by one: if zarr opens all at once and two are damaged, asyncio prints a traceback.
        alone = isinstance(root, zarr.Array)
        found = {"probs": root} if alone else {name: root.get(name) for name in children}
        arrays = {name: each for name, each in found.items() if isinstance(each, zarr.Array)}
        yield {name: partial(look, array) for name, array in arrays.items()}


def _check_of(source: Source, array: Any) -> Callable[[bytes, Any], None]:
    """The check of a chunk, or of a byte range of a shard.

    An array that needs other codecs than Zarr's own, or unpacks in several steps, is refused.
    """
    metadata = array.metadata.to_dict()
    codecs = metadata.get("codecs")
    if codecs is None:  # version 2 of the format
        codecs = [*(metadata["filters"] or ()), metadata["compressor"]]
    shard: dict[str, Any] = {}
    if len(codecs) == 1 and codecs[0] and _name(codecs[0]) == "sharding_indexed":
        shard = codecs[0]["configuration"]
        codecs = shard["codecs"]
    names = [_name(each) for each in codecs if each]
    if "pickle" in names:
        raise source.python_objects()
    index = [_name(each) for each in shard.get("index_codecs", ())]
    usual = not shard or (index == ["bytes", "crc32c"] and shard["index_location"] == "end")
    summed = names[-1:] == ["crc32c"]
    packed = names[:-1] if summed else names
    if not usual or not _KNOWN.issuperset(names) or not _UNFOLDED.keys().isdisjoint(packed[:-1]):
        came = f"the codecs {', '.join([*names, *index])[:200]!r}"
        repair = "Write it again with one compressor, such as zstd, as the last codec."
        raise source.refuse("must be packed by zarr's own codecs in the usual way", came, repair)
    size_of = _UNFOLDED.get(packed[-1]) if packed else None
    itemsize = _STRING if array.dtype.kind in "OT" else array.dtype.itemsize
    limit = _WIDENED * itemsize * math.prod(array.chunks)
    n_inner = math.prod(map(operator.floordiv, array.shards, array.chunks)) if shard else 0

    def check_chunk(data: bytes) -> None:
        # A checksum is the last four bytes.
        if size_of is not None and size_of(data[:-4] if summed else data, limit) > limit:
            raise ValueError(f"a chunk of {len(data)} bytes unfolds beyond its shape and type")

    def check(data: bytes, byte_range: Any) -> None:
        if not n_inner or (byte_range is not None and not hasattr(byte_range, "suffix")):
            check_chunk(data)
        elif byte_range is None:  # a whole shard; its end alone is the index
            ends = np.frombuffer(data[-16 * n_inner - 4 : -4], dtype="<u8").tolist()
            for offset, length in zip(ends[::2], ends[1::2], strict=True):
                if offset != _ABSENT:
                    check_chunk(data[offset : offset + length])

    return check


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
    "zlib": _inflated,
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

ARRAYS: dict[str, Callable[[Source], AbstractContextManager[Arrays]]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".h5": _hdf5,
    ".hdf5": _hdf5,
    ".zarr": _zarr,
    ".safetensors": _safetensors,
}
