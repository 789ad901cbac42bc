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

#: The control group of a container.
_GROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Source:
    """A file, and the parameter that named it; both appear in every message."""

    path: Path
    parameter: str = "path"

    @classmethod
    def of(cls, path: Any, parameter: str = "path") -> Source:
        """Take a path as users write it; refuse what is no path."""
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
