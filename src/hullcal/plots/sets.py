"""Pictures of sets: what the weights buy, one row in the triangle, and sizes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import ConvexHull, QhullError

from hullcal import measures, uncertainty
from hullcal._validation import (
    HullcalWarning,
    InvalidInputError,
    check_integer,
    check_points,
    check_weights,
    refusal,
    unknown,
)
from hullcal.plots.canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    PLAIN,
    SKY,
    SMALL,
    VERMILION,
    as_typed,
    axes_or_new,
    histogram_edges,
    legend_above,
    number,
)
from hullcal.sets import ClassifierSet, accuracy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Lane(NamedTuple):
    """One score of every member, of their average and of the weighted combination."""

    name: str
    members: NDArray[np.float64]
    average: float
    weighted: float

    @property
    def scale(self) -> tuple[float, float]:
        """The smallest and the largest value of the lane."""
        values = [*self.members, self.average, self.weighted]
        return float(min(values)), float(max(values))

    def place(self, values: ArrayLike) -> NDArray[np.float64]:
        """Where values lie on the scale of the lane, from 0 to 1; in the middle if all are equal."""
        low, high = self.scale
        values = np.atleast_1d(np.asarray(values, dtype=np.float64))
        return (values - low) / (high - low) if high > low else np.full_like(values, 0.5)


def lanes(probs: ArrayLike | ClassifierSet, labels: ArrayLike, weights: ArrayLike) -> list[Lane]:
    """Accuracy, confidence ECE and classwise ECE, in this order."""
    classifiers, truth = ClassifierSet.with_labels(probs, labels)
    average, weighted = classifiers.mean(), classifiers.mix(weights)
    members = [classifiers.probs[:, m, :] for m in range(classifiers.n_members)]
    scores: dict[str, Callable[[Any, Any], float]] = {
        "accuracy\n(more is better)": accuracy,
        "confidence ECE\n(less is better)": measures.resolve("ece_conf"),
        "classwise ECE\n(less is better)": measures.resolve("ece_cwise"),
    }
    with warnings.catch_warnings():
        # Each score of each member would warn of few rows.
        warnings.simplefilter("ignore", HullcalWarning)
        return [
            Lane(
                name,
                np.array([score(each, truth) for each in members]),
                score(average, truth),
                score(weighted, truth),
            )
            for name, score in scores.items()
        ]


def average_against_weighted(
    probs: ArrayLike | ClassifierSet,
    labels: ArrayLike,
    weights: ArrayLike,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw three scores of the members, of their average and of the weighted combination.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes), or ClassifierSet
    labels : array-like of shape (n_samples,)
        If weights were fitted to these rows, expect worse calibration on new data.
    weights : array-like of shape (n_members,)
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new Figure if not given.

    Returns
    -------
    matplotlib.axes.Axes
        A lane for each score; its ends, printed under it, are its smallest and largest value.
    """
    shown = lanes(probs, labels, weights)
    ax = axes_or_new(ax, height=2.5)
    for y, lane in enumerate(shown):
        ax.plot([0.0, 1.0], [y, y], color=GREY, linewidth=0.8, zorder=1)
        edge: dict[str, Any] = {"markeredgecolor": BLACK, "markeredgewidth": 0.6}
        for values, marker, color, size, name, look in (
            (lane.members, "o", GREY, 4, "members", {"alpha": 0.45}),
            (lane.average, "s", BLUE, 6, "average", edge),
            (lane.weighted, "D", VERMILION, 5, "weighted", edge),
        ):
            x = lane.place(values)
            label = name if y == 0 else None
            ax.plot(x, [y] * len(x), marker, color=color, markersize=size, label=label, **look)
        # Above the lane the two values that are compared; under it the ends of its scale.
        said = f"average {number(lane.average)}, weighted {number(lane.weighted)}"
        ax.text(0.5, y - 0.2, said, fontsize=SMALL, ha="center", va="bottom")
        low, high = lane.scale
        for end, value in [(0.0, low), (1.0, high)] if high > low else [(0.5, low)]:
            ax.text(end, y + 0.17, number(value), fontsize=SMALL, ha="center", va="top")
    ax.set_yticks(range(3), labels=[lane.name for lane in shown], fontsize=SMALL)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(2.5, -0.5)
    ax.set_xlim(-0.06, 1.06)
    ax.set_xticks([])
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    legend_above(ax, columns=3, from_right=True)
    return ax


class SimplexPoints(NamedTuple):
    """What is drawn of one instance; every point has three coordinates that sum to one.

    Attributes
    ----------
    members : ndarray of shape (n_members, 3)
    hull : ndarray of shape (n_corners, 3)
        Corners of the convex hull in order; two or one if the members lie on a line or coincide.
    mean : ndarray of shape (3,)
    truth, combination : ndarray of shape (3,), or None
    corners : list of three str
        Names of the classes, ready to be drawn.
    """

    members: NDArray[np.float64]
    hull: NDArray[np.float64]
    mean: NDArray[np.float64]
    truth: NDArray[np.float64] | None
    combination: NDArray[np.float64] | None
    corners: list[str]


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
        repair = "Merge classes, or use `hullcal.plots.size_distribution`."
        raise refusal("probs", "must have 3 classes to fit a triangle", str(n_classes), repair)
    instance = check_integer(instance, "instance", 0)
    if instance >= n_samples:
        rule = f"must be less than the number of rows, {n_samples}"
        raise refusal("instance", rule, str(instance), "Rows are counted from 0.")
    members = classifiers.probs[instance].astype(np.float64)
    true = None if truth is None else check_points(truth, n_samples, 3)[instance]
    names = classifiers.classes or [f"class {k}" for k in range(3)]
    return SimplexPoints(
        members=members,
        hull=_corners_of_hull(members),
        mean=members.mean(axis=0),
        truth=true,
        combination=None if weights is None else check_weights(weights, n_members) @ members,
        corners=[as_typed(name) for name in names],
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
    triangle: Any = axes_or_new(ax, height=3.4, projection="ternary")
    if not isinstance(triangle, mpltern.TernaryAxes):
        raise InvalidInputError(
            f"`ax` must be a ternary Axes; got {type(triangle).__name__}. Make one by "
            '`figure.add_subplot(projection="ternary")` after `import mpltern`.'
        )
    triangle.fill(*points.hull.T, facecolor=SKY, alpha=0.35, edgecolor=BLUE, label="convex hull")
    for coordinates, marker, size, color, label in (
        (points.members, "o", 3, BLUE, "members"),
        (points.mean, "s", 5, "white", "average"),
        (points.combination, "D", 5, VERMILION, "weighted"),
        (points.truth, "*", 9, GREEN, "truth"),
    ):
        if coordinates is not None:
            (dots,) = triangle.plot(*np.atleast_2d(coordinates).T, marker, color=color, label=label)
            dots.set(markersize=size, markeredgecolor=BLACK, markeredgewidth=0.6, clip_on=False)
    write = (triangle.set_tlabel, triangle.set_llabel, triangle.set_rlabel)
    for set_label, name in zip(write, points.corners, strict=True):
        set_label(name, fontsize=SMALL + 1, **PLAIN)
    legend_above(triangle, columns=3, lift=0.22)
    axes: Axes = triangle
    return axes


def _entropy_range(probs: Any) -> NDArray[np.float64]:
    lower, upper = uncertainty.entropy_bounds(probs)
    return upper - lower


#: What can be drawn: name, function, axis label.
_SIZES: dict[str, tuple[Callable[[Any], NDArray[np.float64]], str]] = {
    "mutual_information": (uncertainty.mutual_information, "mutual information (nats)"),
    "generalized_hartley": (uncertainty.generalized_hartley, "generalised Hartley measure (bits)"),
    "tv_diameter": (uncertainty.tv_diameter, "total-variation diameter"),
    "interval_width": (uncertainty.interval_width, "mean width of the probability intervals"),
    "entropy_range": (_entropy_range, "upper less lower entropy (nats)"),
}


def size_groups(
    probs: ArrayLike | ClassifierSet,
    labels: ArrayLike,
    *,
    size: str = "tv_diameter",
    weights: ArrayLike | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sizes of the instances predicted right, and of those predicted wrong; either may be empty."""
    if size not in _SIZES:
        raise unknown("size", size, _SIZES)
    classifiers, truth = ClassifierSet.with_labels(probs, labels)
    predictions = classifiers.mean() if weights is None else classifiers.mix(weights)
    right = predictions.argmax(axis=1) == truth
    values = _SIZES[size][0](classifiers)
    return values[right], values[~right]


def size_distribution(
    probs: ArrayLike | ClassifierSet,
    labels: ArrayLike,
    *,
    size: str = "tv_diameter",
    weights: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how large the set is where its combination predicts right, and where wrong.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes), or ClassifierSet
    labels : array-like of shape (n_samples,)
    size : str
        "mutual_information", "generalized_hartley", "tv_diameter", "interval_width" (functions of
        `hullcal.uncertainty`), or "entropy_range", the upper entropy less the lower.
    weights : array-like of shape (n_members,), optional
        The combination that predicts; the average member if not given.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new Figure if not given.

    Returns
    -------
    matplotlib.axes.Axes
        A density for each group, and a thin line at its median.
    """
    right, wrong = size_groups(probs, labels, size=size, weights=weights)
    edges = histogram_edges(np.concatenate([right, wrong]))
    ax = axes_or_new(ax, height=2.5)
    for values, name, color, style, hatch in (
        (right, "right", BLUE, "-", None),
        (wrong, "wrong", VERMILION, "--", "////"),
    ):
        look: dict[str, Any] = {"facecolor": (color, 0.15), "edgecolor": color, "hatch": hatch}
        if len(values) == 0:
            ax.plot([], color=color, linestyle=style, label=f"{name} (no instances)")
            continue
        density, _ = np.histogram(values, edges, density=True)
        median = float(np.median(values))
        label = f"{name} ({len(values)} instances, median {number(median)})"
        ax.stairs(density, edges, fill=True, linestyle=style, linewidth=1.4, label=label, **look)
        ax.axvline(median, color=color, linestyle=style, linewidth=0.8)
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel(_SIZES[size][1])
    ax.set_ylabel("density")
    legend_above(ax)
    return ax
