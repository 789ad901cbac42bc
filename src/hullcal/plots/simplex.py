"""Simplex: where do the members lie for one instance, and what does their hull contain?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import ConvexHull, QhullError

from hullcal._validation import InvalidInputError, check_integer, check_points, check_weights
from hullcal.plots._canvas import (
    BLACK,
    BLUE,
    GREEN,
    SKY,
    SMALL,
    VERMILION,
    axes_or_new,
    legend_above,
)
from hullcal.plots._text import PLAIN, as_typed
from hullcal.sets import ClassifierSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SimplexPoints", "simplex", "simplex_points"]


@dataclass(frozen=True)
class SimplexPoints:
    """What is drawn of one instance; every point has three coordinates that sum to one.

    Attributes
    ----------
    members : ndarray of shape (n_members, 3)
    hull : ndarray of shape (n_corners, 3)
        Corners of the convex hull in order; two or one if the members lie on a line or coincide.
    mean : ndarray of shape (3,)
    truth, combination : ndarray of shape (3,), or None
    corners : tuple of three str
        Names of the classes, ready to be drawn.
    """

    members: NDArray[np.float64]
    hull: NDArray[np.float64]
    mean: NDArray[np.float64]
    truth: NDArray[np.float64] | None
    combination: NDArray[np.float64] | None
    corners: tuple[str, ...]


def simplex_points(
    probs: ArrayLike | ClassifierSet,
    *,
    instance: int = 0,
    truth: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> SimplexPoints:
    """Find the points of one instance; parameters are those of `simplex`."""
    classifiers = ClassifierSet.of(probs)
    n_samples, n_members, n_classes = classifiers.probs.shape
    if n_classes != 3:
        raise InvalidInputError(
            f"`probs` must have 3 classes to be drawn in a triangle; got {n_classes}. "
            "Merge classes, or see `hullcal.plots.size_distribution` for any number of them."
        )
    instance = check_integer(instance, "instance", 0)
    if instance >= n_samples:
        raise InvalidInputError(
            f"`instance` must be less than the number of rows, {n_samples}; got {instance}. "
            "Rows are counted from 0."
        )
    members = classifiers.probs[instance].astype(np.float64)
    names = [f"class {k}" for k in range(3)] if classifiers.classes is None else classifiers.classes
    return SimplexPoints(
        members=members,
        hull=_corners_of_hull(members),
        mean=members.mean(axis=0),
        truth=None
        if truth is None
        else check_points(truth, n_samples, 3)[instance].astype(np.float64),
        combination=None if weights is None else check_weights(weights, n_members) @ members,
        corners=tuple(as_typed(name) for name in names),
    )


def _corners_of_hull(members: NDArray[np.float64]) -> NDArray[np.float64]:
    distinct = np.unique(members, axis=0)
    try:
        corners: NDArray[np.intp] = ConvexHull(distinct[:, :2]).vertices
    except QhullError:  # fewer than three members, or all on a line: its ends
        centred = distinct - distinct.mean(axis=0)
        along = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
        corners = np.unique([along.argmin(), along.argmax()])
    return distinct[corners]


def simplex(
    probs: ArrayLike | ClassifierSet,
    *,
    instance: int = 0,
    truth: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the members of one instance and their convex hull in the triangle of three classes.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, 3), or ClassifierSet
    instance : int
        The row to draw, from 0.
    truth : array-like of shape (3,) or (n_samples, 3), optional
        True probabilities, if they are known.
    weights : array-like of shape (n_members,), optional
        Draws that combination as well.
    ax : mpltern.TernaryAxes, optional
        Made by ``figure.add_subplot(projection="ternary")``; a new Figure if not given.

    Returns
    -------
    mpltern.TernaryAxes
    """
    import mpltern  # type: ignore[import-untyped]  # also registers its projection

    points = simplex_points(probs, instance=instance, truth=truth, weights=weights)
    triangle = axes_or_new(ax, height=3.4, projection="ternary")
    is_ternary = isinstance(triangle, mpltern.TernaryAxes)
    if not is_ternary:
        raise InvalidInputError(
            f"`ax` must be a ternary Axes; got {type(triangle).__name__}. Make one by "
            '`figure.add_subplot(projection="ternary")` after `import mpltern`.'
        )
    ternary: Any = triangle
    ternary.fill(*points.hull.T, facecolor=SKY, alpha=0.35, edgecolor=BLUE, label="convex hull")
    dots = {"linestyle": "none", "markeredgecolor": BLACK, "markeredgewidth": 0.6, "clip_on": False}
    ternary.plot(*points.members.T, "o", color=BLUE, markersize=3, label="members", **dots)
    others = [
        (points.mean, "s", "white", "average"),
        (points.combination, "D", VERMILION, "weighted"),
        (points.truth, "*", GREEN, "truth"),
    ]
    for point, marker, color, label in others:
        if point is not None:
            size = 9 if marker == "*" else 5
            at = [[coordinate] for coordinate in point]
            ternary.plot(*at, marker, color=color, markersize=size, label=label, **dots)
    for axis, name in zip("tlr", points.corners, strict=True):
        write = cast("Callable[..., object]", getattr(ternary, f"set_{axis}label"))
        write(name, fontsize=SMALL + 1, **PLAIN)
    legend_above(triangle, columns=3, lift=0.22)
    return triangle
