"""Measures as the authors' public scripts compute them, where that is not what the paper says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled_value
from hullcal.binning import edges, part_size
from hullcal.measures import Measure
from hullcal.measures._base import Floats
from hullcal.measures.ece_conf import ConfidenceECE
from hullcal.measures.hl_cwise import HosmerLemeshow
from hullcal.measures.skce import SKCE


def as_in_the_scripts(
    measure: Measure, *, first_class_bins: bool, gaussian_kernel: bool, right_closed_bins: bool
) -> Measure:
    """The scripts' form of a measure, under the switches that are on; otherwise the measure itself."""
    if right_closed_bins and type(measure) is ConfidenceECE and not measure.smooth:
        return RightClosedECE(n_bins=measure.n_bins)
    if first_class_bins and type(measure) is HosmerLemeshow:
        return FirstClassHosmerLemeshow(n_bins=measure.n_bins)
    if gaussian_kernel and type(measure) is SKCE:
        return SKCE(estimator=measure.estimator, kernel="gaussian", bandwidth=2.0)
    return measure


@dataclass(frozen=True, kw_only=True)
class RightClosedECE(ConfidenceECE):
    """Confidence ECE on bins ((j-1)/B, j/B]."""

    def parameters(self, average: NDArray[np.floating]) -> Floats:
        # A value on an edge is below the next larger double, and so falls into the bin on the left.
        return np.nextafter(edges(self.n_bins), np.inf)


@dataclass(frozen=True, kw_only=True)
class FirstClassHosmerLemeshow(HosmerLemeshow):
    """Hosmer–Lemeshow with the bins of the first class for all classes, on counts.

    Rows that tie in the first class are cut where they stand. A cell without expectation, whose
    quotient the scripts leave undefined, counts 0.
    """

    has_residual: ClassVar[bool] = False
    order_matters: ClassVar[bool] = True


@compiled_value
def _value(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    n_classes, n_samples = mixed.shape
    n_bins = int(parameters[0])
    order = np.argsort(1.0 - mixed[0], kind="mergesort")[::-1]
    total = 0.0
    first = 0
    for j in range(n_bins):
        last = first + part_size(j, n_samples, n_bins)  # type: ignore[no-untyped-call]
        for k in range(n_classes):
            observed, expected = 0.0, 0.0
            for i in range(first, last):
                observed += int(labels[order[i]] == k)
                expected += mixed[k, order[i]]
            if expected > 0.0:
                total += (observed - expected) ** 2 / expected
        first = last
    return total


FirstClassHosmerLemeshow.value = staticmethod(_value)
