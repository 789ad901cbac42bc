"""The simplex of weights: points on it, draws from it, and the way back to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal._validation import refusal

#: A weight below this is none.
_ROUNDING = 1e-15


def uniform(n_members: int) -> NDArray[np.float64]:
    """The centre: every member with the same weight."""
    return np.full(n_members, 1.0 / n_members)


def dirichlet(
    n_members: int, size: int, *, concentration: float = 1.0, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draws of weights, shape (size, n_members); concentration 1 is uniform on the simplex."""
    return rng.dirichlet(np.full(n_members, concentration), size=size)


def project(point: ArrayLike) -> NDArray[np.float64]:
    """The nearest point of the simplex in the Euclidean sense.

    >>> project([0.5, 0.7])
    array([0.4, 0.6])
    """
    given = np.asarray(point, dtype=np.float64)
    if given.ndim != 1 or given.size == 0 or not np.isfinite(given).all():
        rule = "must be finite numbers on one axis"
        raise refusal("point", rule, f"{given!r:.80}", "Pass a list of finite numbers.")
    # A common shift changes nothing, and this one keeps far points from losing the unit in rounding.
    shifted = given - given.max()
    descending = np.sort(shifted)[::-1]
    excess = np.cumsum(descending) - 1.0
    ranks = np.arange(1, shifted.size + 1)
    support = np.flatnonzero(descending - excess / ranks > 0.0)[-1]
    return normalise(shifted - excess[support] / ranks[support])


def normalise(point: ArrayLike) -> NDArray[np.float64]:
    """Negative weights set to zero, and the rest scaled to add up to one."""
    weights = np.maximum(np.asarray(point, dtype=np.float64), 0.0)
    total = weights.sum()
    return weights / total if total > 0.0 else uniform(weights.size)


def moved(
    weights: NDArray[np.float64], members: NDArray[np.int64], amounts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Each row of weights after a move, (1 - a) * weights + a * e_m; away from m if a < 0."""
    out: NDArray[np.float64] = (1.0 - amounts)[:, np.newaxis] * weights
    out[np.arange(len(out)), members] += amounts
    # What a move leaves of a member that it takes out is rounding.
    out[out < _ROUNDING] = 0.0
    out /= out.sum(axis=1, keepdims=True)
    return out


def settled(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows of weights without the digits that depend on the order in which rows of data were added."""
    out: NDArray[np.float64] = np.round(weights, 10)
    largest = out.argmax(axis=1)
    out[np.arange(len(out)), largest] += 1.0 - out.sum(axis=1)
    return out
