"""A disk that fails at the n-th call: the calls by which a folder is changed, counted and spoiled."""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

__all__ = ["FAULTS", "Disk", "Fault"]


@dataclass(frozen=True)
class Fault:
    """What the call gets instead of what it asked for.

    Attributes
    ----------
    number : int or None
        The error; None if half of the bytes are written and the call says so, which is none.
    lasting : bool
        Whether all later calls fail as well, as on a disk that stays full.
    torn : bool
        Whether half of the bytes are written before the error.
    """

    number: int | None
    lasting: bool = False
    torn: bool = False


FAULTS = {
    "full": Fault(errno.ENOSPC),
    "full from then on": Fault(errno.ENOSPC, lasting=True),
    "full in the middle of a write": Fault(errno.ENOSPC, lasting=True, torn=True),
    "broken": Fault(errno.EIO),
    "broken from then on": Fault(errno.EIO, lasting=True, torn=True),
    "short": Fault(None),
}
_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


@dataclass
class Disk:
    """The disk under a folder, whose call number `n` fails; with n = None it only counts.

    Calls on other files pass: what numba keeps is not ours, and has its own test.

    Attributes
    ----------
    calls : list of str
        What was asked for so far.
    failed : list of str
        What was refused, or cut short.
    """

    folder: Path
    fault: Fault
    n: int | None = None
    calls: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    _own: set[int] = field(default_factory=set)

    def spoils(self, name: str, size: int = 0) -> int | None:
        """Count a call; raise its error, or give the number of bytes that it may write."""
        if self.fault.number is None and name != "write":
            return None
        self.calls.append(name)
        place = len(self.calls) - 1
        hit = self.n is not None and (place == self.n or (self.fault.lasting and place > self.n))
        # To give space back needs none.
        if not hit or (self.fault.number == errno.ENOSPC and name == "shrink"):
            return None
        self.failed.append(name)
        if self.fault.number is None or (self.fault.torn and name == "write" and place == self.n):
            return max(1, size // 2)
        raise OSError(self.fault.number, os.strerror(self.fault.number))

    def holds(self, path: Any) -> bool:
        """Whether a path or an open file is on this disk."""
        if isinstance(path, int):
            return path in self._own
        return Path(os.path.abspath(os.fsdecode(path))).is_relative_to(self.folder)

    @contextlib.contextmanager
    def mounted(self) -> Iterator[None]:
        """Let the calls of this process go through here."""
        with contextlib.ExitStack() as stack:
            for name in ("mkdir", "fsync", "replace", "rename", "link", "posix_fallocate"):
                stack.enter_context(mock.patch.object(os, name, self._counted(name)))
            for name in ("truncate", "ftruncate"):
                stack.enter_context(mock.patch.object(os, name, self._counted(name, "shrink")))
            for name in ("open", "close", "write", "fdopen"):
                own = getattr(self, f"_{name}")
                stack.enter_context(mock.patch.object(os, name, own(getattr(os, name))))
            yield

    def _counted(self, name: str, called: str | None = None) -> Any:
        real = getattr(os, name)

        def counted(path: Any, *arguments: Any, **options: Any) -> Any:
            if self.holds(path):
                self.spoils(called or name)
            return real(path, *arguments, **options)

        return counted

    def _open(self, real: Any) -> Any:
        def opened(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
            if not self.holds(path):
                return real(path, flags, *arguments, **options)
            if flags & _CHANGES:
                self.spoils("open")
            file: int = real(path, flags, *arguments, **options)
            self._own.add(file)
            return file

        return opened

    def _close(self, real: Any) -> Any:
        def closed(file: int) -> None:
            self._own.discard(file)
            real(file)

        return closed

    def _write(self, real: Any) -> Any:
        def written(file: int, data: Any) -> int:
            room = self.spoils("write", len(data)) if self.holds(file) else None
            return real(file, bytes(data)[:room])

        return written

    def _fdopen(self, real: Any) -> Any:
        def opened(file: int, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if not self.holds(file):
                return real(file, mode, *arguments, **options)
            kind = io.BufferedRandom if "+" in mode else io.BufferedWriter
            return kind(_File(self, file, mode.replace("b", "")))

        return opened


class _File(io.FileIO):
    """An open file of the disk; buffers above it see what a system call would tell them."""

    def __init__(self, disk: Disk, file: int, mode: str) -> None:
        self._disk = disk
        # Opening with "w+" would only matter for a name; a descriptor is what it is.
        super().__init__(file, mode)

    def write(self, data: Any) -> int:
        room = self._disk.spoils("write", len(data))
        return super().write(bytes(data)[:room])

    def truncate(self, size: int | None = None) -> int:
        self._disk.spoils("truncate")
        return super().truncate(size)

    def close(self) -> None:
        if not self.closed:
            self._disk._own.discard(self.fileno())
        super().close()
