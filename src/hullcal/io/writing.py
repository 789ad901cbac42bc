"""Files are written whole or not at all, and no spreadsheet takes their text for a formula."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hullcal._validation import check_flag
from hullcal.io.source import Source

#: Bytes of a name on all usual file systems.
_LONGEST = 255
# Spreadsheets take such a cell for a formula, also with full-width signs and after blanks.
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]")


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
        exists, regular = os.path.lexists(target), target.is_file()
        folder = target.parent.is_dir()
    if exists and not regular:
        raise source.refuse("must be a file", "a folder, device or link loop", "Name a file.")
    if exists and not force:
        repair = "Choose another name, or replace it with `force=True`."
        raise source.refuse("must not exist yet", "a file there already,", repair)
    if not folder:
        raise source.not_found()
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
        Whether an existing file may be replaced; its mode is kept.

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
    # Not made of the target's name, which may be as long as allowed.
    temporary = target.with_name(f".hullcal.{secrets.token_hex(8)}.tmp")
    try:
        # The mode follows the user's mask, which `tempfile` would narrow.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        if force:
            os.replace(temporary, target)
        else:
            try:
                os.link(temporary, target)
            except OSError:  # a file has appeared there, or the file system has no links
                check_output(target)
                os.replace(temporary, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    # The new name survives a power cut, where the system can do that.
    with contextlib.suppress(OSError):
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def as_text(cell: str) -> str:
    """Text as it is, or behind an apostrophe where it would be a formula.

    >>> as_text("ece_conf"), as_text("=1+1")
    ('ece_conf', "'=1+1")
    """
    return f"'{cell}" if _FORMULA.match(cell) else cell


def csv_line(cells: Iterable[str]) -> str:
    """One line of CSV; a line end inside a cell is quoted, whichever kind it is."""
    buffer = io.StringIO()
    # Only what is part of the writer's own line end is quoted.
    csv.writer(buffer, lineterminator="\r\n").writerow(cells)
    return buffer.getvalue().removesuffix("\r\n") + "\n"
