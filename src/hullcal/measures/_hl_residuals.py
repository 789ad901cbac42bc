"""From observed and expected means to residuals and their distance: what both forms of HL share."""

from __future__ import annotations

import math

import numpy as np

from hullcal._compiled.jit import compiled


@compiled
def to_residuals(observed, expected):  # type: ignore[no-untyped-def]
    """From o to (o - p) / sqrt(p), in place."""
    for cell in range(observed.shape[0]):
        o, p = observed[cell], expected[cell]
        if p > 0.0:
            observed[cell] = (o - p) / math.sqrt(p)
        elif o > 0.0:
            observed[cell] = np.inf


@compiled
def squared_distance(residuals, offset):  # type: ignore[no-untyped-def]
    """Sum of squared differences."""
    total = 0.0
    for cell in range(residuals.shape[0]):
        # Infinite equals infinite: a cell that is infinite in the data too is recentred to zero.
        if residuals[cell] != offset[cell]:
            total += (residuals[cell] - offset[cell]) ** 2
    return total
