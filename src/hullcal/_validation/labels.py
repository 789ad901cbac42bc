"""Which class came true for each sample: labels by themselves, and beside their predictions."""

from __future__ import annotations

import contextlib
import numbers
import reprlib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation.arguments import refusal
from hullcal._validation.arrays import Given, as_array, as_predictions, check_dtype
from hullcal._validation.predictions import Predictions, check_probs, order_of

# What several training frameworks write for "no label here".
IGNORE_INDEX = -100


def check_set_and_labels(
    probs: Any, labels: Any, *, classes: Any = None, **flags: bool
) -> tuple[Predictions, NDArray[np.int32]]:
    """Validate predictions and labels together, which tells more of both.

    Options are those of `check_probs`. Labels left out are taken from the column of a frame.
    """
    raw = flags.get("from_logits", False) or flags.get("from_log", False)
    given, truth = paired(probs, labels, raw=raw)
    n_labels = truth.shape[0] if truth.ndim else None
    predictions = check_probs(given, **flags, n_labels=n_labels)
    n_samples, _, n_classes = predictions.probs.shape
    sizes = {"n_samples": n_samples, "n_classes": n_classes}
    names = settled_classes(predictions, classes)
    return predictions, check_labels(truth, **sizes, classes=names)


def check_single(probs: Any, labels: Any) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Validate the predictions of one classifier, (N, K), and labels."""
    given = as_predictions(probs)
    if given.array.ndim == 3:
        rule = "must have shape (n_samples, n_classes), one classifier"
        repair = (
            "A set of classifiers goes to `hullcal.calibration_test(probs, labels)`; "
            "its first member is `probs[:, 0, :]`."
        )
        raise refusal("probs", rule, f"shape {given.array.shape}", repair)
    predictions, truth = check_set_and_labels(given, labels)
    return predictions.probs[:, 0, :], truth


def settled_classes(predictions: Predictions, classes: Any) -> tuple[Hashable, ...] | None:
    """Names of the classes: those given, or else those that came with the predictions."""
    there = predictions.classes
    names = check_classes(there if classes is None else classes, predictions.probs.shape[2])
    if there is not None and names is not None and there != names and set(there) == set(names):
        rule = f"must follow the columns of `probs`, {reprlib.repr(there)}"
        repair = "Leave it out, or reorder the columns."
        raise refusal("classes", rule, reprlib.repr(names), repair)
    return names


def paired(probs: Any, labels: Any, *, raw: bool = False) -> tuple[Given, NDArray[Any]]:
    """Both as arrays of one length; swapped arguments are not taken for a wrong order of axes."""
    given = as_predictions(probs)
    truth = label_array(given.labels if labels is None else labels)
    array = given.array
    two_axes = array.ndim <= 2 <= truth.ndim and truth.shape[1] > 1
    swapped = two_axes and (truth.ndim == 3 or _fractional(truth)) and not _fractional(array)
    if not swapped and (array.ndim not in (2, 3) or not truth.ndim or len(truth) == len(array)):
        return given, truth
    came = f"`probs` of shape {array.shape} and `labels` of shape {truth.shape}"
    if swapped:
        repair = "They look swapped: pass (probs, labels)."
        raise refusal("probs", "must come first and `labels` second", came, repair)
    repair = "Pass predictions and labels of the same rows."
    order = order_of(given, len(truth), raw=raw)
    if order and isinstance(probs, list | tuple) and array.ndim == 3:
        repair = "A list of arrays is a list of members; a list of samples is `np.stack(probs)`."
    elif order:
        repair = f"The order that fits is `{order}`."
    rule = "and `labels` must have the same number of samples, on the first axis"
    raise refusal("probs", rule, came, repair)


def _fractional(array: NDArray[Any]) -> bool:
    if array.dtype.kind != "f":
        return False
    with np.errstate(invalid="ignore"):
        return bool(np.any(array != np.floor(array)))


def check_labels(
    labels: Any, *, n_samples: int, n_classes: int, classes: Any = None
) -> NDArray[np.int32]:
    """Labels as a new array of positions of classes, 0 to K - 1.

    They may come as integers of any width, booleans or integral floats, (N,) or (N, 1); as one-hot
    rows (N, K); or as names, with `classes`. If some class is named by a number, numeric labels
    are names; otherwise numeric labels are positions.

    >>> check_labels(["cat", "dog"], n_samples=2, n_classes=2, classes=["dog", "cat"])
    array([1, 0], dtype=int32)
    """
    names = check_classes(classes, n_classes)
    array = label_array(labels)
    flat = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    named = names if names and _are_names(flat, names) else ()
    if flat.shape != (n_samples,) and (named or flat.shape != (n_samples, n_classes)):
        rule = f"must have shape ({n_samples},), or ({n_samples}, {n_classes}) if one-hot"
        came = f"shape {array.shape} with `probs` of shape ({n_samples}, n_members, {n_classes})"
        repair = "Pass labels and predictions of the same rows; `np.ravel(labels)` flattens them."
        raise refusal("labels", rule, came, repair)
    if named:
        return _look_up(flat, named)
    _check_type(flat)
    if flat.ndim == 2:
        return _from_one_hot(flat)
    _check_positions(flat, n_classes)
    return flat.astype(np.int32)


def check_classes(classes: Any, n_classes: int) -> tuple[Hashable, ...] | None:
    """The names of the classes as python objects, in the order of the last axis; None for None."""
    if classes is None:
        return None
    convert = getattr(classes, "tolist", getattr(classes, "to_list", None))  # arrays, Series, Index
    listed = classes if convert is None else convert()
    came = f"{reprlib.repr(classes)}, which has no fixed order or is not a sequence"
    if isinstance(listed, Sequence) and not isinstance(listed, str | bytes):
        names = tuple(listed)
        came = f"{len(names)}: {reprlib.repr(names)}"
        with contextlib.suppress(TypeError):  # what has no hash cannot be looked up
            n_different = len(set(names))
            if n_different == len(names) == n_classes:
                return names
            came = f"{len(names)}, {n_different} of them different: {reprlib.repr(names)}"
    rule = f"must be a sequence of {n_classes} distinct class names"
    repair = "Pass a list of strings or numbers in the order of the last axis of `probs`."
    raise refusal("classes", rule, came, repair)


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
        type(label) is int and abs(label) > 2**53 for label in labels
    )
    if (array.dtype.kind in "biufc" and not rounded) or array.ndim > 2:
        return array
    return np.fromiter(labels, dtype=object, count=len(labels))


def _are_names(array: NDArray[Any], names: tuple[Hashable, ...]) -> bool:
    """Tell names from positions: numbers are names only if some class is named by a number."""
    if array.dtype.kind not in "biuf":
        return True
    has_numbers = any(isinstance(name, numbers.Number | np.bool_) for name in names)
    return has_numbers and array.ndim < 2  # two axes are one-hot rows


def _look_up(labels: NDArray[Any], names: tuple[Hashable, ...]) -> NDArray[np.int32]:
    table = {name: position for position, name in enumerate(names)}
    values, positions = labels.tolist(), list[int]()
    try:
        positions.extend(map(table.__getitem__, values))
    except (KeyError, TypeError) as error:  # a list cannot be looked up
        first = len(positions)
        came = f"{reprlib.repr(values[first])} at index {first}"
        repair = (
            f"The classes are {reprlib.repr(names)}; mind type and spelling. If labels are "
            "positions 0, 1, ..., leave `classes` out, or name them by text."
        )
        raise refusal("labels", "must be among `classes`", came, repair) from error
    return np.array(positions, dtype=np.int32)


def _check_type(array: NDArray[Any]) -> None:
    """Refuse what is no number; strings only lack `classes`."""
    kind = array.dtype.kind
    if kind in "UST" or (kind == "O" and any(isinstance(v, str) for v in array.flat)):
        few = reprlib.repr(array.ravel()[:2].tolist())
        repair = "Pass `classes=[...]`, the names in the order of the last axis of `probs`."
        rule = "must be class positions, or names together with `classes`"
        raise refusal("labels", rule, f"strings such as {few} without `classes`", repair)
    check_dtype(array, "labels")


def _from_one_hot(array: NDArray[Any]) -> NDArray[np.int32]:
    hot: NDArray[np.bool_] = np.equal(array, 1)
    fine = (hot | (array == 0)).all(axis=1) & (np.count_nonzero(hot, axis=1) == 1)
    if fine.all():
        return np.asarray(hot.argmax(axis=1), dtype=np.int32)
    row = int(np.argmin(fine))
    rule = "of two axes must be one-hot: a single 1 in every row, and 0 elsewhere"
    repair = "Pass class positions; for soft labels decide on one class, `labels.argmax(axis=1)`."
    raise refusal("labels", rule, f"row {row} = {reprlib.repr(array[row].tolist())}", repair)


def _check_positions(labels: NDArray[Any], n_classes: int) -> None:
    """Refuse fractions and positions outside 0 to K - 1, and recognise the usual reasons."""
    if labels.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            bad = ~(np.isfinite(labels) & (labels == np.floor(labels)))
        if bad.any():
            repair = "Drop rows without a label; predicted scores belong in `probs`."
            raise refusal("labels", "must be whole numbers", _found(labels, bad, float), repair)
    low, high = int(labels.min()), int(labels.max())
    if low >= 0 and high < n_classes:
        return
    came = _found(labels, (labels < 0) | (labels >= n_classes), int)
    repair = f"Check that the last axis of `probs`, of length {n_classes}, is the classes."
    if low >= 1 and high == n_classes:
        came, repair = f"values {low} to {high}, which look 1-based", "Pass `labels - 1`."
    elif ignored := np.count_nonzero(labels == IGNORE_INDEX):
        came = f"{ignored} times {IGNORE_INDEX}, the ignore index"
        repair = f"Keep the rows where `labels != {IGNORE_INDEX}`, in `probs` too."
    elif n_classes == 2 and low == -1:
        came, repair = f"values from -1 to {high}", "Labels -1 and 1 are `(labels + 1) // 2`."
    rule = f"must be class positions from 0 to {n_classes - 1}"
    raise refusal("labels", rule, came, repair)


def _found(labels: NDArray[Any], bad: NDArray[np.bool_], kind: type) -> str:
    first = int(np.argmax(bad))
    return f"{kind(labels[first])} at index {first} ({np.count_nonzero(bad)} such in all)"
