"""One file or several become one set of predictions and labels."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import refusal
from hullcal.io.array_files import ARRAYS, Arrays, StoredArray
from hullcal.io.source import Dataset, Source
from hullcal.io.tables import TABLES, Table, label_values, labels_in, read_lines, read_table

_PICKLED = (".pkl", ".pickle", ".pt", ".pth", ".joblib")


def read(
    path: Any = None,
    *,
    member_files: Sequence[Any] = (),
    labels: Any = None,
    probs_key: str = "probs",
    labels_key: str = "labels",
    needs_labels: bool = True,
) -> Dataset:
    """Read predictions and labels from files; nothing is unpickled, nothing is modified.

    Parameters
    ----------
    path : str or path-like, optional
        One file with all members: `.npy`, `.npz`, `.h5`, `.hdf5`, `.zarr`, `.safetensors`, `.csv`
        or `.parquet`. Tables are in long form (columns row, member, class, probability, and
        optionally label) or in wide form (``member:class`` or ``member/class``, or ``p_class`` for
        one member, and optionally label); rows, members and classes keep the order in which they
        first appear, and names that are all integers become integers.
    member_files : sequence of str or path-like
        Instead of `path`, one file (n_samples, n_classes) per member, named after its file.
    labels : str or path-like, optional
        A file of labels, which then count instead of those beside the predictions: any of the
        above, or `.txt` with one label a line.
    probs_key, labels_key : str
        Names of the arrays in files that hold several; `labels_key` also names a column.
    needs_labels : bool
        If False, labels are neither checked nor given back.

    Returns
    -------
    Dataset

    Raises
    ------
    InvalidInputError
        If a file is missing, damaged, larger than memory, or holds something else.
    """
    files = _listed(member_files)
    if (path is None) == (not files):
        came = "neither" if path is None else "both"
        rule = "or `member_files` must be given, and not both"
        raise refusal("path", rule, came, "Name one file of all members, or one file a member.")
    beside = needs_labels and labels is None
    if path is not None:
        sources = [Source.of(path)]
        data = _read_one(sources[0], probs_key, labels_key, beside)
    else:
        sources = [Source.of(each, "member_files") for each in files]
        data = _stacked(
            sources, [_read_one(each, probs_key, labels_key, beside) for each in sources]
        )
    truth = data.labels if beside else None
    if labels is not None and needs_labels:
        sources = [*sources, Source.of(labels, "labels")]
        truth = read_labels(sources[-1], labels_key, data.classes)
    if truth is not None:
        _check_labels(sources[-1], truth.shape, data.probs.shape)
        truth.flags.writeable = False
    data.probs.flags.writeable = False
    return replace(data, labels=truth, sources=tuple(str(source.path) for source in sources))


def read_labels(source: Source, labels_key: str, classes: tuple[Any, ...] | None) -> NDArray[Any]:
    """Read labels by the ending of their file; `classes` tells names from positions."""
    _check(source, (*ARRAYS, *TABLES, ".txt"))
    if source.suffix == ".txt":
        with source.guarded():
            return label_values(read_lines(source), classes)
    with _opened(source) as found:
        if isinstance(found, Table):
            return label_values(labels_in(found, labels_key), classes)
        return found[_key(source, found, labels_key, "labels_key")]().whole(source)


def _read_one(source: Source, probs_key: str, labels_key: str, labelled: bool) -> Dataset:
    """Read predictions, and what else the file tells, by its ending."""
    _check(source, (*ARRAYS, *TABLES))
    with _opened(source) as found:
        if isinstance(found, Table):
            return read_table(found, labels_key)
        parts = Parts(source, found, probs_key, labels_key if labelled else None)
        probs, labels = parts.read(0, None)
        return Dataset(probs=probs, labels=labels, classes=parts.classes, members=parts.members)


def open_file(source: Source) -> AbstractContextManager[Table | Arrays]:
    """Open a file by its ending; a folder is a Zarr store."""
    openers: dict[str, Callable[[Source], AbstractContextManager[Table | Arrays]]]
    openers = {**ARRAYS, **TABLES}
    return openers.get(source.suffix, ARRAYS[".zarr"])(source)


@contextmanager
def _opened(source: Source) -> Iterator[Table | Arrays]:
    with source.guarded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a library's notes on how the file was written
        with open_file(source) as found:
            yield found


def _check(source: Source, known: tuple[str, ...]) -> None:
    if source.suffix in _PICKLED:
        raise source.python_objects()
    if source.suffix == "" and source.path.is_dir():
        repair = 'Shards are for the engine of Dask: pass their folder with `engine="dask"`.'
        raise source.refuse("must be a file, or a Zarr store", "a folder", repair)
    if source.suffix not in known:
        came = f"the ending {source.suffix!r}"
        raise source.refuse("must have a known ending", came, f"Known are {', '.join(known)}.")
    source.check_kind(folder_allowed=source.suffix == ".zarr")


class Parts:
    """Predictions, labels and names among the arrays of an open file, of which some rows can be read."""

    def __init__(
        self, source: Source, arrays: Arrays, probs_key: str, labels_key: str | None
    ) -> None:
        self._source = source
        self._key = _key(source, arrays, probs_key, "probs_key", labels_key)
        self._probs = arrays[self._key]()
        self.shape, self.dtype = self._probs.shape, self._probs.dtype
        self.labels: StoredArray | None = None
        if labels_key not in (None, "labels") and labels_key not in arrays:
            raise _missing(source, arrays, str(labels_key), "labels_key")
        if labels_key is not None and labels_key in arrays and labels_key != self._key:
            self.labels = arrays[labels_key]()
        self._check_probs(labels_key)
        if self.labels is not None:
            _check_labels(source, self.labels.shape, self.shape)
        self.labelled = self.labels is not None
        self.classes = self._names(arrays, "classes")
        members = self._names(arrays, "members")
        self.members = None if members is None else tuple(str(name) for name in members)

    def read(self, start: int, stop: int | None) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Predictions and labels of the rows from `start` to `stop` - 1, or to their own ends."""
        arrays = [self._probs] if self.labels is None else [self._probs, self.labels]
        ends = [(each, each.shape[0] if stop is None else stop) for each in arrays]
        self._source.check_fits(sum(each.needs(start, end) for each, end in ends))
        probs, *labels = (each.read(start, end) for each, end in ends)
        return probs, labels[0] if labels else None

    def _names(self, arrays: Arrays, key: str) -> tuple[Any, ...] | None:
        if key not in arrays or key == self._key:
            return None
        array = arrays[key]()
        # Names of no bytes take no room in a file, and a billion of them much in memory.
        if len(array.shape) != 1 or array.shape[0] > max(self.shape):
            came, repair = f"{key!r} of shape {array.shape}", "Save a list of names."
            raise self._source.refuse(f"must hold a name for each of the {key}", came, repair)
        return tuple(array.whole(self._source).tolist())

    def _check_probs(self, labels_key: str | None) -> None:
        shape, dtype = self.shape, self.dtype
        # Beyond addresses, whatever little is stored.
        size = math.prod(max(1, int(length)) for length in shape) * max(1, dtype.itemsize)
        if len(shape) not in (2, 3) or size > sys.maxsize:
            rule = "must hold predictions of shape (n_samples, n_members, n_classes)"
            came, repair = f"shape {shape}", "One classifier has (n_samples, n_classes)."
            if self.labels is not None:
                came += f" and labels of shape {self.labels.shape}"
                keys = f"`probs_key={labels_key!r}` and `labels_key={self._key!r}`"
                repair += f" If they are swapped, pass {keys}."
            raise self._source.refuse(rule, came, repair)
        if dtype.kind not in "biuf" and dtype.name != "bfloat16":
            repair = "Save probabilities as float32 or float64."
            raise self._source.refuse("must hold numbers", f"an array of type {dtype}", repair)


def _check_labels(source: Source, labels: tuple[int, ...], probs: tuple[int, ...]) -> None:
    """Refuse labels of another number; a wrong order of axes is left to `ClassifierSet`."""
    count = math.prod(labels)
    widths = (1, probs[-1]) if len(labels) == 2 else (1,)
    fitting = {n * width for n in probs[:2] for width in widths}
    if len(labels) not in (1, 2) or count not in fitting:
        rule = "must hold as many labels as there are instances, or one-hot rows"
        came = f"labels of shape {labels} for predictions of shape {probs}"
        raise source.refuse(rule, came, "Pass labels and predictions of the same rows.")


def _key(
    source: Source, arrays: Arrays, key: str, parameter: str, besides: str | None = None
) -> str:
    """The array of that name; else the only one, whatever its name.

    Beside labels it is the only one too, unless somebody named another.
    """
    if key in arrays:
        return key
    known = ("classes", "members") if key != "probs" else ("classes", "members", besides)
    others = [name for name in arrays if name not in known]
    if len(others or arrays) != 1:
        raise _missing(source, arrays, key, parameter)
    return next(iter(others or arrays))


def _missing(source: Source, arrays: Arrays, key: str, parameter: str) -> Exception:
    known = ", ".join(repr(name) for name in list(arrays)[:20]) or "none at all"
    repair = f"Choose one of them with `{parameter}`."
    return source.refuse(f"must hold an array {key!r}", f"the arrays {known}", repair)


# One file per member


def _listed(member_files: Any) -> list[Any]:
    if isinstance(member_files, str | bytes | os.PathLike):
        return [member_files]
    if member_files is None or isinstance(member_files, Iterable):
        return [] if member_files is None else list(member_files)
    came = f"an object of type {type(member_files).__name__}"
    raise refusal("member_files", "must be paths of files", came, "Pass a list of paths.")


def _stacked(sources: list[Source], members: list[Dataset]) -> Dataset:
    """Put members side by side; their files must agree in shape, labels and classes."""
    alone: list[NDArray[Any]] = []
    known: dict[str, Any] = {"shape": None, "labels": None, "classes": None}
    for source, member in zip(sources, members, strict=True):
        probs = member.probs
        if probs.ndim == 3 and probs.shape[1] != 1:
            rule, came = "must hold one member each", f"{probs.shape[1]} of them"
            raise source.refuse(rule, came, "Pass a file of several members as `path`.")
        alone.append(probs[:, 0] if probs.ndim == 3 else probs)
        own = {"shape": alone[-1].shape, "labels": member.labels, "classes": member.classes}
        for what, value in own.items():
            if known[what] is None:
                known[what] = value
            elif value is not None and not np.array_equal(known[what], value):
                others = ", ".join(each.shown for each in sources if each is not source)
                came = f"another {what} than in {others[:200]},"
                raise source.refuse(
                    f"must agree in {what}", came, "Predict the same rows with all."
                )
    sources[0].check_fits(sum(each.size for each in alone) * np.result_type(*alone).itemsize)
    # Named after their files; after the folder too where files have the same name.
    names = [source.path.stem for source in sources]
    if len(set(names)) < len(names):
        names = [f"{source.path.parent.name}/{source.path.stem}" for source in sources]
    earlier = [names[:i].count(name) for i, name in enumerate(names)]
    return Dataset(
        probs=np.stack(alone, axis=1),
        labels=known["labels"],
        classes=known["classes"],
        members=tuple(
            f"{name}-{i + 1}" if i else name for name, i in zip(names, earlier, strict=True)
        ),
    )
