"""Is a point in the convex hull of some distributions? Non-negative least squares tells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def in_hull(members: NDArray[Any], points: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each point lies in its instance's hull, up to the rounding of the coarser input.

    That is a total variation of 1e-9, or of 1e-6 where members or points are less than doubles.

    Parameters
    ----------
    members : array of shape (n_samples, n_members, n_classes)
    points : array of shape (n_samples, n_classes)

    Returns
    -------
    ndarray of bool and shape (n_samples,)
    """
    exact = min(members.dtype.itemsize, points.dtype.itemsize) >= 8
    pairs = zip(members, points, strict=True)
    return np.array([_distance(p, x) for p, x in pairs]) <= (1e-9 if exact else 1e-6)


def _distance(members: NDArray[Any], point: NDArray[Any]) -> float:
    """Total variation between a point and the combination nearest to it.

    Weights w >= 0 with w'P = x and sum 1 are a linear feasibility problem, and Lawson and Hanson's
    active set method solves it in finitely many steps to the last bits. Programs that scale or drop
    small coefficients, as solvers for large ones do, misjudge predictions below 1e-9.
    """
    from scipy.optimize import nnls

    system = np.vstack([members.T, np.ones(len(members))]).astype(np.float64)
    # Saturated predictions need many exchanges of the active set; its default limit is too low.
    weights, _ = nnls(system, np.append(point, 1.0), maxiter=1000 + 30 * len(members))
    total = weights.sum()
    if total == 0.0:
        return 1.0
    return 0.5 * float(np.abs(weights / total @ system[:-1].T - point).sum())
