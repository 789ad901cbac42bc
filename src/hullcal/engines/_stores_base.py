"""What a store is: paths and sizes on one side, rows on the other."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError
from hullcal._validation.errors import refusal

Array = NDArray[Any]
Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Store(ABC):
    """Predictions that somebody else will read; small, and made to be sent around."""

    #: (n_samples, n_members, n_classes), or (n_samples, n_classes) for one member.
    shape: Shape
    dtype: np.dtype[Any]
    #: Whether there are labels beside the predictions.
    labelled: bool
    classes: tuple[Any, ...] | None = None
    members: tuple[str, ...] | None = None

    @property
    def n_samples(self) -> int:
        """Rows."""
        return self.shape[0]

    @property
    def n_members(self) -> int:
        """Classifiers."""
        return self.shape[1] if len(self.shape) == 3 else 1

    @property
    def n_classes(self) -> int:
        """Classes."""
        return self.shape[-1]

    @abstractmethod
    def read(self, first: int, last: int) -> tuple[Array, Array | None]:
        """Predictions and labels of the rows from `first` to `last` - 1, unchecked."""


@dataclass(frozen=True)
class Shard:
    """Consecutive rows in files of their own; a subclass knows how to read them."""

    path: Path
    shape: Shape
    dtype: np.dtype[Any]
    labelled: bool

    def read(self, first: int, last: int) -> tuple[Array, Array | None]:
        """Rows of this shard."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Shards(Store):
    """Shards one after the other."""

    shards: tuple[Shard, ...]

    @classmethod
    def of(cls, shards: Sequence[Shard], **names: Any) -> Shards:
        """Refuse shards that are no parts of one array."""
        start = shards[0]
        for shard in shards:
            for what in ("dtype", "labelled"):
                _agree(what, start, shard, getattr(start, what), getattr(shard, what))
            _agree("shape", start, shard, ("rows", *start.shape[1:]), ("rows", *shard.shape[1:]))
        n_samples = sum(shard.shape[0] for shard in shards)
        return cls(
            shape=(n_samples, *start.shape[1:]),
            dtype=start.dtype,
            labelled=start.labelled,
            shards=tuple(shards),
            **names,
        )

    def read(self, first: int, last: int) -> tuple[Array, Array | None]:
        probs, labels, begin = [], [], 0
        for shard in self.shards:
            end = begin + shard.shape[0]
            if begin < last and first < end:
                with readable(shard.path):
                    some, their = shard.read(max(first, begin) - begin, min(last, end) - begin)
                probs.append(some)
                labels.append(their)
            begin = end
        known = [part for part in labels if part is not None]
        together = probs[0] if len(probs) == 1 else np.concatenate(probs)
        return together, np.concatenate(known) if known else None


def _agree(what: str, one: Shard, other: Shard, expected: Any, came: Any) -> None:
    if expected == came:
        return
    found = f"{came} in {str(other.path)!r} and {expected} in {str(one.path)!r}"
    repair = "Write all shards alike."
    raise refusal("probs", f"must be shards that agree in `{what}`", found, repair)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn whatever a library raises about a file into an error that names the file."""
    try:
        yield
    except (InvalidInputError, MemoryError):
        raise
    except FileNotFoundError as error:
        repair = "Workers read for themselves: put it where each of them finds it under this path."
        came = f"no file {str(path)!r}"
        raise refusal("probs", "must name files that workers can see", came, repair) from error
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        came = f"{type(error).__name__} ({reason or 'no further word'}) from {str(path)!r}"
        repair = "The file is damaged, cut short or of another kind. Write it again."
        raise refusal("probs", "must name readable files", came, repair) from error


def needed(module: str, extra: str) -> Any:
    """Import an optional package, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        repair = f"Install it with `pip install 'hullcal[{extra}]'`."
        raise refusal("probs", f"needs the package {package}", f"no {package}", repair) from error


def python_objects(path: Path) -> InvalidInputError:
    """Build the error for a file that could run code when it is read."""
    rule = "must hold plain arrays, since unpickling can run any code"
    came = f"a file that contains Python objects: {str(path)!r}"
    return refusal("probs", rule, came, "Save arrays of numbers or strings.")


def text(array: Array) -> Array:
    """Give text as numpy's strings; bytes are taken as UTF-8, numbers are left alone."""
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8")
    return array.astype(np.str_) if array.dtype.kind in "OT" else array
