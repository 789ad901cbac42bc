"""The predictions of one classifier, checked, with what was done to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import check_single
from hullcal.sets import ClassifierSet


def one_classifier(
    probs: Any, labels: Any
) -> tuple[NDArray[Any], NDArray[np.int32], tuple[str, ...]]:
    """Predictions (N, K), positions of the labels, and notes."""
    # A set is refused here, with the way to test it; the notes are kept by a set of one.
    check_single(probs, labels)
    classifiers, truth = ClassifierSet.with_labels(probs, labels)
    return classifiers.probs[:, 0, :], truth, classifiers.notes
