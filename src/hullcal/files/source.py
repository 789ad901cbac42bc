"""Which file is being read, for which parameter, and what to say when that fails?"""

from __future__ import annotations

import importlib
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hullcal._validation import InvalidInputError, refusal

__all__ = ["Source"]


@dataclass(frozen=True)
class Source:
    """A file named by the user.

    Attributes
    ----------
    path : Path
    parameter : str
        The parameter that named it, for messages.
    """

    path: Path
    parameter: str = "path"

    @classmethod
    def of(cls, path: Any, parameter: str = "path") -> Source:
        """Take a path as users write it; what is no path is refused."""
        try:
            text = os.fsdecode(path)
        except TypeError as error:
            came = f"an object of type {type(path).__name__}"
            repair = "Pass a string or a `pathlib.Path`; arrays go to `ClassifierSet` directly."
            raise refusal(parameter, "must be the path of a file", came, repair) from error
        if not text or "\0" in text:
            raise refusal(parameter, "must be the path of a file", repr(text), "Name a file.")
        if not text.startswith("~"):
            return cls(Path(text), parameter)
        try:
            return cls(Path(text).expanduser(), parameter)
        except RuntimeError as error:  # of a user whom nobody knows
            repair = "Name the folder; where `~` is part of a name, write `./~`."
            raise refusal(parameter, "must be the path of a file", repr(text), repair) from error

    @property
    def shown(self) -> str:
        """The path as typed, with control characters escaped."""
        return repr(str(self.path))

    @property
    def suffix(self) -> str:
        """Ending of the name, in lower case."""
        return self.path.suffix.lower()

    def refuse(self, rule: str, came: str, repair: str) -> InvalidInputError:
        """Build the error that says what is wrong with this file."""
        return refusal(self.parameter, rule, f"{came} in {self.shown}", repair)

    def python_objects(self, name: str | None = None) -> InvalidInputError:
        """Build the error for a file, or an array of it, that could run code when it is read."""
        rule = "must hold plain arrays, since unpickling can run any code"
        if name is not None:
            came = f"an array {name!r} that contains Python objects (dtype object)"
            repair = (
                f"Save `{name}.astype(str)` if it holds names, `{name}.astype(float)` if numbers."
            )
            return self.refuse(rule, came, repair)
        repair = "Save arrays of numbers or strings, as `np.savez(file, probs=p, labels=y)` does."
        return self.refuse(rule, "a file that contains Python objects", repair)

    def check_kind(self, *, folder_allowed: bool = False) -> None:
        """Refuse what is missing, empty, a folder or no regular file, before it is opened."""
        with self.guarded():
            status = self.path.stat()
        rule, mode = "must be a readable file", status.st_mode
        if stat.S_ISDIR(mode):
            if not folder_allowed:
                raise self.refuse(rule, "a folder", "Name the file inside it.")
        elif not stat.S_ISREG(mode):  # a pipe would wait for ever, a device never end
            raise self.refuse(rule, "a pipe or device", "Save it to a regular file first.")
        elif status.st_size == 0:
            raise self.refuse(rule, "an empty file", "Write it again.")

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Turn whatever a library raises about this file into an error that names the file."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a library's notes on how the file was written
                yield
        except InvalidInputError:
            raise
        except FileNotFoundError as error:
            if self.path.exists():  # something inside it is missing, as in an empty Zarr folder
                raise self._unreadable(error) from error
            raise self.refuse("must exist", "no file", "Check the spelling.") from error
        except PermissionError as error:
            came = "no permission to read"
            raise self.refuse("must be a readable file", came, "Change its mode.") from error
        except MemoryError as error:
            repair = "Use `.npy`, which is mapped and not read."
            raise self.refuse("must fit into memory", "more than that", repair) from error
        except Exception as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> InvalidInputError:
        reason = " ".join(str(error).split())[:200]
        came = f"{type(error).__name__}: {reason or 'no further word'}"
        repair = f"The file is damaged, cut short, or no `{self.suffix}` file. Write it again."
        return self.refuse(f"must be a readable `{self.suffix}` file", came, repair)

    def needs(self, module: str) -> Any:
        """Import an optional package, or say how to get it."""
        try:
            return importlib.import_module(module)
        except ImportError as error:
            package = module.split(".")[0]
            repair = f"Install it with `pip install {package}`."
            rule = f"needs the package {package} for `{self.suffix}` files"
            raise self.refuse(rule, f"no {package}: {error}", repair) from error
