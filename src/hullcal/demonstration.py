"""Real ensembles to show the test on: three of them, on handwritten digits."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Example:
    """Held-out predictions of an ensemble and the labels that came true."""

    name: str
    description: str
    probs: Floats
    labels: NDArray[Any]


def examples(seed: int, *, n_members: int = 10) -> Iterator[Example]:
    """Ensembles fitted on half of the digits, predicting the other half, one after the other."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    digits = load_digits()
    train, test, known, labels = train_test_split(
        digits.data / 16.0, digits.target, test_size=0.5, random_state=seed, stratify=digits.target
    )
    where = f"on {len(labels)} held-out handwritten digits"

    forest = RandomForestClassifier(n_members, min_samples_leaf=5, random_state=seed)
    trees = forest.fit(train, known).estimators_
    probs = np.stack([tree.predict_proba(test) for tree in trees], axis=1)
    what = f"{n_members} trees of a random forest, {where}"
    yield Example("random forest", what, probs, labels)

    def networks(samples: list[NDArray[np.int64]]) -> Floats:
        predictions = []
        for m, rows in enumerate(samples):
            network = MLPClassifier(
                (32,), max_iter=80, learning_rate_init=0.01, alpha=0.01, random_state=seed + m
            )
            # They are stopped when they are good enough, not when nothing moves any more.
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                network.fit(train[rows], known[rows])
            predictions.append(network.predict_proba(test))
        return np.stack(predictions, axis=1)

    rng = np.random.default_rng(seed)
    probs = networks([rng.integers(len(train), size=len(train)) for _ in range(n_members)])
    what = f"{n_members} small networks, each fitted to its own bootstrap sample, {where}"
    yield Example("bagged networks", what, probs, labels)

    probs = networks([np.arange(150)] * n_members) ** 3
    probs /= probs.sum(axis=2, keepdims=True)
    what = f"{n_members} networks fitted to the same 150 digits, their log-odds tripled on purpose"
    yield Example("overconfident networks", f"{what}, {where}", probs, labels)
