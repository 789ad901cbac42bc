"""A disk that fails at the n-th call: the calls by which a folder is changed, counted and spoiled."""

import contextlib
import errno
import functools
import io
import os
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock


@dataclass(frozen=True)
class Fault:
    """What the call gets instead of what it asked for.

    `number` is the error; None if half of the bytes are written and the call says so, which is none.
    `lasting`: all later calls fail as well, as on a disk that stays full. `torn`: half of the bytes
    are written before the error.
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
#: Functions of `os`, and how the calls are counted.
_COUNTED = {
    name: name for name in ["mkdir", "fsync", "replace", "rename", "link", "posix_fallocate"]
}
_COUNTED |= {"truncate": "shrink", "ftruncate": "shrink"}


@dataclass
class Disk:
    """The disk under a folder, whose call number `n` fails; with n = None it only counts.

    Calls on other files pass: what numba keeps is not ours, and has its own test. `calls` is what was
    asked for so far, `failed` what was refused or cut short.
    """

    folder: Path
    fault: Fault
    n: int | None = None
    calls: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    own: set[int] = field(default_factory=set)

    def spoils(self, name, size=0):
        """Count a call; raise its error, or give the number of bytes that it may write."""
        number = self.fault.number
        if number is None and name != "write":
            return None
        self.calls.append(name)
        place = len(self.calls) - 1
        hit = self.n is not None and (place == self.n or (self.fault.lasting and place > self.n))
        # To give space back needs none.
        if not hit or (number == errno.ENOSPC and name == "shrink"):
            return None
        self.failed.append(name)
        if number is None or (self.fault.torn and name == "write" and place == self.n):
            return max(1, size // 2)
        raise OSError(number, os.strerror(number))

    def holds(self, path):
        """Whether a path or an open file is on this disk."""
        if isinstance(path, int):
            return path in self.own
        return Path(os.path.abspath(os.fsdecode(path))).is_relative_to(self.folder)

    @contextlib.contextmanager
    def mounted(self):
        """Let the calls of this process go through here."""
        calls = {
            name: functools.partial(self._counted, called) for name, called in _COUNTED.items()
        }
        calls |= {name: getattr(self, f"_{name}") for name in ("open", "close", "write", "fdopen")}
        with contextlib.ExitStack() as stack:
            for name, call in calls.items():
                passed_on = functools.partial(call, getattr(os, name))
                stack.enter_context(mock.patch.object(os, name, passed_on))
            yield

    def _counted(self, called, real, path, *arguments, **options):
        if self.holds(path):
            self.spoils(called)
        return real(path, *arguments, **options)

    def _open(self, real, path, flags, *arguments, **options):
        if not self.holds(path):
            return real(path, flags, *arguments, **options)
        if flags & _CHANGES:
            self.spoils("open")
        file = real(path, flags, *arguments, **options)
        self.own.add(file)
        return file

    def _close(self, real, file):
        self.own.discard(file)
        real(file)

    def _write(self, real, file, data):
        room = self.spoils("write", len(data)) if self.holds(file) else None
        return real(file, bytes(data)[:room])

    def _fdopen(self, real, file, mode="r", *arguments, **options):
        if not self.holds(file):
            return real(file, mode, *arguments, **options)
        kind = io.BufferedRandom if "+" in mode else io.BufferedWriter
        opened = _File(file, mode.replace("b", ""))
        opened.disk = self
        return kind(opened)


class _File(io.FileIO):
    """An open file of the disk; buffers above it see what a system call would tell them."""

    def write(self, data):
        room = self.disk.spoils("write", len(data))
        return super().write(bytes(data)[:room])

    def truncate(self, size=None):
        self.disk.spoils("truncate")
        return super().truncate(size)

    def close(self):
        if not self.closed:
            self.disk.own.discard(self.fileno())
        super().close()
