"""How is a file written so that it is whole or not there at all?"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path
from typing import Any

from hullcal._validation import check_flag
from hullcal.files.source import Source

__all__ = ["check_output", "put", "temporary_beside", "write_atomic"]

#: Bytes of a name on all usual file systems.
_LONGEST = 255
#: What file systems say that know no hard links.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES)


def check_output(path: Any, *, force: bool = False) -> Path:
    """Refuse a path that cannot be written, before any work is done for it.

    Parameters
    ----------
    path : str or path-like
    force : bool
        Whether an existing file may be replaced.

    Returns
    -------
    Path
        Where to write; a symbolic link is followed.
    """
    check_flag(force, "force")
    source = Source.of(path)
    if os.name != "nt" and len(os.fsencode(source.path.name)) > _LONGEST:
        rule = f"must have a name of at most {_LONGEST} bytes"
        raise source.refuse(rule, "a longer one", "Choose a shorter name.")
    with source.guarded():
        target = Path(os.path.realpath(source.path))
        exists, regular = target.exists(), target.is_file()
        folder = target.parent.is_dir()
    if exists and not regular:
        raise source.refuse("must be a file", "a folder or device", "Name a file.")
    if exists and not force:
        repair = "Choose another name, or replace it with `force=True`."
        raise source.refuse("must not exist yet", "a file there already,", repair)
    if not folder:
        raise source.refuse("must lie in an existing folder", "no folder", "Make the folder.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        came = "no permission to write"
        raise source.refuse("must lie in a writable folder", came, "Choose another folder.")
    return target


def write_atomic(path: Any, content: str | bytes, *, force: bool = False) -> None:
    """Write a file under a temporary name in the same folder, then rename it.

    Parameters
    ----------
    path : str or path-like
    content : str or bytes
        Text is written as UTF-8.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InvalidInputError
        If the file exists, or its folder does not.
    OSError
        If the disk is full or fails; as after Ctrl-C, an old file is then as it was, and no
        temporary file stays behind.
    """
    target = check_output(path, force=force)
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    temporary = temporary_beside(target)
    try:
        # The mode is the user's own, which `tempfile` would narrow.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        put(temporary, target, force=force)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    _sync_folder(target.parent)


def temporary_beside(target: Path) -> Path:
    """A free name in the same folder; not made of the target's, which may be as long as any can be."""
    return target.with_name(f".hullcal.{secrets.token_hex(8)}.tmp")


def put(temporary: Path, target: Path, *, force: bool) -> None:
    """Give the file its name, unless somebody else took it meanwhile and may keep it."""
    if force:
        os.replace(temporary, target)
        return
    try:
        os.link(temporary, target)
    except FileExistsError:
        check_output(target)
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        check_output(target)
        os.replace(temporary, target)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
