"""Which bins does a histogram of any finite values have?"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

#: Fewest and most bins of a histogram.
_FEWEST, _MOST = 5, 40


def histogram_edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Edges of equal bins, about the square root of the number of values.

    Values that are all the same, or nearly, get one bin around them; no values get [0, 1].

    >>> histogram_edges(np.array([2.0, 2.0]))
    array([1.9, 2.1])
    """
    if len(values) == 0:
        return np.array([0.0, 1.0])
    low, high = float(values.min()), float(values.max())
    size = max(abs(low), abs(high))
    if high - low <= max(1e-9 * size, 1e-300):
        pad = 0.05 * size or 0.05
        return np.array([low - pad, high + pad])
    n_bins = min(max(math.ceil(math.sqrt(len(values))), _FEWEST), _MOST)
    return np.linspace(low, high, n_bins + 1)
