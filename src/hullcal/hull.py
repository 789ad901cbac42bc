"""Is a point in the convex hull of some distributions? One linear program tells, for many instances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: A point this close to the hull, in total variation, is in it.
TOLERANCE = 1e-9
#: Variables of one program: solving many small ones together spares their overhead.
_VARIABLES = 3_000


def distance_to_hull(members: NDArray[Any], points: NDArray[Any]) -> Floats:
    r"""Total variation between each point and the nearest combination of its instance's members.

    .. math:: \min_\lambda \tfrac{1}{2} \lVert p_\lambda - x \rVert_1

    is a linear program in the weights and in the positive and negative parts of the difference.

    Parameters
    ----------
    members : array of shape (n_samples, n_members, n_classes)
    points : array of shape (n_samples, n_classes)

    Returns
    -------
    ndarray of shape (n_samples,)
    """
    n_samples, n_members, n_classes = members.shape
    size = max(1, _VARIABLES // (n_members + 2 * n_classes))
    blocks = [
        _distances(
            np.asarray(members[first : first + size], dtype=np.float64),
            np.asarray(points[first : first + size], dtype=np.float64),
        )
        for first in range(0, n_samples, size)
    ]
    return np.concatenate(blocks)


def _distances(members: Floats, points: Floats) -> Floats:
    from scipy.optimize import linprog
    from scipy.sparse import block_diag, coo_array, hstack, identity, kron, vstack

    n_samples, n_members, n_classes = members.shape
    n_weights, n_parts = n_samples * n_members, n_samples * n_classes
    mixing = block_diag([p.T for p in members])
    parts = identity(n_parts)
    summing = kron(identity(n_samples), np.ones((1, n_members)))
    nothing = coo_array((n_samples, 2 * n_parts))
    solution = linprog(
        np.concatenate([np.zeros(n_weights), np.full(2 * n_parts, 0.5)]),
        A_eq=vstack([hstack([mixing, parts, -parts]), hstack([summing, nothing])], format="csr"),
        b_eq=np.concatenate([points.ravel(), np.ones(n_samples)]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    # The distance is that of the weights found, whatever the program's tolerance.
    weights = np.clip(solution.x[:n_weights].reshape(n_samples, n_members), 0.0, None)
    weights /= weights.sum(axis=1, keepdims=True)
    mixed = np.einsum("nm,nmk->nk", weights, members)
    distances: Floats = 0.5 * np.abs(mixed - points).sum(axis=1)
    return distances
