"""How do one file or several become one set of predictions and labels?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hullcal._validation import refusal
from hullcal.files.memory import check_fits
from hullcal.files.source import Source
from hullcal.io.dataset import Dataset, Parts, check_labels_shape
from hullcal.io.formats import read_labels, read_parts

__all__ = ["read"]


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
    if path is not None:
        sources = [Source.of(path)]
        parts = read_parts(sources[0], probs_key, labels_key)
    else:
        sources = [Source.of(each, "member_files") for each in files]
        parts = _stacked(sources, [_one_member(s, probs_key, labels_key) for s in sources])
    truth, asked = parts.labels if needs_labels else None, sources[0]
    if labels is not None and needs_labels:
        asked = Source.of(labels, "labels")
        truth = read_labels(asked, labels_key, parts.classes)
        sources = [*sources, asked]
    if truth is not None:
        check_labels_shape(asked, truth, parts.probs)
        truth.flags.writeable = False
    parts.probs.flags.writeable = False
    return Dataset(
        probs=parts.probs,
        labels=truth,
        classes=parts.classes,
        members=parts.members,
        sources=tuple(str(source.path) for source in sources),
    )


def _listed(member_files: Any) -> list[Any]:
    if member_files is None:
        return []
    if isinstance(member_files, str | bytes | os.PathLike):
        return [member_files]
    try:
        return list(member_files)
    except TypeError as error:
        came = f"an object of type {type(member_files).__name__}"
        repair = "Pass a list of paths."
        raise refusal("member_files", "must be paths of files", came, repair) from error


def _one_member(source: Source, probs_key: str, labels_key: str) -> Parts:
    parts = read_parts(source, probs_key, labels_key)
    shape = parts.probs.shape
    if len(shape) == 3 and shape[1] == 1:
        return Parts(probs=parts.probs[:, 0, :], labels=parts.labels, classes=parts.classes)
    if len(shape) != 2:
        rule = "must hold one member each, of shape (n_samples, n_classes)"
        raise source.refuse(rule, f"shape {shape}", "Pass a file of several members as `path`.")
    return parts


def _stacked(sources: list[Source], parts: list[Parts]) -> Parts:
    """Put members side by side; what their files say of labels and classes must agree."""
    first = parts[0].probs
    for source, part in zip(sources, parts, strict=True):
        if part.probs.shape != first.shape:
            came = f"shape {part.probs.shape}, and {first.shape} in {sources[0].shown}, not"
            raise source.refuse("must agree in shape", came, "Predict the same rows with all.")
    kind = np.result_type(*(part.probs.dtype for part in parts))
    check_fits(sources[0], first.size * len(parts) * kind.itemsize)
    labels = _agreed(sources, [part.labels for part in parts], "labels")
    classes = _agreed(sources, [part.classes for part in parts], "classes")
    return Parts(
        probs=np.stack([part.probs for part in parts], axis=1),
        labels=labels,
        classes=classes,
        members=_member_names([source.path for source in sources]),
    )


def _agreed(sources: list[Source], values: list[Any], what: str) -> Any:
    """Give what the files that speak of labels or classes all say; None if none does."""
    known = [i for i, value in enumerate(values) if value is not None]
    for i in known[1:]:
        if not np.array_equal(values[known[0]], values[i]):
            came = f"other {what} than {sources[known[0]].shown} has"
            repair = "Save the same rows and classes for all members."
            raise sources[i].refuse(f"must agree in {what}", came, repair)
    return values[known[0]] if known else None


def _member_names(paths: list[Path]) -> tuple[str, ...]:
    """Name members after their files; after the folder too where files have the same name."""
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        names = [f"{path.parent.name}/{path.stem}" for path in paths]
    taken: set[str] = set()
    for i, name in enumerate(names):
        number = 1
        while names[i] in taken:
            number += 1
            names[i] = f"{name}-{number}"
        taken.add(names[i])
    return tuple(names)
