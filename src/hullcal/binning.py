"""Which bin a probability belongs to: the rules, stated once for every measure, plot and loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal._compiled.jit import compiled
from hullcal._validation import check_integer, check_single


def edges(n_bins: int) -> NDArray[np.float64]:
    """Left edges of B equal-width bins of [0, 1], and +inf, so that the last bin is closed.

    Bin j is [(j-1)/B, j/B), and the edge j/B is the double nearest to the quotient, which is what
    division gives. (`numpy.linspace` multiplies instead, and misplaces 0.3, 0.6 and 0.7 at B = 10.)

    >>> edges(2)
    array([0. , 0.5, inf])
    """
    n_bins = check_integer(n_bins, "n_bins", 1)
    result = np.arange(n_bins + 1) / n_bins
    result[-1] = np.inf
    return result


@compiled
def bin_index(probability, edges):  # type: ignore[no-untyped-def]
    """The bin of a probability, from 0 to B - 1."""
    n_bins = edges.shape[0] - 1
    guess = min(int(probability * n_bins), n_bins - 1)
    # The product may round across an edge, by one bin at most; the edges decide. Rounding may also
    # have left a probability a little below 0.
    too_high = guess > 0 and probability < edges[guess]
    return guess + int(probability >= edges[guess + 1]) - int(too_high)


#: A product p*B this close to an integer may have rounded across an edge.
_NEAR = 1e-9


@compiled
def bin_indices(probabilities, edges, out):  # type: ignore[no-untyped-def]
    """bin_index of every probability, by a loop without branches wherever no edge is near."""
    n_bins = edges.shape[0] - 1
    near = 0
    for n in range(probabilities.shape[0]):
        # 0 and 1 are common and cannot be misplaced: both move to the middle of their bin.
        scaled = min(max(probabilities[n] * n_bins, 0.5), n_bins - 0.5)
        guess = np.int32(scaled)
        out[n] = guess
        near += int(abs(scaled - guess - 0.5) > 0.5 - _NEAR)
    if near > 0:
        for n in range(probabilities.shape[0]):
            out[n] = bin_index(probabilities[n], edges)


def bins_of(probabilities: NDArray[np.float64], n_bins: int) -> NDArray[np.intp]:
    """`bin_index` of every probability, for those who have numpy at hand and no loop.

    >>> bins_of(np.array([0.0, 0.5, 1.0]), 2)
    array([0, 1, 1])
    """
    # Compared with the same doubles; side="right" puts an edge in the bin on its right. Rounding may
    # have left a probability a little below 0.
    return np.searchsorted(edges(n_bins), np.maximum(probabilities, 0.0), side="right") - 1


@compiled
def part_size(j, n_samples, n_bins):  # type: ignore[no-untyped-def]
    """Rows of part j where N sorted rows are cut into B; the first N mod B parts have one more.

    >>> [part_size(j, 11, 4) for j in range(4)]
    [3, 3, 3, 2]
    """
    return n_samples // n_bins + int(j < n_samples % n_bins)


@dataclass(frozen=True, slots=True)
class ReliabilityTable:
    """What a reliability diagram shows: per bin, the row count, mean confidence and accuracy."""

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]

    @property
    def points(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Confidence and accuracy of the bins with rows."""
        full = self.counts > 0
        return self.confidence[full], self.accuracy[full]

    @property
    def gap(self) -> float:
        """Calibration error: distance from the diagonal, averaged over the rows."""
        off = self.counts * np.abs(self.accuracy - self.confidence)
        return float(np.nansum(off) / self.counts.sum())


def reliability_table(probs: ArrayLike, labels: ArrayLike, *, n_bins: int = 10) -> ReliabilityTable:
    """Confidence and accuracy of the predicted class per equal-width bin; NaN where a bin is empty.

    >>> reliability_table([[0.75, 0.25], [0.75, 0.25]], [0, 1], n_bins=2).accuracy
    array([nan, 0.5])
    """
    predictions, classes = check_single(probs, labels)
    top = predictions.argmax(axis=1)
    return event_table(predictions[np.arange(len(top)), top], top == classes, n_bins)


def event_table(
    predicted: NDArray[np.floating], came_true: NDArray[np.bool_], n_bins: int = 10
) -> ReliabilityTable:
    """The same of any event, from its probability in each row and whether it came true."""
    n_bins = check_integer(n_bins, "n_bins", 1)
    confidence = predicted.astype(np.float64)
    index = bins_of(confidence, n_bins)
    counts = np.bincount(index, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        return ReliabilityTable(
            edges=np.arange(n_bins + 1) / n_bins,
            counts=counts,
            confidence=np.bincount(index, confidence, minlength=n_bins) / counts,
            accuracy=np.bincount(index, came_true, minlength=n_bins) / counts,
        )
