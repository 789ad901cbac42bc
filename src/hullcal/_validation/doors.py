"""Predictions and labels together: swapped arguments, wrong axis order, unequal lengths."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation.axes import axis_summing_to_one, reordering
from hullcal._validation.errors import refusal
from hullcal._validation.foreign import Converted, as_array
from hullcal._validation.labels import check_classes, check_labels, label_array
from hullcal._validation.probabilities import Predictions, check_converted

__all__ = ["check_set_and_labels", "check_settled", "check_single"]


def check_set_and_labels(
    probs: Any,
    labels: Any,
    *,
    classes: Any = None,
    from_logits: bool = False,
    from_log: bool = False,
) -> tuple[Predictions, NDArray[np.int32]]:
    """Validate the predictions of a set of classifiers and the labels that came true.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes)
        As in `check_probs`.
    labels : array-like of shape (n_samples,)
        As in `check_labels`.
    classes : sequence of K hashables, optional
        Names of the classes.
    from_logits, from_log : bool
        What `probs` holds instead of probabilities.

    Returns
    -------
    predictions : Predictions
    labels : ndarray of int32 and shape (n_samples,)
    """
    given = as_array(probs, "probs", member_ndim=2)
    truth = label_array(labels)
    listed = isinstance(probs, list | tuple)
    _refuse_mismatch(given, truth, raw=from_logits or from_log, listed=listed)
    predictions = check_converted(
        given, from_logits=from_logits, from_log=from_log, n_samples=_length(truth)
    )
    n_samples, _, n_classes = predictions.probs.shape
    checked = check_labels(truth, n_samples=n_samples, n_classes=n_classes, classes=classes)
    return predictions, checked


def check_single(probs: Any, labels: Any) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Validate the predictions of one classifier and the labels that came true.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_classes)
        Probabilities of one classifier.
    labels : array-like of shape (n_samples,)
        As in `check_labels`.

    Returns
    -------
    probs : ndarray of shape (n_samples, n_classes), read-only
    labels : ndarray of int32 and shape (n_samples,)
    """
    given = as_array(probs, "probs", member_ndim=2)
    if given.array.ndim == 3:
        rule = "must have shape (n_samples, n_classes), one classifier"
        repair = (
            "A set of classifiers goes to `hullcal.calibration_test(probs, labels)`; "
            "its first member is `probs[:, 0, :]`."
        )
        raise refusal("probs", rule, f"shape {given.array.shape}", repair)
    truth = label_array(labels)
    _refuse_mismatch(given, truth, raw=False, listed=False)
    predictions = check_converted(
        given, from_logits=False, from_log=False, n_samples=_length(truth)
    )
    n_samples, _, n_classes = predictions.probs.shape
    checked = check_labels(truth, n_samples=n_samples, n_classes=n_classes)
    return predictions.probs[:, 0, :], checked


def check_settled(
    names: tuple[Hashable, ...] | None,
    n_classes: int,
    *,
    classes: Any = None,
    from_logits: bool = False,
    from_log: bool = False,
) -> None:
    """Refuse options beside a ClassifierSet that would contradict how it was made.

    Parameters
    ----------
    names : tuple or None
        The class names of the set.
    n_classes : int
        K.
    classes, from_logits, from_log
        The options that came beside the set.
    """
    renamed = classes is not None and check_classes(classes, n_classes) != names
    flags = {"classes": renamed, "from_logits": from_logits, "from_log": from_log}
    for name, contradicts in flags.items():
        if contradicts:
            rule = "is settled when a ClassifierSet is made"
            came = f"a ClassifierSet with another `{name}`"
            raise refusal(name, rule, came, f"Pass it to `ClassifierSet(probs, {name}=...)`.")


def _refuse_mismatch(given: Converted, labels: NDArray[Any], *, raw: bool, listed: bool) -> None:
    _refuse_swapped(given.array, labels)
    _refuse_other_length(given, labels, raw=raw, listed=listed)


def _length(labels: NDArray[Any]) -> int | None:
    return labels.shape[0] if labels.ndim else None


def _refuse_swapped(probs: NDArray[Any], labels: NDArray[Any]) -> None:
    if not _look_swapped(probs, labels):
        return
    came = f"`probs` of shape {probs.shape} and `labels` of shape {labels.shape}"
    rule = "must come first and `labels` second"
    raise refusal("probs", rule, came, "They look swapped: pass (probs, labels).")


def _look_swapped(probs: NDArray[Any], labels: NDArray[Any]) -> bool:
    """Judge by the axes first, and then by which of the two holds fractions."""
    if probs.ndim > 2 or labels.ndim < 2 or labels.shape[1] < 2:
        return False
    return (labels.ndim == 3 or _fractional(labels)) and not _fractional(probs)


def _fractional(array: NDArray[Any]) -> bool:
    if array.dtype.kind != "f":
        return False
    with np.errstate(invalid="ignore"):
        return bool(np.any(array != np.floor(array)))


def _refuse_other_length(
    given: Converted, labels: NDArray[Any], *, raw: bool, listed: bool
) -> None:
    """Refuse labels of another length than the first axis, and find the axis they do match."""
    probs, n_labels = given.array, _length(labels)
    if probs.ndim not in (2, 3) or n_labels in (None, probs.shape[0]):
        return
    rule = "and `labels` must have the same number of samples, on the first axis"
    came = f"`probs` of shape {probs.shape} and `labels` of shape {labels.shape}"
    order = "" if n_labels is None else _order(given, n_labels, raw=raw)
    repair = "Pass predictions and labels of the same rows."
    if order and listed and probs.ndim == 3:
        repair = "A list of arrays is a list of members; a list of samples is `np.stack(probs)`."
        repair = f"The order that fits is `{order}` of that array. {repair}"
    elif order:
        repair = f"The order that fits is `{order}`."
    raise refusal("probs", rule, came, repair)


def _order(given: Converted, n_labels: int, *, raw: bool) -> str:
    """Write the order that puts an axis as long as the labels first; empty if there is none."""
    probs = given.array
    # Logits say nothing about which axis is the classes; then the order of the others is kept.
    judged = not raw and probs.dtype.kind in "biuf"
    tolerance = max(given.precision.repaired(max(probs.shape)), 1e-3)
    k_axis = axis_summing_to_one(probs, tolerance) if judged else None
    for axis in range(1, probs.ndim):
        if probs.shape[axis] == n_labels and axis != k_axis:
            return reordering(probs.ndim, axis, k_axis)
    return ""
