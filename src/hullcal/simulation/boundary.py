"""Where does a ray from inside a convex hull leave it? Algorithm 2 without its line search."""

from __future__ import annotations

import reprlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal import hull
from hullcal._validation import InvalidInputError, as_array, check_probs, refusal
from hullcal.hull import COARSE_TOLERANCE, TOLERANCE, beyond, nearest, total_variation

Floats = NDArray[np.float64]


class Projection(NamedTuple):
    """The point of a hull that is nearest to a given one, and the weights that make it."""

    point: Floats
    weights: Floats


def in_hull(members: ArrayLike, point: ArrayLike) -> bool:
    """Whether some convex combination of the members is the point (line 7 of Algorithm 2).

    Parameters
    ----------
    members : array-like of shape (n_members, n_classes)
        Distributions over the classes.
    point : array-like of shape (n_classes,)
        A distribution; a total variation of 1e-9 is forgiven, or 1e-6 if it or the members came
        in less than double precision.

    Returns
    -------
    bool

    Examples
    --------
    >>> in_hull([[0.8, 0.2], [0.4, 0.6]], [0.5, 0.5])
    True
    """
    corners = _members(members)
    given = _distribution(point, "point", corners.shape[1])
    return bool(hull.in_hull(corners[None], given[None])[0])


def project(members: ArrayLike, point: ArrayLike) -> Projection:
    """The point of the hull nearest to a given one in the Euclidean sense, with its weights.

    Parameters
    ----------
    members : array-like of shape (n_members, n_classes)
        Distributions over the classes.
    point : array-like of shape (n_classes,)
        A distribution.

    Returns
    -------
    Projection
        `point` and `weights`. The point is unique; the weights are if no two combinations agree.

    Examples
    --------
    >>> project([[0.75, 0.25], [0.5, 0.5]], [0.0, 1.0])
    Projection(point=array([0.5, 0.5]), weights=array([0., 1.]))
    """
    corners = _members(members)
    given = _distribution(point, "point", corners.shape[1])
    corners = corners.astype(np.float64)
    weights = nearest(corners, given.astype(np.float64))
    return Projection(weights @ corners, weights)


def boundary(members: ArrayLike, start: ArrayLike, corner: ArrayLike) -> Floats:
    r"""The last point of the hull on the way from `start` to `corner` (Algorithm 2).

    .. math:: p_{\lambda_b} = (1 - \lambda_b)\, p_0 + \lambda_b\, p_c, \qquad
        \lambda_b = \max\{\lambda \in [0, 1] : p_\lambda \in S(\mathcal{P})\}

    Parameters
    ----------
    members : array-like of shape (n_members, n_classes)
        Distributions over the classes.
    start : array-like of shape (n_classes,)
        p_0, a distribution. If it is outside the hull, it is the answer, as in Algorithm 2.
    corner : array-like of shape (n_classes,)
        p_c, a distribution: a corner of the simplex in the paper.

    Returns
    -------
    ndarray of shape (n_classes,)
        Found as closely as `in_hull` can tell, where Algorithm 2 tries 100 points.

    Examples
    --------
    >>> boundary([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5], [1, 0])
    array([0.75, 0.25])
    """
    corners = _members(members)
    ends = [
        _distribution(x, n, corners.shape[1]) for x, n in ((start, "start"), (corner, "corner"))
    ]
    exact = all(array.dtype.itemsize >= 8 for array in (corners, *ends))
    whole, first, last = (array.astype(np.float64)[None] for array in (corners, *ends))
    tolerance = TOLERANCE if exact else COARSE_TOLERANCE
    found: Floats = along(first, last, boundaries(whole, first, last, tolerance=tolerance))[0]
    return found


def along(starts: Floats, corners: Floats, steps: Floats) -> Floats:
    """The points (1 - step) start + step corner; the start where the step is NaN."""
    share = np.nan_to_num(steps)[:, None]
    points: Floats = (1.0 - share) * starts + share * corners
    return points


def boundaries(
    members: Floats, starts: Floats, corners: Floats, *, tolerance: float = TOLERANCE
) -> Floats:
    """The largest step in [0, 1] with which each ray is still in its hull; unchecked.

    A start that is beyond every member in some class is outside at once, which decides most
    instances of the paper's study. The others cost one projection for the start, and a few for the step.

    Parameters
    ----------
    members : ndarray of shape (n_samples, n_members, n_classes)
    starts, corners : ndarray of shape (n_samples, n_classes)
    tolerance : float
        The total variation from the hull that still counts as inside.

    Returns
    -------
    ndarray of shape (n_samples,)
        NaN where the start is outside the hull.
    """
    # Between distributions no coordinate differs by more than the total variation.
    above = members.max(axis=1) + tolerance - starts
    below = starts - members.min(axis=1) + tolerance
    steps = _steps_in_box(above, below, corners - starts)
    steps[(above < 0.0).any(axis=1) | (below < 0.0).any(axis=1)] = np.nan
    for n in np.flatnonzero(~np.isnan(steps)):
        if total_variation(beyond(members[n], starts[n])) > tolerance:
            steps[n] = np.nan
        else:
            steps[n] = _last_step(members[n], starts[n], corners[n], steps[n], tolerance)
    return steps


def _steps_in_box(above: Floats, below: Floats, rays: Floats) -> Floats:
    """How far each ray stays between the smallest and largest members of every class."""
    room = np.where(rays > 0.0, above, below)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        steps = np.where(rays == 0.0, np.inf, room / np.abs(rays))
    bounded: Floats = np.clip(steps.min(axis=1), 0.0, 1.0)
    return bounded


def _last_step(
    members: Floats, start: Floats, corner: Floats, step: float, tolerance: float
) -> float:
    """Newton's method on the distance from the hull, from a step that is too long or just right.

    The distance of (1 - s) start + s corner is a convex function of s, so Newton's steps come down
    to the largest s that is near enough without passing it. A tangent is a plane that separates the
    point from the hull. On a polytope about four projections suffice, and no size or degeneracy
    of the members upsets them as it does a linear program: HiGHS drops coefficients below 1e-9
    and forgives 1e-7, and predictions are often smaller than both.
    """
    ray = corner - start
    while step > 0.0:
        gap = beyond(members, (1.0 - step) * start + step * corner)
        distance = total_variation(gap)
        # Short of the tolerance, so that another way to measure it will agree; and aimed a little
        # shorter still, so that the loop ends.
        if distance <= 0.9 * tolerance:
            return step
        too_far = float(gap @ gap) * (1.0 - 0.8 * tolerance / distance)
        # The start is inside, so that the slope is positive but for rounding.
        slope = float(gap @ ray)
        step = step - too_far / slope if slope > 0.0 else 0.0
    return 0.0


def _members(members: ArrayLike) -> NDArray[Any]:
    """Validate the members of one instance."""
    array = as_array(members, "members").array
    if array.ndim != 2 or array.shape[0] < 1 or array.shape[1] < 2:
        rule = "must have shape (n_members, n_classes) with at least 2 classes"
        repair = "Give the members of one instance: `probs[n]`."
        raise refusal("members", rule, f"shape {array.shape}", repair)
    return _on_simplex(array, "members")


def _distribution(value: ArrayLike, name: str, n_classes: int) -> NDArray[Any]:
    """Validate one distribution over the members' classes."""
    array = as_array(value, name).array
    if array.shape != (n_classes,):
        rule = f"must have shape ({n_classes},), one number for each class of the members"
        repair = "Give a single distribution."
        raise refusal(name, rule, f"shape {array.shape}", repair)
    return _on_simplex(array, name)


def _on_simplex(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Refuse what is no distribution; leave the rest as it came, as renormalising could move it."""
    try:
        check_probs(np.atleast_2d(array))
    except InvalidInputError as error:
        rule = "must hold numbers of at least 0 whose sum over the classes is 1"
        repair = "Divide by the sum, or see whether the axes are in order."
        raise refusal(name, rule, reprlib.repr(array.tolist()), repair) from error
    return array
