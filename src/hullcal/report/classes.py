"""Which classes are furthest from calibration, and by how much?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hullcal.measures.ece_cwise import ClasswiseECE
from hullcal.sets import ClassifierSet

__all__ = ["ClassGap", "class_gaps"]


@dataclass(frozen=True, slots=True)
class ClassGap:
    """One class by itself.

    Attributes
    ----------
    index : int
    frequency : float
        Share of the rows that have this label.
    weighted, average : float
        Mean probability that the combination and the average give it.
    gap, gap_of_average : float
        Calibration error: the class's own term of the classwise ECE (Eq. 5).
    """

    index: int
    frequency: float
    weighted: float
    average: float
    gap: float
    gap_of_average: float


def class_gaps(
    classifiers: ClassifierSet, labels: NDArray[np.int32], weights: NDArray[np.float64]
) -> list[ClassGap]:
    """All classes, the largest gap of the combination first and ties by position."""
    mixed, average = classifiers.mix(weights), classifiers.mean()
    gaps, of_average = _gaps(mixed, labels), _gaps(average, labels)
    frequency = np.bincount(labels, minlength=classifiers.n_classes) / len(labels)
    means = mixed.mean(axis=0), average.mean(axis=0)
    return [
        ClassGap(
            index=int(k),
            frequency=float(frequency[k]),
            weighted=float(means[0][k]),
            average=float(means[1][k]),
            gap=float(gaps[k]),
            gap_of_average=float(of_average[k]),
        )
        for k in np.argsort(-gaps, kind="stable")
    ]


def _gaps(probs: NDArray[np.floating], labels: NDArray[np.int32]) -> NDArray[np.float64]:
    measure = ClasswiseECE()
    mixed = np.ascontiguousarray(probs.T, dtype=np.float64)
    residual = measure.offset_at(mixed, labels, measure.parameters(probs))
    gaps: NDArray[np.float64] = np.abs(residual).reshape(len(mixed), -1).sum(axis=1)
    return gaps
