"""Where do predictions go while they come in: memory, a temporary file, or the user's file?"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import tempfile
import weakref
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError
from hullcal.io.writing import check_output, put, temporary_beside

__all__ = ["Destination", "GrowingArray", "check_out"]


def check_out(out: Any, *, force: bool) -> Path | None:
    """Refuse a path that cannot become a new .npy file, before any work is done for it."""
    if out is None:
        return None
    try:
        path = check_output(out, force=force)
    except InvalidInputError as error:
        raise _of_out(error) from error
    if path.suffix.lower() != ".npy":
        raise InvalidInputError(
            f"`out` must end in `.npy`; got {path.name!r}. Other formats can be written from it."
        )
    return path


def _of_out(error: InvalidInputError) -> InvalidInputError:
    """The same rule, under the parameter of those who gather predictions."""
    return InvalidInputError(str(error).replace("`path`", "`out`", 1))


@dataclass(frozen=True)
class Destination:
    """What array predictions become, and where it may lie.

    Attributes
    ----------
    dtype : dtype
    memory_limit : int
        Bytes; a larger array goes to a file.
    out : Path or None
        The file it shall become.
    force : bool
        Whether `out` may be replaced.
    """

    dtype: np.dtype[Any]
    memory_limit: int
    out: Path | None = None
    force: bool = False

    def array(self, tail: tuple[int, ...], *, spool: bool = False) -> GrowingArray:
        """Begin the array with rows of this shape; a spool is only on the way to it."""
        return GrowingArray(tail, replace(self, out=None) if spool else self)


class GrowingArray:
    """An array that grows along its first axis, in memory up to a limit and in a file beyond.

    Parameters
    ----------
    tail : tuple of int
        Shape without the first axis.
    destination : Destination
        With `out` it is in a file from the start, under a temporary name until it is whole.
    """

    def __init__(self, tail: tuple[int, ...], destination: Destination) -> None:
        self._tail, self._dtype = tail, destination.dtype
        self._limit = destination.memory_limit
        self._out, self._force = destination.out, destination.force
        self._row_bytes = self._dtype.itemsize * int(np.prod(tail))
        self.array: NDArray[Any] = np.empty((0, *tail), self._dtype)
        self._file: BinaryIO | None = None
        self._path: Path | None = None
        self._offset = 0

    def reserve(self, n_rows: int) -> None:
        """Make room for at least so many rows; what was written stays."""
        if n_rows <= len(self.array):
            return
        n_rows = max(n_rows, 2 * len(self.array))
        if self._file is None and self._out is None and n_rows * self._row_bytes <= self._limit:
            self.array.resize((n_rows, *self._tail), refcheck=False)  # nobody else holds it yet
            return
        before = self.array if self._file is None else None
        self._file = self._file or self._open()
        self._map(self._file, n_rows)
        if before is not None:
            self.array[: len(before)] = before

    def _open(self) -> BinaryIO:
        self._path = temporary_beside(self._out or Path(tempfile.gettempdir()) / "predictions")
        # A file for nobody else, unless the user asked for it: then the mode is the user's own.
        mode = 0o600 if self._out is None else 0o666
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self._path, flags, mode)
        return os.fdopen(descriptor, "w+b")

    def _map(self, file: BinaryIO, n_rows: int) -> None:
        self.array = np.empty((0, *self._tail), self._dtype)  # a mapped file cannot change its size
        self._offset = len(self._header(n_rows))
        _allocate(file, self._offset + n_rows * self._row_bytes)
        shape = (n_rows, *self._tail)
        self.array = np.memmap(file, self._dtype, "r+", offset=self._offset, shape=shape)

    def _header(self, n_rows: int) -> bytes:
        """Header of the .npy file; numpy pads it so that its length is the same for all n_rows."""
        text = io.BytesIO()
        description = npy.dtype_to_descr(self._dtype)
        shape = (n_rows, *self._tail)
        npy.write_array_header_1_0(
            text, {"descr": description, "fortran_order": False, "shape": shape}
        )
        return text.getvalue()

    def finish(self, n_rows: int) -> NDArray[Any]:
        """Cut to the rows that were written and give the array, a memory map if it is in a file."""
        if self._file is None or self._path is None:
            result, self.array = self.array, np.empty((0, *self._tail), self._dtype)
            result.resize((n_rows, *self._tail), refcheck=False)
            return result
        self.array = np.empty((0, *self._tail), self._dtype)
        header = self._header(n_rows)
        assert len(header) == self._offset  # or it would run into the first row
        self._file.seek(0)
        self._file.write(header)
        self._file.truncate(len(header) + n_rows * self._row_bytes)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        if self._out is None:
            return self._temporary(self._path)
        try:
            put(self._path, self._out, force=self._force)
        except InvalidInputError as error:
            raise _of_out(error) from error
        # A link may stand for the file where it was until now.
        _remove(self._path, os.getpid())
        self._path = None
        return np.load(self._out, mmap_mode="r")  # type: ignore[no-any-return]

    def _temporary(self, path: Path) -> NDArray[Any]:
        """Map a file that goes when the last view of its array does."""
        array = np.load(path, mmap_mode="r+")
        weakref.finalize(array._mmap, _remove, path, os.getpid())
        self._path = None
        return array  # type: ignore[no-any-return]

    def discard(self) -> None:
        """Leave no file behind; after `finish` there is nothing to do."""
        self.array = np.empty((0, *self._tail), self._dtype)
        if self._file is not None:
            # What a full disk did not take is still in the buffer, and fails once more.
            with contextlib.suppress(OSError):
                self._file.close()
        if self._path is not None:
            _remove(self._path, os.getpid())


def _allocate(file: BinaryIO, size: int) -> None:
    """Take the space on disk now: a disk that is full later would kill the process, not raise."""
    file.truncate(size)
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise


def _remove(path: Path, owner: int) -> None:
    """Remove a file, unless this is a forked child that ends before its parent."""
    if os.getpid() == owner:
        with contextlib.suppress(OSError):
            path.unlink()
