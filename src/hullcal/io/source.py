"""A file that the user named: what is wrong with it, whether it fits into memory, what it held."""

from __future__ import annotations

import importlib
import math
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError, refusal
from hullcal.words import printable

#: The control group of a container.
_GROUP = Path("/sys/fs/cgroup")
#: Bytes of a name, four for each character in numpy's strings.
_NAME = 2**14


@dataclass(frozen=True)
class Source:
    """A file, and the parameter that named it; both appear in every message."""

    path: Path
    parameter: str = "path"
    #: What it is called in messages, if not by its path.
    called: str = ""

    @classmethod
    def of(cls, path: Any, parameter: str = "path") -> Source:
        """Take a path as users write it; refuse what is no path."""
        if isinstance(path, Source):
            return path
        try:
            text = os.fsdecode(path)
            came = repr(text)
            if text and "\0" not in text:
                return cls(Path(text).expanduser(), parameter)
        except TypeError:
            came = f"an object of type {type(path).__name__}"
        except RuntimeError:  # the home of an unknown user
            pass
        repair = "Pass a string or a `pathlib.Path`; arrays go to `ClassifierSet` directly."
        raise refusal(parameter, "must be the path of a file", came, repair)

    def __str__(self) -> str:
        return self.called or str(self.path)

    @property
    def shown(self) -> str:
        """The path with control characters escaped."""
        return self.called or repr(str(self.path))

    @property
    def suffix(self) -> str:
        """Ending of the name, in lower case."""
        return self.path.suffix.lower()

    def refuse(self, rule: str, came: str, repair: str) -> InvalidInputError:
        """Build the error that says what is wrong with this file."""
        return refusal(self.parameter, rule, f"{came} in {self.shown}", repair)

    def not_found(self) -> InvalidInputError:
        """Build the error for a file that is not there, or for the folder that is not."""
        missing = self.path
        while missing.parent != missing and not missing.parent.exists():
            missing = missing.parent
        kind = "Folder" if missing != self.path else "File" if self.suffix else "File or folder"
        # What is called `probs` may be read by workers elsewhere.
        hint = ". Each worker needs it under this path" if self.parameter == "probs" else ""
        return InvalidInputError(f"{kind} not found: {printable(str(missing))}{hint}")

    def python_objects(self, name: str = "") -> InvalidInputError:
        """Build the error for a file, or an array in it, that could run code when read."""
        rule = "must hold plain arrays, since unpickling can run any code"
        came = f"{f'an array {name!r}' if name else 'a file'} that contains Python objects"
        repair = (
            f"Save numbers or strings (`{name}.astype(str)`), as `np.savez(file, probs=p)` does."
        )
        return self.refuse(rule, came, repair)

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

    def _check_inside(self, root: str) -> None:
        """Refuse pipes, devices and links out of the folder: data of others, or reads without end."""
        for folder, folders, files in os.walk(root):
            for name in (*folders, *files):
                place = os.path.join(folder, name)
                mode = os.lstat(place).st_mode
                own = stat.S_ISREG(mode) or stat.S_ISDIR(mode)
                # A pipe at the end of a link inside is met under its own name.
                linked = stat.S_ISLNK(mode) and os.path.realpath(place).startswith(root + os.sep)
                if not own and not linked:
                    came = f"a pipe or device, or a link out of it, {name!r}"
                    rule = "must hold its own regular files"
                    raise self.refuse(rule, came, "Copy the data there.")

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
        except Exception as error:
            rule = "must be a readable file"
            if isinstance(error, PermissionError):
                came, repair = "no permission to read", "Change its mode."
            elif isinstance(error, MemoryError):
                rule, came = "must fit into memory", "more than that"
                repair = "Use `.npy`, which is mapped and not read."
            # In a folder that exists, something inside may be missing.
            elif isinstance(error, FileNotFoundError) and not self.path.exists():
                raise self.not_found() from error
            else:
                rule = f"must be a readable `{self.suffix}` file"
                reason = printable(" ".join(str(error).split())[:200])
                came = f"{type(error).__name__}: {reason or 'no further message'}"
                kind = f"no `{self.suffix}` file"
                repair = f"The file is damaged, cut short, or {kind}. Write it again."
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


@dataclass(frozen=True)
class StoredArray:
    """An array that a file declares, of which some rows can be read."""

    source: Source
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    #: Reads the rows from `start` to `stop` - 1.
    rows: Callable[[int, int], NDArray[Any]]
    #: Bytes that reading takes beyond the rows, since a chunk is decoded whole; None if rows stay in
    #: the file, or are in memory.
    extra: int | None = 0

    @classmethod
    def held(cls, source: Source, array: NDArray[Any]) -> StoredArray:
        """An array in memory, or mapped to it."""
        return cls(source, array.shape, array.dtype, lambda i, j: array[i:j], None)

    def read(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Rows that fit into memory, text as numpy's strings; bytes are UTF-8, numbers as they are."""
        if not self.shape:
            raise ValueError("a single value where there should be a list")
        stop = self.shape[0] if stop is None else stop
        # Blanks take no room in a packed file, and much in memory.
        if self.dtype.kind in "SU" and self.dtype.itemsize > _NAME:
            came = f"text of type {self.dtype}"
            raise self.source.refuse(
                f"must hold names of at most {_NAME} bytes", came, "Shorten them."
            )
        if self.extra is not None:
            self.source.check_fits(
                n_bytes((stop - start, *self.shape[1:]), self.dtype) + self.extra
            )
        array = self.rows(start, stop)
        if array.dtype.kind == "S":
            return np.char.decode(array, "utf-8")
        return array.astype(np.str_) if array.dtype.kind in "OT" else array


def n_bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Memory of an array, in integers that cannot overflow; text of no bytes will take some."""
    return math.prod(int(length) for length in shape) * max(1, dtype.itemsize)


@dataclass(frozen=True)
class Parts:
    """Predictions, labels and names in an open file."""

    probs: StoredArray
    labels: StoredArray | None = None
    classes: tuple[Any, ...] | None = None
    members: tuple[str, ...] | None = None

    def read(
        self, start: int = 0, stop: int | None = None
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Predictions and labels of the rows from `start` to `stop` - 1, or to their own ends."""
        labels = None if self.labels is None else self.labels.read(start, stop)
        return self.probs.read(start, stop), labels


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
    left = []
    with suppress(OSError, ValueError, IndexError, KeyError):
        left.append(_numbers(Path("/proc/meminfo"))["MemAvailable:"] * 1024)
    # Without a limit its file says "max", which is no number.
    with suppress(OSError, ValueError, IndexError, KeyError):
        most, taken = (int((_GROUP / f"memory.{name}").read_text()) for name in ("max", "current"))
        # Cached files count as taken, but the system can drop them.
        left.append(max(0, most - taken + _numbers(_GROUP / "memory.stat")["inactive_file"]))
    return min(left, default=None)


def _numbers(path: Path) -> dict[str, int]:
    lines = path.read_text(encoding="ascii").splitlines()
    return {words[0]: int(words[1]) for words in map(str.split, lines)}
