"""Files of arrays: what they hold is known at once, rows are read on demand, nothing is unpickled."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from hullcal.io.source import Source

__all__ = ["ARRAYS", "Arrays", "StoredArray", "open_arrays"]

#: What `scipy.sparse.save_npz` writes for every kind of matrix.
_SPARSE = {"format", "shape", "data"}
#: How a pickle begins; `ndarray.dump` writes one under any name.
_PICKLE = b"\x80"
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
# fmt: off
_SAFETENSORS = {
    "F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1",
    "U64": "u8", "U32": "u4", "U16": "u2", "U8": "u1", "BOOL": "?",
}
# fmt: on


@dataclass(frozen=True)
class StoredArray:
    """An array that a file declares."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    #: Reads the rows from `start` to `stop` - 1; all of an array without axes.
    rows: Callable[[int, int], NDArray[Any]]
    #: Bytes that reading takes beyond the rows: a chunk is decoded whole.
    extra: int = 0
    #: Whether rows stay in the file until somebody looks at them.
    mapped: bool = False

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """These rows, text as numpy's strings; bytes are taken as UTF-8, numbers are left alone."""
        array = self.rows(start, stop)
        if array.dtype.kind == "S":
            return np.char.decode(array, "utf-8")
        return array.astype(np.str_) if array.dtype.kind in "OT" else array

    @property
    def kind(self) -> str:
        """Numbers, text, or another type: what can stand side by side in several files."""
        kind = self.dtype.kind
        return "numbers" if kind in "biuf" else "text" if kind in "OSTU" else str(self.dtype)

    def needs(self, start: int, stop: int) -> int:
        """Bytes of memory that these rows take."""
        if self.mapped:
            return 0
        return _bytes((stop - start, *self.shape[1:]), self.dtype) + self.extra


#: The arrays of an open file by name, each looked at when its function is called.
Arrays = dict[str, Callable[[], StoredArray]]


def _bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Memory of an array, in integers that cannot overflow."""
    return math.prod(int(length) for length in shape) * dtype.itemsize


def open_arrays(source: Source) -> AbstractContextManager[Arrays]:
    """Open a file by its ending; a folder is a Zarr store."""
    return _OPENERS.get(source.suffix, _zarr)(source)


@contextmanager
def _npy(source: Source) -> Iterator[Arrays]:
    with open(source.path, "rb") as file:
        shape, _, dtype = _header(source, file, source.path.stat().st_size)
    mapped = npy.open_memmap(source.path, mode="r")

    def rows(start: int, stop: int) -> NDArray[Any]:
        return mapped[start:stop] if shape else mapped

    yield {"probs": lambda: StoredArray(shape, dtype, rows, mapped=True)}


@contextmanager
def _npz(source: Source) -> Iterator[Arrays]:
    with zipfile.ZipFile(source.path) as archive:
        entries = archive.namelist()
        names = [entry.removesuffix(".npy") for entry in entries if entry.endswith(".npy")]
        if not names and any(entry.endswith(".pkl") for entry in entries):
            raise source.python_objects()
        if set(names) >= _SPARSE:
            repair = "Save `.toarray()` of it, or of each member."
            raise source.refuse("must hold dense arrays", "a sparse matrix", repair)
        yield {name: partial(_entry, source, archive, name) for name in names}


def _entry(source: Source, archive: zipfile.ZipFile, name: str) -> StoredArray:
    """One array of an archive, of which no more is in memory than the rows that are read."""
    entry = f"{name}.npy"
    with archive.open(entry) as file:
        shape, by_columns, dtype = _header(source, file, archive.getinfo(entry).file_size, name)
        begin = file.tell()
    size = _bytes(shape[1:], dtype)

    def rows(start: int, stop: int) -> NDArray[Any]:
        with archive.open(entry) as file:
            if by_columns or not shape:
                array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
            else:
                file.seek(begin + start * size)
                data = file.read((stop - start) * size)
                array = np.ndarray((stop - start, *shape[1:]), dtype, data)
            # Reading to the end also verifies the checksum.
            if file.read(1) and (by_columns or not shape or stop == shape[0]):
                raise ValueError(f"an array {name!r} longer than its header says")
        return array[start:stop] if by_columns else array

    return StoredArray(shape, dtype, rows, extra=_bytes(shape, dtype) if by_columns else 0)


def _header(
    source: Source, file: IO[bytes], size: int, name: str | None = None
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
    if min(shape, default=0) < 0 or _bytes(shape, dtype) > size - file.tell():
        source.check_fits(_bytes(shape, dtype))
        raise ValueError(f"shape {shape} of {dtype} declared, in {size} bytes")
    return shape, by_columns, dtype


@contextmanager
def _hdf5(source: Source) -> Iterator[Arrays]:
    """Arrays in groups are called ``group/name``."""
    h5py = source.needs("h5py")
    with h5py.File(source.path, "r") as file:
        names: list[str] = []

        def note(name: str, each: Any) -> None:
            if isinstance(each, h5py.Dataset):
                names.append(name)

        file.visititems(note)  # follows neither soft nor external links
        yield {name: partial(_dataset, source, h5py, file, name) for name in names}


def _dataset(source: Source, h5py: Any, file: Any, name: str) -> StoredArray:
    array = file[name]
    if array.external or array.is_virtual:
        came = f"an array {array.name!r} that points to other files"
        repair = "Write the numbers into the file itself."
        raise source.refuse("must hold its own data", came, repair)
    text = h5py.check_string_dtype(array.dtype)
    if text is not None and text.length is None:
        # They lie in a heap, in which a damaged file can send the library round for ever.
        came = f"strings of variable length {array.name!r}"
        repair = "Save them by `np.char.encode(names, 'utf-8')`, which gives them one length."
        raise source.refuse("must hold strings of fixed length", came, repair)
    if array.dtype.hasobject:
        raise source.python_objects()
    return _sliced(array)


@contextmanager
def _safetensors(source: Source) -> Iterator[Arrays]:
    """`classes` and `members` are JSON lists in the metadata."""
    safetensors = source.needs("safetensors")
    with safetensors.safe_open(source.path, framework="np") as file:
        tensors, metadata = list(file.keys()), file.metadata() or {}
        names = {key: metadata[key] for key in ("classes", "members") if key in metadata}

        def look(name: str) -> StoredArray:
            if name not in tensors:
                values = _listed(source, name, names[name])
                return StoredArray(values.shape, values.dtype, lambda start, stop: values)
            part = file.get_slice(name)
            dtype = _SAFETENSORS.get(part.get_dtype())
            if dtype is None:
                came = f"{name!r} of type {part.get_dtype()}"
                repair = "Normalise in float32 and save that."
                raise source.refuse("must hold numbers that numpy knows", came, repair)
            shape = tuple(part.get_shape())

            def rows(start: int, stop: int) -> NDArray[Any]:
                return np.asarray(part[start:stop] if shape else file.get_tensor(name))

            return StoredArray(shape, np.dtype(dtype), rows)

        yield {name: partial(look, name) for name in (*tensors, *names)}


def _listed(source: Source, key: str, text: str) -> NDArray[Any]:
    names = json.loads(text)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        came = f"{text[:60]!r}"
        raise source.refuse(f"must hold {key!r} as a JSON list of strings", came, "Write one.")
    return np.array(names, dtype=np.str_)


@contextmanager
def _zarr(source: Source) -> Iterator[Arrays]:
    from hullcal.io import zarr_files

    with zarr_files.opened(source) as (names, look):
        yield {name: partial(lambda name: _sliced(look(name)), name) for name in names}


def _sliced(array: Any) -> StoredArray:
    """An array of HDF5 or Zarr, which is read by slicing."""
    shape, dtype, chunks = tuple(array.shape or ()), array.dtype, array.chunks

    def rows(start: int, stop: int) -> NDArray[Any]:
        return np.asarray(array[start:stop] if shape else array[...])

    return StoredArray(shape, dtype, rows, extra=_bytes(chunks, dtype) if chunks else 0)


_OPENERS: dict[str, Callable[[Source], AbstractContextManager[Arrays]]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".h5": _hdf5,
    ".hdf5": _hdf5,
    ".zarr": _zarr,
    ".safetensors": _safetensors,
}
ARRAYS = tuple(_OPENERS)
