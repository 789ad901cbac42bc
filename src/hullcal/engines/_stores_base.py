"""What a store is: paths and sizes on one side, rows on the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError, refusal
from hullcal.engines._stores_sizes import Shape, check_possible

Array = NDArray[Any]


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
            check_possible(shard.path, shard.shape, shard.dtype)
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
        probs: list[tuple[Path, Array]] = []
        labels: list[tuple[Path, Array]] = []
        begin = 0
        for shard in self.shards:
            end = begin + shard.shape[0]
            if begin < last and first < end:
                with readable(shard.path):
                    some, their = shard.read(max(first, begin) - begin, min(last, end) - begin)
                probs.append((shard.path, some))
                if their is not None:
                    labels.append((shard.path, their))
            begin = end
        return _joined("probs", probs), _joined("labels", labels) if labels else None


def _joined(name: str, parts: list[tuple[Path, Array]]) -> Array:
    """Parts one after the other; those of no rows tell nothing, not even their type."""
    parts = [(path, part) for path, part in parts if part.size] or parts[:1]
    start, first = parts[0]
    for path, part in parts[1:]:
        if (part.shape[1:], _family(part)) != (first.shape[1:], _family(first)):
            shown = (f"{each.dtype} of shape {each.shape}" for each in (part, first))
            came = "{} in {!r} and {} in {!r}".format(next(shown), str(path), *shown, str(start))
            raise refusal(name, "must be alike in all shards", came, "Write all shards alike.")
    return first if len(parts) == 1 else np.concatenate([part for _, part in parts])


def _family(array: Array) -> str:
    """Types that can stand side by side and still mean what they meant."""
    families = {"numbers": "biufc", "text": "OSTU"}
    return next((name for name in families if array.dtype.kind in families[name]), str(array.dtype))


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
    except Exception as error:
        # Of a folder that is there, something inside may be missing.
        if isinstance(error, FileNotFoundError) and not path.exists():
            repair = "Workers read for themselves: put it where each of them finds it by this path."
            came = f"no file {str(path)!r}"
            raise refusal("probs", "must name files that workers can see", came, repair) from error
        reason = " ".join(str(error).split())[:200]
        came = f"{type(error).__name__} ({reason or 'no further word'}) from {str(path)!r}"
        repair = "The file is damaged, cut short or of another kind. Write it again."
        raise refusal("probs", "must name readable files", came, repair) from error


def text(array: Array) -> Array:
    """Give text as numpy's strings; bytes are taken as UTF-8, numbers are left alone."""
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8")
    return array.astype(np.str_) if array.dtype.kind in "OT" else array
