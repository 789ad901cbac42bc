"""Calibration in the large: is every class as frequent as predicted on average?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from hullcal.measures import Measure


@dataclass(frozen=True, kw_only=True)
class InTheLarge(Measure):
    r"""Total variation between the mean prediction and the frequencies of the classes.

    .. math:: \frac{1}{2} \sum_{k=1}^{K} |f_k - \bar p_k|

    Cost: N·K. The residual vector has K entries, the signed gaps.
    """

    name: ClassVar[str] = "in_the_large"
    notion: ClassVar[str] = "in the large"

    def parameters(self, average):
        """Nothing that the loop would have to know: there are no bins and no kernel."""
        return np.zeros(0)

    def state_size(self, n_classes):
        """One gap for each class."""
        return n_classes


@njit(nogil=True, error_model="numpy")
def _accumulate(mixed, labels, row_weights, parameters, state, scratch):
    """Add a block of rows: how often each class came true, less what was predicted."""
    n_classes, n_samples = mixed.shape
    for k in range(n_classes):
        for n in range(n_samples):
            state[k] -= row_weights[n] * mixed[k, n]
    for n in range(n_samples):
        state[labels[n]] += row_weights[n]


@njit(nogil=True, error_model="numpy")
def _finish(state, offset, parameters, n_samples):
    """Turn sums into gaps, and give half of their absolute distance from the offset."""
    total = 0.0
    for k in range(state.shape[0]):
        state[k] /= n_samples
        total += abs(state[k] - offset[k])
    return 0.5 * total


@njit(nogil=True, error_model="numpy")
def _value(mixed, labels, row_weights, parameters, offset, state, scratch):
    """Both halves, for rows that are all there."""
    state[:] = 0.0
    _accumulate(mixed, labels, row_weights, parameters, state, scratch)
    return _finish(state, offset, parameters, mixed.shape[1])


InTheLarge.value = staticmethod(_value)
InTheLarge.accumulate = staticmethod(_accumulate)
InTheLarge.finish = staticmethod(_finish)
