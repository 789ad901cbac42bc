"""One file or several become one set of predictions and labels."""

from __future__ import annotations

import operator
import os
import reprlib
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import refusal
from hullcal.io.array_files import ARRAYS, Arrays
from hullcal.io.source import Dataset, Parts, Source, n_bytes
from hullcal.io.tables import TABLES, Table, labels_in, parts_of

_PICKLED = (".pkl", ".pickle", ".pt", ".pth", ".joblib")


def read(
    path: Any = None,
    *,
    member_files: Sequence[Any] | None = (),
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
        first appear, and names that are all integers become integers. CSV may be separated by
        semicolons or tabs, with a decimal comma; row numbers of a data frame are left out.
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
    files: Any = () if member_files is None else member_files
    if not isinstance(files, Iterable | os.PathLike):
        came = f"an object of type {type(files).__name__}"
        raise refusal("member_files", "must be paths of files", came, "Pass a list of paths.")
    files = [files] if isinstance(files, str | bytes | os.PathLike) else files
    sources = [Source.of(each, "member_files") for each in files]
    if (path is None) == (not sources):
        came = "neither" if path is None else "both"
        rule = "or `member_files` must be given, and not both"
        raise refusal(
            "path", rule, came, "Name one file of all members, or one file for each member."
        )
    sources = sources or [Source.of(path)]
    beside = needs_labels and labels is None
    found = [_read_one(each, probs_key, labels_key, beside) for each in sources]
    data = found[0] if path is not None else _stacked(sources, found)
    truth = data.labels if beside else None
    if labels is not None and needs_labels:
        sources.append(Source.of(labels, "labels"))
        truth = read_labels(sources[-1], labels_key, data.classes)
    if truth is not None:
        truth.flags.writeable = False
    data.probs.flags.writeable = False
    return replace(data, labels=truth, sources=tuple(map(str, sources)))


def read_labels(source: Source, labels_key: str, classes: tuple[Any, ...] | None) -> NDArray[Any]:
    """Read labels by the ending of their file; `classes` tells names from positions."""
    _check(source, (*ARRAYS, *TABLES))
    with quietly(), _open(source) as file:
        if isinstance(file, Table):
            return labels_in(file, labels_key, classes)
        return file[_key(source, file, labels_key, "labels_key")]().read()


def _read_one(source: Source, probs_key: str, labels_key: str, labelled: bool) -> Dataset:
    """Read predictions, and what else the file tells, by its ending."""
    _check(source, tuple(ending for ending in (*ARRAYS, *TABLES) if ending != ".txt"))
    how = {"labelled": labelled, "long": True}
    with quietly(), opened(source, probs_key, labels_key, **how) as parts:
        probs, labels = parts.read()
        if source.suffix in TABLES and len(probs) == 0:
            raise source.refuse("must hold instances", "no line below the header", "Add some.")
        return Dataset(probs=probs, labels=labels, classes=parts.classes, members=parts.members)


@contextmanager
def opened(
    source: Source,
    probs_key: str = "probs",
    labels_key: str = "labels",
    *,
    labelled: bool = True,
    long: bool = False,
) -> Iterator[Parts]:
    """Open predictions by the ending of their file; tables of long form only if `long`."""
    with _open(source) as file:
        if isinstance(file, Table):
            yield parts_of(file, labels_key, long=long)
        else:
            yield _chosen(source, file, probs_key, labels_key if labelled else None)


@contextmanager
def _open(source: Source) -> Iterator[Table | Arrays]:
    """A file by its ending, or a Zarr store by any name."""
    kinds: dict[str, Any] = {**TABLES, **ARRAYS}
    with source.guarded(), kinds.get(source.suffix, ARRAYS[".zarr"])(source) as file:
        yield file


def quietly() -> AbstractContextManager[Any]:
    """Without a library's notes on how a file was written; not for threads, which share filters."""
    return warnings.catch_warnings(action="ignore")


def _check(source: Source, known: tuple[str, ...]) -> None:
    with source.guarded():
        source.path.stat()
    if source.suffix in _PICKLED:
        raise source.python_objects()
    if source.suffix == "" and source.path.is_dir():
        repair = 'Shards are for the engine of Dask: pass their folder with `engine="dask"`.'
        raise source.refuse("must be a file, or a Zarr store", "a folder", repair)
    if source.suffix not in known:
        came = f"the ending {source.suffix!r}"
        raise source.refuse("must have a known ending", came, f"Known are {', '.join(known)}.")
    source.check_kind(folder_allowed=source.suffix == ".zarr")


def _chosen(source: Source, arrays: Arrays, probs_key: str, labels_key: str | None) -> Parts:
    """Predictions, labels and names among the arrays of an open file."""
    key = _key(source, arrays, probs_key, "probs_key", labels_key)
    probs, labels = arrays[key](), None
    if labels_key not in (None, "labels") and labels_key not in arrays:
        raise _missing(source, arrays, str(labels_key), "labels_key")
    if labels_key in arrays and labels_key != key:
        labels = arrays[labels_key]()
    shape, dtype = probs.shape, probs.dtype
    # Beyond addresses, whatever little is stored.
    size = n_bytes(tuple(max(1, length) for length in shape), dtype)
    if len(shape) not in (2, 3) or size > sys.maxsize:
        rule = "must hold predictions of shape (n_samples, n_members, n_classes)"
        came, repair = f"shape {shape}", "One classifier has (n_samples, n_classes)."
        if labels is not None:
            came += f" and labels of shape {labels.shape}"
            keys = f"`probs_key={labels_key!r}` and `labels_key={key!r}`"
            repair += f" If they are swapped, pass {keys}."
        raise source.refuse(rule, came, repair)
    if dtype.kind not in "biuf" and dtype.name != "bfloat16":
        repair = "Save probabilities as float32 or float64."
        raise source.refuse("must hold numbers", f"an array of type {dtype}", repair)

    def names(of: str) -> tuple[Any, ...] | None:
        if of not in arrays or of == key:
            return None
        array = arrays[of]()
        if len(array.shape) != 1 or array.shape[0] > max(shape):
            came, repair = f"{of!r} of shape {array.shape}", "Drop the others."
            raise source.refuse(f"must hold a name for each of the {of}", came, repair)
        return tuple(array.read().tolist())

    classes, members = names("classes"), names("members")
    return Parts(probs, labels, classes, members and tuple(map(str, members)))


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


# Several files


def agreed(sources: Sequence[Source], declared: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What files say of the whole they are parts of; None says nothing, and all else must agree."""
    known, by = dict(declared[0]), dict.fromkeys(declared[0], sources[0])
    for source, own in zip(sources, declared, strict=True):
        for what, value in own.items():
            same = np.array_equal if isinstance(value, np.ndarray) else operator.eq
            if known[what] is None:
                known[what], by[what] = value, source
            elif value is not None and not same(value, known[what]):
                values = (
                    f"{reprlib.repr(known[what])} in {by[what].shown} and {reprlib.repr(value)}"
                )
                raise source.refuse(f"must agree in `{what}`", values, "Write all files alike.")
    return known


def _stacked(sources: list[Source], members: list[Dataset]) -> Dataset:
    """Put members side by side; their files must agree in shape, labels and classes."""
    alone, declared = [], []
    for source, member in zip(sources, members, strict=True):
        probs = member.probs
        if probs.ndim == 3 and probs.shape[1] != 1:
            rule, came = "must hold one member each", f"{probs.shape[1]} of them"
            raise source.refuse(rule, came, "Pass a file of several members as `path`.")
        alone.append(probs[:, 0] if probs.ndim == 3 else probs)
        own = {"shape": alone[-1].shape, "labels": member.labels, "classes": member.classes}
        declared.append(own)
    known = agreed(sources, declared)
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
