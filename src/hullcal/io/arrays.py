"""Which of the arrays in a file are the predictions, labels and names?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal.files.memory import check_fits
from hullcal.files.source import Source
from hullcal.io.dataset import Parts, check_not_swapped, check_probs_shape

__all__ = ["Contents", "Opener", "Stored", "labels_among", "parts_among"]


@dataclass(frozen=True)
class Stored:
    """An array that a file declares and that nobody has read yet.

    Attributes
    ----------
    needed : int
        Bytes of memory that reading takes; 0 for a memory map.
    read : callable
        Reads it.
    """

    needed: int
    read: Callable[[], NDArray[Any]]

    @staticmethod
    def bytes_of(shape: tuple[int, ...], itemsize: int) -> int:
        """Memory of an array, in integers that cannot overflow."""
        return math.prod(int(length) for length in shape) * itemsize


class Contents(Mapping[str, Stored]):
    """The arrays of an open file by name, looked at one by one as they are asked for.

    Parameters
    ----------
    names : sequence of str
    look : callable
        Gives the stored array of a name.
    """

    def __init__(self, names: list[str], look: Callable[[str], Stored]) -> None:
        self._names, self._look = dict.fromkeys(names), look

    def __getitem__(self, name: str) -> Stored:
        if name not in self._names:
            raise KeyError(name)
        return self._look(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


Opener = Callable[[Source], AbstractContextManager[Contents]]


def parts_among(source: Source, contents: Contents, probs_key: str, labels_key: str) -> Parts:
    """Read predictions, labels and names from an open file.

    Parameters
    ----------
    source : Source
    contents : Contents
    probs_key, labels_key : str
        Names of the arrays. The only array in a file is the predictions, whatever its name.

    Returns
    -------
    Parts
    """
    probs_key = _key(source, contents, probs_key, "probs_key")
    if labels_key != "labels" and labels_key not in contents:
        raise _missing(source, contents, labels_key, "labels_key")
    wanted = [probs_key, *(k for k in (labels_key, "classes", "members") if k in contents)]
    stored = {key: contents[key] for key in dict.fromkeys(wanted)}
    check_fits(source, sum(each.needed for each in stored.values()))
    found = {key: each.read() for key, each in stored.items()}
    check_not_swapped(source, found, probs_key, labels_key)
    check_probs_shape(source, found[probs_key])
    classes = _names(source, found, "classes", probs_key)
    members = _names(source, found, "members", probs_key)
    return Parts(
        probs=found[probs_key],
        labels=_text(found[labels_key]) if labels_key in found else None,
        classes=classes,
        members=None if members is None else tuple(str(name) for name in members),
    )


def labels_among(source: Source, contents: Contents, labels_key: str) -> NDArray[Any]:
    """Read labels from an open file: the array of that name, or the only one."""
    stored = contents[_key(source, contents, labels_key, "labels_key")]
    check_fits(source, stored.needed)
    return _text(stored.read())


def _key(source: Source, contents: Contents, key: str, parameter: str) -> str:
    if key in contents:
        return key
    arrays = [name for name in contents if name not in ("classes", "members")]
    if len(arrays) == 1:
        return arrays[0]
    raise _missing(source, contents, key, parameter)


def _missing(source: Source, contents: Contents, key: str, parameter: str) -> Exception:
    known = ", ".join(repr(name) for name in list(contents)[:20]) or "none at all"
    repair = f"Choose one of them with `{parameter}`."
    return source.refuse(f"must hold an array {key!r}", f"the arrays {known}", repair)


def _names(
    source: Source, found: Mapping[str, NDArray[Any]], key: str, probs_key: str
) -> tuple[Any, ...] | None:
    if key not in found or key == probs_key:
        return None
    if found[key].ndim != 1:
        came = f"{key!r} of shape {found[key].shape}"
        raise source.refuse(f"must hold {key!r} with one axis", came, "Save a list of names.")
    return tuple(_text(found[key]).tolist())


def _text(array: NDArray[Any]) -> NDArray[Any]:
    """Give text as numpy's strings; bytes are taken as UTF-8, numbers are left alone."""
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8")
    return array.astype(np.str_) if array.dtype.kind in "OT" else array
