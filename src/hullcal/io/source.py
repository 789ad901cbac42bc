"""A file that the user named: what is wrong with it, whether it fits into memory, what it held."""

from __future__ import annotations

import importlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from hullcal._validation import InvalidInputError, refusal
from hullcal.words import printable

__all__ = ["Dataset", "Source", "available"]

#: Limit, use and droppable cache of a container, by version of its control groups.
_CONTAINERS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    (
        "/sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)


@dataclass(frozen=True)
class Source:
    """A file, and the parameter that named it; both appear in every message."""

    path: Path
    parameter: str = "path"

    @classmethod
    def of(cls, path: Any, parameter: str = "path") -> Source:
        """Take a path as users write it; refuse what is no path."""
        rule = "must be the path of a file"
        try:
            text = os.fsdecode(path)
        except TypeError as error:
            came = f"an object of type {type(path).__name__}"
            repair = "Pass a string or a `pathlib.Path`; arrays go to `ClassifierSet` directly."
            raise refusal(parameter, rule, came, repair) from error
        if not text or "\0" in text:
            raise refusal(parameter, rule, repr(text), "Name a file.")
        try:
            return cls(Path(text).expanduser(), parameter)
        except RuntimeError as error:  # unknown user
            repair = "Name the folder; where `~` is part of a name, write `./~`."
            raise refusal(parameter, rule, repr(text), repair) from error

    @property
    def shown(self) -> str:
        """The path with control characters escaped."""
        return repr(str(self.path))

    @property
    def suffix(self) -> str:
        """Ending of the name, in lower case."""
        return self.path.suffix.lower()

    def refuse(self, rule: str, came: str, repair: str) -> InvalidInputError:
        """Build the error that says what is wrong with this file."""
        return refusal(self.parameter, rule, f"{came} in {self.shown}", repair)

    def python_objects(self, name: str | None = None) -> InvalidInputError:
        """Build the error for a file, or an array in it, that could run code when read."""
        came = "a file that contains Python objects"
        repair = "Save arrays of numbers or strings, as `np.savez(file, probs=p, labels=y)` does."
        if name is not None:
            came = f"an array {name!r} that contains Python objects (dtype object)"
            repair = "Save `.astype(str)` of it if it holds names, `.astype(float)` if numbers."
        return self.refuse(
            "must hold plain arrays, since unpickling can run any code", came, repair
        )

    def check_kind(self, *, folder_allowed: bool = False) -> None:
        """Refuse what is missing, empty, a folder or no regular file, before it is opened."""
        with self.guarded():
            status = self.path.stat()
        rule = "must be a readable file"
        if stat.S_ISDIR(status.st_mode):
            if not folder_allowed:
                raise self.refuse(rule, "a folder", "Name the file inside it.")
            with self.guarded():
                self._check_inside(os.path.realpath(self.path))
        elif not stat.S_ISREG(status.st_mode):  # a pipe would block, a device never end
            raise self.refuse(rule, "a pipe or device", "Save it to a regular file first.")
        elif status.st_size == 0:
            raise self.refuse(rule, "an empty file", "Write it again.")

    def _check_inside(self, folder: str) -> None:
        """Refuse pipes, devices and links out of the folder: data of others, or reads without end."""
        root = os.path.join(os.path.realpath(self.path), "")
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    self._check_inside(entry.path)
                    continue
                own = entry.is_file(follow_symlinks=False)
                if not own and not (
                    entry.is_symlink() and os.path.realpath(entry.path).startswith(root)
                ):
                    came = f"a pipe or device, or a link out of it, {entry.name!r}"
                    repair = "Copy the data there."
                    raise self.refuse("must hold its own regular files", came, repair)

    def check_fits(self, needed: int) -> None:
        """Refuse to read more bytes than the memory that is left."""
        left = available()
        if left is not None and needed > left:
            came = f"{needed / 1e9:.3g} GB needed and {left / 1e9:.3g} GB available"
            repair = "Save the predictions as one `.npy` array, which is mapped and not read."
            raise self.refuse("must fit into memory", came, repair)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Turn whatever a library raises about this file into an error that names the file."""
        try:
            yield
        except InvalidInputError:
            raise
        except PermissionError as error:
            came = "no permission to read"
            raise self.refuse("must be a readable file", came, "Change its mode.") from error
        except MemoryError as error:
            repair = "Use `.npy`, which is mapped and not read."
            raise self.refuse("must fit into memory", "more than that", repair) from error
        except Exception as error:
            # In a folder that exists, something inside may be missing.
            if isinstance(error, FileNotFoundError) and not self.path.exists():
                repair = "Check the spelling; if workers read it, each needs it under this path."
                raise self.refuse("must exist", "no file or folder", repair) from error
            reason = printable(" ".join(str(error).split())[:200])
            came = f"{type(error).__name__}: {reason or 'no further message'}"
            repair = f"The file is damaged, cut short, or no `{self.suffix}` file. Write it again."
            rule = f"must be a readable `{self.suffix}` file"
            raise self.refuse(rule, came, repair) from error

    def needs(self, module: str) -> Any:
        """Import an optional package, or say how to get it."""
        try:
            return importlib.import_module(module)
        except ImportError as error:
            package = module.split(".")[0]
            repair = f"Install it with `pip install {package}`."
            rule = f"needs the package {package} for `{self.suffix}` files"
            raise self.refuse(rule, f"no {package}: {error}", repair) from error


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """What the files held: shapes are checked, values are not (`ClassifierSet` does that).

    Attributes
    ----------
    probs : ndarray of shape (n_samples, n_members, n_classes) or (n_samples, n_classes)
        Read-only; a memory map for `.npy`.
    labels : ndarray, or None
        As the file holds them: positions, names, or one-hot rows.
    classes : tuple, or None
        Names of the classes, in the order of the last axis.
    members : tuple of str, or None
        Names of the members, in the order of the middle axis.
    sources : tuple of str
        The files, as given.
    """

    probs: NDArray[Any]
    labels: NDArray[Any] | None = None
    classes: tuple[Any, ...] | None = None
    members: tuple[str, ...] | None = None
    sources: tuple[str, ...] = ()


def available() -> int | None:
    """Bytes that this process may still take; None where the system does not tell."""
    return min(
        (left for left in (_of_machine(), _of_container()) if left is not None), default=None
    )


def _of_machine() -> int | None:
    with suppress(OSError, ValueError, IndexError, KeyError):
        return _numbers("/proc/meminfo")["MemAvailable:"] * 1024
    with suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _of_container() -> int | None:
    for folder, limit, used, cached in _CONTAINERS:
        # Without a limit its file says "max", which is no number.
        with suppress(OSError, ValueError, IndexError, KeyError):
            most = int(Path(folder, limit).read_text(encoding="ascii"))
            taken = int(Path(folder, used).read_text(encoding="ascii"))
            # Cached files count as taken, but the system can drop them.
            return max(0, most - taken + _numbers(f"{folder}/memory.stat")[cached])
    return None


def _numbers(path: str) -> dict[str, int]:
    lines = Path(path).read_text(encoding="ascii").splitlines()
    return {words[0]: int(words[1]) for words in map(str.split, lines)}
