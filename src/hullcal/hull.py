"""Is a point in the convex hull of some distributions, and which point of the hull is nearest?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal import simplex

Floats = NDArray[np.float64]

#: A point is in a hull if its total variation from it is at most this,
TOLERANCE = 1e-9
#: or this, where some number came in less than double precision.
COARSE_TOLERANCE = 1e-6


def in_hull(members: NDArray[Any], points: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each point (N, K) lies in its instance's hull (N, M, K), up to the tolerance above."""
    exact = min(members.dtype.itemsize, points.dtype.itemsize) >= 8
    pairs = zip(members.astype(np.float64), points.astype(np.float64), strict=True)
    distances = np.array([total_variation(beyond(p, x)) for p, x in pairs])
    return distances <= (TOLERANCE if exact else COARSE_TOLERANCE)


def nearest(members: Floats, point: Floats) -> Floats:
    """Weights of the hull's nearest point in the Euclidean sense, by non-negative least squares.

    With Q the members minus the point, non-negative v that minimise |Q'v|² + (1 - sum v)² are a
    multiple of the weights w that minimise |Q'w|: for v = t w the best t leaves
    |Q'w|² / (1 + |Q'w|²), which increases with |Q'w|. Scaling Q keeps a small hull well-conditioned.
    Lawson and Hanson's active set method gets there in finitely many steps, to the last bits. Programs
    that scale or drop small coefficients, as solvers for large ones do, misjudge predictions below
    1e-9.
    """
    from scipy.optimize import nnls

    offsets = members - point
    scale = np.abs(offsets).max()
    if scale == 0.0:
        return simplex.uniform(len(members))
    system = np.vstack([offsets.T / scale, np.ones(len(members))])
    target = np.zeros(len(system))
    target[-1] = 1.0
    # Saturated predictions need many exchanges of the active set; its default limit is too low.
    weights, _ = nnls(system, target, maxiter=1000 + 30 * len(members))
    shares: Floats = weights / weights.sum()
    return shares


def beyond(members: Floats, point: Floats) -> Floats:
    """The vector from the hull's nearest point to the point."""
    difference: Floats = point - nearest(members, point) @ members
    return difference


def total_variation(difference: Floats) -> float:
    """How far apart are two distributions that differ by this?"""
    return 0.5 * float(np.abs(difference).sum())
