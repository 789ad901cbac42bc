"""What does a reliability diagram show? Its curves, and the band within which chance explains them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal import binning
from hullcal._validation import InvalidInputError, check_fraction, check_integer, check_seed
from hullcal.plots._text import as_typed
from hullcal.sets import ClassifierSet

__all__ = ["Curve", "ReliabilityDiagram", "reliability_diagram"]

#: Most members drawn; they are chosen evenly.
_MOST_MEMBERS = 30


@dataclass(frozen=True)
class Curve:
    """Per bin: the rows in it, their mean prediction and observed frequency (NaN without rows)."""

    counts: NDArray[np.int64]
    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]


@dataclass(frozen=True)
class ReliabilityDiagram:
    """What a reliability diagram shows.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
    members : tuple of Curve
        Of at most 30 members, chosen evenly.
    average : Curve
    weighted : Curve or None
    low, high : ndarray of shape (n_bins,)
        Consistency band of the weighted combination, or of the average if there is none: where the
        observed frequency of each bin would lie if its predictions were true. NaN without rows.
    confidence : float
        Share of redrawn frequencies inside the band, bin by bin.
    event : str
        What is predicted, ready to be drawn.
    """

    edges: NDArray[np.float64]
    members: tuple[Curve, ...]
    average: Curve
    weighted: Curve | None
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    confidence: float
    event: str


def reliability_diagram(
    probs: ArrayLike | ClassifierSet,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    class_index: int | None = None,
    n_bins: int = 10,
    n_resamples: int = 200,
    confidence: float = 0.95,
    rng: int | np.random.Generator | None = 0,
) -> ReliabilityDiagram:
    """Compute the curves and the consistency band; parameters are those of `reliability`."""
    classifiers, truth = ClassifierSet.with_labels(probs, labels)
    n_bins = check_integer(n_bins, "n_bins", 1)
    n_resamples = check_integer(n_resamples, "n_resamples", 1)
    confidence = check_fraction(confidence, "confidence")
    chosen = _class(class_index, classifiers.n_classes)
    n_members = classifiers.n_members
    shown = np.linspace(0, n_members - 1, min(n_members, _MOST_MEMBERS)).round().astype(int)
    pairs = (_event(classifiers.probs[:, m, :], truth, chosen) for m in shown)
    average = _event(classifiers.mean(), truth, chosen)
    weighted = None if weights is None else _event(classifiers.mix(weights), truth, chosen)
    low, high = _consistency_band(
        (average if weighted is None else weighted)[0], n_bins, n_resamples, confidence, rng
    )
    name = chosen if classifiers.classes is None or chosen is None else classifiers.classes[chosen]
    return ReliabilityDiagram(
        edges=np.arange(n_bins + 1) / n_bins,
        members=tuple(_curve(*pair, n_bins) for pair in pairs),
        average=_curve(*average, n_bins),
        weighted=None if weighted is None else _curve(*weighted, n_bins),
        low=low,
        high=high,
        confidence=confidence,
        event="the predicted class" if chosen is None else f"class {as_typed(name)}",
    )


def _class(class_index: int | None, n_classes: int) -> int | None:
    if class_index is None:
        return None
    chosen = check_integer(class_index, "class_index", 0)
    if chosen >= n_classes:
        raise InvalidInputError(
            f"`class_index` must be less than the number of classes, {n_classes}; got {chosen}. "
            "Classes are counted from 0."
        )
    return chosen


def _event(
    probs: NDArray[Any], truth: NDArray[np.int32], chosen: int | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Probability of the event in each row, and whether it came true."""
    k = probs.argmax(axis=1) if chosen is None else np.full(len(probs), chosen)
    return probs[np.arange(len(k)), k].astype(np.float64), k == truth


def _curve(predicted: NDArray[np.float64], came_true: NDArray[np.bool_], n_bins: int) -> Curve:
    index = binning.bins_of(predicted, n_bins)
    counts = np.bincount(index, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        return Curve(
            counts=counts,
            predicted=np.bincount(index, predicted, minlength=n_bins) / counts,
            observed=np.bincount(index, came_true, minlength=n_bins) / counts,
        )


def _consistency_band(
    predicted: NDArray[np.float64],
    n_bins: int,
    n_resamples: int,
    confidence: float,
    rng: int | np.random.Generator | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Quantiles per bin of the frequencies of labels that are redrawn from the predictions."""
    stream = np.random.default_rng(check_seed(rng))
    index = binning.bins_of(predicted, n_bins)
    # A label drawn from the whole prediction is the event with exactly its probability.
    hits = [
        np.bincount(index, stream.random(len(index)) < predicted, minlength=n_bins)
        for _ in range(n_resamples)
    ]
    with np.errstate(invalid="ignore"):
        frequencies = np.array(hits) / np.bincount(index, minlength=n_bins)
    tail = (1.0 - confidence) / 2.0
    # These quantiles leave a new draw outside with chance 1 - confidence for any `n_resamples`
    # that is not too small; numpy's default would be too narrow.
    low, high = np.quantile(frequencies, [tail, 1.0 - tail], axis=0, method="weibull")
    return low, high
