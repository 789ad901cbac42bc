"""Where does a ray from inside a convex hull leave it? Algorithm 2 without its line search."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal import hull
from hullcal._validation import InvalidInputError, as_array, check_probs, refusal
from hullcal.hull import COARSE_TOLERANCE, TOLERANCE, beyond, total_variation

Floats = NDArray[np.float64]


def in_hull(members: ArrayLike, point: ArrayLike) -> bool:
    """Whether some convex combination of the members is the point (line 7 of Algorithm 2).

    Parameters
    ----------
    members : array-like of shape (n_members, n_classes)
        Distributions over the classes.
    point : array-like of shape (n_classes,)
        A distribution; a total variation of 1e-9 is forgiven, or 1e-6 if it or the members came
        in less than double precision.

    Examples
    --------
    >>> in_hull([[0.8, 0.2], [0.4, 0.6]], [0.5, 0.5])
    True
    """
    corners, given = _checked(members, point=point)
    return bool(hull.in_hull(corners[None], given[None])[0])


def boundary(members: ArrayLike, start: ArrayLike, corner: ArrayLike) -> Floats:
    r"""The last point of the hull on the way from `start` to `corner` (Algorithm 2).

    .. math:: p_{\lambda_b} = (1 - \lambda_b)\, p_0 + \lambda_b\, p_c, \qquad
        \lambda_b = \max\{\lambda \in [0, 1] : p_\lambda \in S(\mathcal{P})\}

    Parameters
    ----------
    members : array-like of shape (n_members, n_classes)
        Distributions over the classes.
    start, corner : array-like of shape (n_classes,)
        p_0 and p_c, distributions. A start outside the hull is the answer, as in Algorithm 2.

    Returns
    -------
    ndarray of shape (n_classes,)
        Found as closely as `in_hull` can tell, where Algorithm 2 tries 100 points.

    Examples
    --------
    >>> boundary([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5], [1, 0])
    array([0.75, 0.25])
    """
    arrays = _checked(members, start=start, corner=corner)
    exact = all(array.dtype.itemsize >= 8 for array in arrays)
    whole, first, last = (array.astype(np.float64)[None] for array in arrays)
    tolerance = TOLERANCE if exact else COARSE_TOLERANCE
    found: Floats = along(first, last, boundaries(whole, first, last, tolerance=tolerance))[0]
    return found


def along(starts: Floats, corners: Floats, steps: Floats) -> Floats:
    """The points (1 - step) start + step corner; the start where the step is NaN."""
    share = np.nan_to_num(steps)[:, None]
    return (1.0 - share) * starts + share * corners


def boundaries(
    members: Floats, starts: Floats, corners: Floats, *, tolerance: float = TOLERANCE
) -> Floats:
    """The largest step in [0, 1] with which each ray is still in its hull; NaN if its start is not."""
    # Between distributions no coordinate differs by more than the total variation.
    above = members.max(axis=1) + tolerance - starts
    below = starts - members.min(axis=1) + tolerance
    rays = corners - starts
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        in_box = np.where(rays > 0.0, above, below) / np.abs(rays)
    # How far each ray stays between the smallest and largest members of every class. Most starts of
    # the paper's study are beyond these, and cost no projection.
    steps: Floats = np.clip(np.where(rays == 0.0, np.inf, in_box).min(axis=1), 0.0, 1.0)
    steps[(above < 0.0).any(axis=1) | (below < 0.0).any(axis=1)] = np.nan
    for n in np.flatnonzero(~np.isnan(steps)):
        if total_variation(beyond(members[n], starts[n])) > tolerance:
            steps[n] = np.nan
        else:
            steps[n] = _last_step(members[n], starts[n], corners[n], steps[n], tolerance)
    return steps


def _last_step(
    members: Floats, start: Floats, corner: Floats, step: float, tolerance: float
) -> float:
    """Newton's method on the distance from the hull, from a step that is too long or just right."""
    # The distance is a convex function of the step, so Newton's steps come down to the largest that is
    # near enough without passing it. A linear program would not do: HiGHS drops coefficients below
    # 1e-9 and forgives 1e-7, and predictions are often smaller than both.
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


def _checked(members: ArrayLike, **points: ArrayLike) -> list[NDArray[Any]]:
    """Members of one instance and distributions over its classes, not renormalised: that moves them."""
    given = {"members": members, **points}
    arrays = {name: as_array(value, name).array for name, value in given.items()}
    shape = arrays["members"].shape
    if len(shape) != 2 or shape[0] < 1 or shape[1] < 2:
        rule = "must have shape (n_members, n_classes) with at least 2 classes"
        raise refusal("members", rule, f"shape {shape}", "Give those of one instance: `probs[n]`.")
    for name, array in arrays.items():
        if name != "members" and array.shape != shape[1:]:
            rule = f"must have shape ({shape[1]},), one number for each class of the members"
            raise refusal(name, rule, f"shape {array.shape}", "Give a single distribution.")
        try:
            check_probs(np.atleast_2d(array))
        except InvalidInputError as error:
            rule = "must hold numbers of at least 0 whose sum over the classes is 1"
            repair = "Divide by the sum, or see whether the axes are in order."
            raise refusal(name, rule, reprlib.repr(array.tolist()), repair) from error
    return list(arrays.values())
