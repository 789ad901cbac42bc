"""A real ensemble to show the test on: the trees of a random forest, on handwritten digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Example:
    """Held-out predictions of an ensemble and the labels that came true."""

    description: str
    probs: NDArray[np.float64]
    labels: NDArray[Any]


def random_forest(seed: int, *, n_members: int = 10) -> Example:
    """Ten trees, fitted on half of the digits and predicting the other half."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    train, test, train_labels, labels = train_test_split(
        digits.data, digits.target, test_size=0.5, random_state=seed, stratify=digits.target
    )
    forest = RandomForestClassifier(n_members, min_samples_leaf=5, random_state=seed)
    forest.fit(train, train_labels)
    probs = np.stack([tree.predict_proba(test) for tree in forest.estimators_], axis=1)
    accuracy = forest.score(test, labels)
    return Example(
        f"The {n_members} trees of a random forest on {len(labels)} held-out handwritten digits "
        f"(accuracy of their average: {accuracy:.1%}).",
        probs,
        labels,
    )
