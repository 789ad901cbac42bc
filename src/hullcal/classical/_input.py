"""The predictions of one classifier, checked, with what was done to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError
from hullcal.sets import ClassifierSet


def one_classifier(
    probs: Any, labels: Any, **options: Any
) -> tuple[ClassifierSet, NDArray[np.int32]]:
    """A set of one member, and the positions of the labels."""
    classifiers, truth = ClassifierSet.with_labels(probs, labels, **options)
    if classifiers.n_members > 1:
        raise InvalidInputError(
            f"`probs` must be the predictions of one classifier, (n_samples, n_classes); got "
            f"{classifiers.n_members} members. A set goes to `hullcal.calibration_test`; its average "
            "is `probs.mean(axis=1)`."
        )
    return classifiers, truth
