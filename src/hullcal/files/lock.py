"""One folder, one process: a lock that dies with its holder."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from hullcal._validation import HullcalWarning, InvalidInputError

__all__ = ["locked"]

LOCK = ".lock"
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


@contextlib.contextmanager
def locked(folder: Path, parameter: str = "folder") -> Iterator[None]:
    """Hold a folder, or refuse it if another process does; the parameter is for that message.

    The system lets go of the lock when its holder ends in whatever way, so none is ever stale. The
    file stays: removing it would let two processes each lock a file of that name.
    """
    file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            _take(file)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                os.lseek(file, 0, os.SEEK_SET)
                holder = os.read(file, 20).decode(errors="replace").strip()
                raise InvalidInputError(
                    f"`{parameter}` must not be in use; got {str(folder)!r}, which process "
                    f"{holder or 'unknown'} works on. Wait for it, or choose another folder."
                ) from error
            warnings.warn(
                f"the file system of {folder} knows no locks; see that no other process uses it.",
                HullcalWarning,
                stacklevel=2,
            )
        # Only for the message above.
        with contextlib.suppress(OSError):
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
            os.write(file, str(os.getpid()).encode())
        yield
    finally:
        os.close(file)


if sys.platform == "win32":
    import msvcrt

    def _take(file: int) -> None:
        # Not the bytes that hold the process's number, which others must be able to read.
        os.lseek(file, 1000, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
