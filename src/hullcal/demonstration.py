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
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    train, test, train_labels, labels = train_test_split(
        digits.data / 16.0, digits.target, test_size=0.5, random_state=seed, stratify=digits.target
    )
    where = f"on {len(labels)} held-out handwritten digits"
    yield Example(
        "random forest",
        f"{n_members} trees of a random forest, {where}",
        _trees(train, train_labels, test, seed, n_members),
        labels,
    )
    rng = np.random.default_rng(seed)
    resampled = [rng.integers(len(train), size=len(train)) for _ in range(n_members)]
    yield Example(
        "bagged networks",
        f"{n_members} small networks, each fitted to its own bootstrap sample, {where}",
        _networks(train, train_labels, test, seed, resampled),
        labels,
    )
    few = [np.arange(150)] * n_members
    yield Example(
        "overconfident networks",
        f"{n_members} networks fitted to the same 150 digits, their log-odds tripled on purpose, {where}",
        _sharpened(_networks(train, train_labels, test, seed, few)),
        labels,
    )


def _trees(train: Floats, train_labels: Any, test: Floats, seed: int, n_members: int) -> Floats:
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(n_members, min_samples_leaf=5, random_state=seed)
    forest.fit(train, train_labels)
    return np.stack([tree.predict_proba(test) for tree in forest.estimators_], axis=1)


def _networks(
    train: Floats, train_labels: Any, test: Floats, seed: int, samples: list[NDArray[Any]]
) -> Floats:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    members = []
    for member, rows in enumerate(samples):
        network = MLPClassifier(
            (32,), max_iter=80, learning_rate_init=0.01, alpha=0.01, random_state=seed + member
        )
        with warnings.catch_warnings():
            # They are stopped when they are good enough, not when nothing moves any more.
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit(train[rows], train_labels[rows])
        members.append(network.predict_proba(test))
    return np.stack(members, axis=1)


def _sharpened(probs: Floats) -> Floats:
    cubes: Floats = probs**3
    cubes /= cubes.sum(axis=2, keepdims=True)
    return cubes
