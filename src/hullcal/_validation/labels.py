"""Which class came true for each sample: every way to say it, as class positions 0 to K - 1."""

from __future__ import annotations

import numbers
import reprlib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation.errors import InvalidInputError, refusal
from hullcal._validation.foreign import as_array
from hullcal._validation.probabilities import check_dtype

__all__ = ["check_classes", "check_labels", "label_array"]

# What several training frameworks write for "no label here".
IGNORE_INDEX = -100


def check_labels(
    labels: Any, *, n_samples: int, n_classes: int, classes: Any = None
) -> NDArray[np.int32]:
    """Validate labels and give them as positions of classes.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Positions 0 to K - 1 as integers of any width, booleans or integral floats, also as
        (n_samples, 1); one-hot rows (n_samples, n_classes); or names, with `classes`.
    n_samples, n_classes : int
        What the predictions say.
    classes : sequence of K hashables, optional
        The name of each class, in the order of the last axis of `probs`. If some name is a
        number, numeric labels are names; otherwise numeric labels are positions.

    Returns
    -------
    ndarray of int32 and shape (n_samples,)
        A new array; the input is not touched.

    Examples
    --------
    >>> check_labels(["cat", "dog"], n_samples=2, n_classes=2, classes=["dog", "cat"])
    array([1, 0], dtype=int32)
    """
    if classes is None and _in_range_already(labels, n_samples, n_classes):
        return labels.astype(np.int32)  # type: ignore[no-any-return]
    names = check_classes(classes, n_classes)
    array = label_array(labels)
    if names is not None and _are_names(array, names):
        return _look_up(_one_axis(array, n_samples, n_classes), names)
    _check_type(array)
    if array.ndim == 2 and array.shape[1] != 1:
        return _from_one_hot(array, n_samples, n_classes)
    positions = _one_axis(array, n_samples, n_classes)
    _check_integral(positions)
    _check_range(positions, n_classes)
    return positions.astype(np.int32)


def _in_range_already(labels: Any, n_samples: int, n_classes: int) -> bool:
    """Spot what nearly every call brings, an array of integers in range, at little cost."""
    return (
        type(labels) is np.ndarray
        and labels.dtype.kind in "iu"
        and labels.shape == (n_samples,)
        and n_samples > 0
        and bool(np.minimum.reduce(labels) >= 0)
        and bool(np.maximum.reduce(labels) < n_classes)
    )


def check_classes(classes: Any, n_classes: int) -> tuple[Hashable, ...] | None:
    """Validate the names of the classes.

    Parameters
    ----------
    classes : sequence of K distinct hashables, or None
        In the order of the last axis of `probs`.
    n_classes : int
        K.

    Returns
    -------
    tuple or None
        The names as python objects; None for None.
    """
    if classes is None:
        return None
    rule = f"must be a sequence of {n_classes} distinct class names"
    if isinstance(classes, Sequence) and not isinstance(classes, str | bytes):
        names = tuple(classes)
    elif hasattr(classes, "tolist") or hasattr(classes, "to_list"):  # arrays, Series, Index
        listed = classes.tolist() if hasattr(classes, "tolist") else classes.to_list()
        names = tuple(listed) if isinstance(listed, list) else (listed,)
    else:
        came = f"{reprlib.repr(classes)}, which has no fixed order or is not a sequence"
        raise refusal("classes", rule, came, "Pass a list.")
    return _distinct(names, n_classes, rule)


def _distinct(names: tuple[Any, ...], n_classes: int, rule: str) -> tuple[Hashable, ...]:
    if len(names) != n_classes:
        came = f"{len(names)}: {reprlib.repr(names)}"
        repair = "Name every class on the last axis of `probs`, in its order."
        raise refusal("classes", rule, came, repair)
    seen: set[Hashable] = set()
    for name in names:
        try:
            twice = name in seen
        except TypeError as error:
            came = f"an entry of type {type(name).__name__}, which cannot be looked up"
            raise refusal("classes", rule, came, "Use strings or numbers as names.") from error
        if twice:
            came = f"{name!r} twice in {reprlib.repr(names)}"
            raise refusal("classes", rule, came, "Rename or merge the duplicate.")
        seen.add(name)
    return names


#: Up to here doubles know every integer.
_EXACT = 2**53


def label_array(labels: Any) -> NDArray[Any]:
    """Give labels as an array without changing a single one of them.

    numpy turns ``["a", 1]`` into two strings, ``[0, 2**63]`` into two floats and a list of tuples into
    a matrix; a list that is not plainly numeric therefore becomes an array of its own objects.
    """
    if type(labels) is np.ndarray:
        return labels
    if not isinstance(labels, Sequence) or isinstance(labels, str | bytes):
        return as_array(labels, "labels").array
    try:
        array = np.asarray(labels)
    except Exception:  # ragged, or foreign scalars that numpy cannot read
        array = np.empty(0, dtype=object)
    rounded = array.dtype.kind == "f" and any(
        type(label) is int and abs(label) > _EXACT for label in labels
    )
    if (array.dtype.kind in "biufc" and not rounded) or array.ndim > 2:
        return array
    objects = np.empty(len(labels), dtype=object)
    for i, label in enumerate(labels):
        objects[i] = label
    return objects


def _are_names(array: NDArray[Any], names: tuple[Hashable, ...]) -> bool:
    """Tell names from positions: numbers are names only if some class is named by a number."""
    if array.dtype.kind not in "biuf":
        return True
    if array.ndim == 2 and array.shape[1] != 1:
        return False  # one-hot rows
    return any(isinstance(name, numbers.Number | np.bool_) for name in names)


def _look_up(labels: NDArray[Any], names: tuple[Hashable, ...]) -> NDArray[np.int32]:
    table = {name: position for position, name in enumerate(names)}
    values = labels.tolist()
    try:
        return np.array([table[value] for value in values], dtype=np.int32)
    except (KeyError, TypeError):
        raise _unknown_name(values, names) from None


def _among(value: object, names: set[Hashable]) -> bool:
    try:
        return value in names
    except TypeError:  # as that of a tuple that holds a list
        return False


def _unknown_name(values: list[Any], names: tuple[Hashable, ...]) -> InvalidInputError:
    known = set(names)
    unknown = [i for i, value in enumerate(values) if not _among(value, known)]
    first = values[unknown[0]]
    came = f"{reprlib.repr(first)} at index {unknown[0]} ({len(unknown)} unknown in all)"
    repair = f"The classes are {reprlib.repr(names)}; mind type and spelling."
    if {type(value) for value in values} == {int} and 0 <= min(values) <= max(values) < len(names):
        repair += " If labels are positions 0, 1, ..., leave `classes` out, or name them by text."
    return refusal("labels", "must be among `classes`", came, repair)


def _one_axis(array: NDArray[Any], n_samples: int, n_classes: int) -> NDArray[Any]:
    """Give (N,) from (N,) or (N, 1); anything else, or another N, is refused."""
    flat = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if flat.shape == (n_samples,):
        return flat
    raise _wrong_shape(array, n_samples, n_classes)


def _wrong_shape(array: NDArray[Any], n_samples: int, n_classes: int) -> InvalidInputError:
    rule = f"must have shape ({n_samples},), or ({n_samples}, {n_classes}) if one-hot"
    came = f"shape {array.shape} with `probs` of shape ({n_samples}, n_members, {n_classes})"
    repair = "Pass labels and predictions of the same rows."
    if array.ndim != 1 and array.size == n_samples:
        repair = "Flatten them with `np.ravel(labels)`."
    return refusal("labels", rule, came, repair)


def _check_type(array: NDArray[Any]) -> None:
    """Refuse what is no number; strings only lack `classes`."""
    kind = array.dtype.kind
    if kind in "UST" or (kind == "O" and any(isinstance(v, str) for v in array.flat)):
        few = reprlib.repr(array.ravel()[:2].tolist())
        repair = "Pass `classes=[...]`, the names in the order of the last axis of `probs`."
        rule = "must be class positions, or names together with `classes`"
        raise refusal("labels", rule, f"strings such as {few} without `classes`", repair)
    check_dtype(array, "labels")


def _from_one_hot(array: NDArray[Any], n_samples: int, n_classes: int) -> NDArray[np.int32]:
    if array.shape != (n_samples, n_classes):
        raise _wrong_shape(array, n_samples, n_classes)
    hot: NDArray[np.bool_] = np.equal(array, 1)
    if bool(np.all(hot | (array == 0))) and bool(np.all(np.count_nonzero(hot, axis=1) == 1)):
        positions: NDArray[np.intp] = hot.argmax(axis=1)
        return positions.astype(np.int32)
    rule = "of two axes must be one-hot: a single 1 in every row, and 0 elsewhere"
    row = int(np.argmax(~((hot | (array == 0)).all(axis=1) & (hot.sum(axis=1) == 1))))
    repair = "Pass class positions; for soft labels decide on one class, `labels.argmax(axis=1)`."
    raise refusal("labels", rule, f"row {row} = {reprlib.repr(array[row].tolist())}", repair)


def _check_integral(labels: NDArray[Any]) -> None:
    if labels.dtype.kind != "f":
        return
    with np.errstate(invalid="ignore"):
        bad = ~(np.isfinite(labels) & (labels == np.floor(labels)))
    if bad.any():
        first = int(np.argmax(bad))
        came = f"{float(labels[first])} at index {first} ({np.count_nonzero(bad)} such in all)"
        repair = "Drop rows without a label; predicted scores belong in `probs`."
        raise refusal("labels", "must be whole numbers", came, repair)


def _check_range(labels: NDArray[Any], n_classes: int) -> None:
    """Refuse positions outside 0 to K - 1, and recognise the usual reasons."""
    low, high = int(labels.min()), int(labels.max())
    if low >= 0 and high < n_classes:
        return
    rule = f"must be class positions from 0 to {n_classes - 1}"
    bad = (labels < 0) | (labels >= n_classes)
    first = int(np.argmax(bad))
    came = f"{int(labels[first])} at index {first} ({np.count_nonzero(bad)} such in all)"
    if low == 1 and high == n_classes:
        came, repair = f"values from 1 to {n_classes}, which look 1-based", "Pass `labels - 1`."
    elif bool(np.any(labels == IGNORE_INDEX)):
        count = np.count_nonzero(labels == IGNORE_INDEX)
        came = f"{count} times {IGNORE_INDEX}, the ignore index"
        repair = f"Keep the rows where `labels != {IGNORE_INDEX}`, in `probs` too."
    elif n_classes == 2 and low == -1 and bool(np.all(np.abs(labels) == 1)):
        came, repair = "values -1 and 1", "Pass `(labels + 1) // 2`."
    else:
        repair = f"Check that the last axis of `probs`, of length {n_classes}, is the classes."
        if low >= 1 and high == n_classes:
            repair = "If they count from 1, pass `labels - 1`."
    raise refusal("labels", rule, came, repair)
