"""How good is one classifier, besides calibrated? Accuracy, log score and Brier score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: A score of predictions (N, K) and the positions of the labels.
Score = Callable[[NDArray[Any], NDArray[np.int32]], float]


def accuracy(probs: NDArray[Any], labels: NDArray[np.int32]) -> float:
    """Share of rows whose most probable class, the lowest of several, is the label."""
    return float((probs.argmax(axis=1) == labels).mean())


def log_score(probs: NDArray[Any], labels: NDArray[np.int32]) -> float:
    """Mean of -log p(label), in nats; infinite if some label has probability 0."""
    chances = probs[np.arange(len(labels)), labels].astype(np.float64)
    with np.errstate(divide="ignore"):
        return float(-np.log(chances).mean())


def brier_score(probs: NDArray[Any], labels: NDArray[np.int32]) -> float:
    """Mean over the rows of the squared distance between prediction and one-hot label."""
    errors = probs.astype(np.float64)
    errors[np.arange(len(labels)), labels] -= 1.0
    return float((errors**2).sum(axis=1).mean())
