"""What did the files hold?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from hullcal.files.source import Source

__all__ = ["Dataset", "Parts", "check_labels_shape", "check_not_swapped", "check_probs_shape"]


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What one file held."""

    probs: NDArray[Any]
    labels: NDArray[Any] | None = None
    classes: tuple[Any, ...] | None = None
    members: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset(Parts):
    """What the files held: shapes are checked, values are not (`ClassifierSet` does that).

    Attributes
    ----------
    probs : ndarray of shape (n_samples, n_members, n_classes) or (n_samples, n_classes)
        Read-only; a memory map for `.npy`.
    labels : ndarray, or None
        As the file holds them: positions, names, or one-hot rows.
    classes : tuple, or None
        Names of the classes, in the order of the last axis.
    members : tuple of str, or None
        Names of the members, in the order of the middle axis.
    sources : tuple of str
        The files, as given.
    """

    sources: tuple[str, ...]


def check_probs_shape(source: Source, probs: NDArray[Any]) -> None:
    """Refuse predictions that have neither two nor three axes, or that are no numbers."""
    if probs.ndim not in (2, 3):
        rule = "must hold predictions of shape (n_samples, n_members, n_classes)"
        repair = "One classifier has (n_samples, n_classes)."
        raise source.refuse(rule, f"shape {probs.shape}", repair)
    if probs.dtype.kind not in "biuf" and probs.dtype.name != "bfloat16":
        repair = "Save probabilities as float32 or float64."
        raise source.refuse("must hold numbers", f"an array of type {probs.dtype}", repair)


def check_not_swapped(
    source: Source, found: Mapping[str, NDArray[Any]], probs_key: str, labels_key: str
) -> None:
    """Refuse predictions and labels saved under each other's name, as their axes betray."""
    if labels_key not in found or probs_key == labels_key:
        return
    probs, labels = found[probs_key], found[labels_key]
    if probs.ndim < labels.ndim and (probs.ndim == 1 or labels.ndim == 3):
        rule = f"must hold predictions as {probs_key!r} and labels as {labels_key!r}"
        came = f"{probs_key!r} of shape {probs.shape} and {labels_key!r} of shape {labels.shape}"
        repair = (
            f"They look swapped: pass `probs_key={labels_key!r}` and `labels_key={probs_key!r}`."
        )
        raise source.refuse(rule, came, repair)


def check_labels_shape(source: Source, labels: NDArray[Any], probs: NDArray[Any]) -> None:
    """Refuse labels of which there are as many as no axis of the predictions is long.

    An axis order that is merely wrong is left to `ClassifierSet`, which tells the right one.
    """
    if labels.ndim not in (1, 2):
        rule = "must hold one label per instance, or one-hot rows"
        raise source.refuse(rule, f"labels of shape {labels.shape}", "Save one per instance.")
    if len(labels) not in probs.shape[:2] and labels.size not in probs.shape[:2]:
        rule = "must hold as many labels as there are instances"
        came = f"labels of shape {labels.shape} for predictions of shape {probs.shape}"
        raise source.refuse(rule, came, "Pass labels and predictions of the same rows.")
