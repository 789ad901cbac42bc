"""Pictures of sets: what the weights buy, one row in the triangle, and sizes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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


def scores(
    probs: ArrayLike | ClassifierSet, labels: ArrayLike, weights: ArrayLike
) -> dict[str, NDArray[np.float64]]:
    """Accuracy and both calibration errors of each member, then of average and weighted combination."""
    classifiers, truth = ClassifierSet.with_labels(probs, labels)
    members = [classifiers.probs[:, m, :] for m in range(classifiers.n_members)]
    all_of_them = [*members, classifiers.mean(), classifiers.mix(weights)]
    score_of: dict[str, Callable[[Any, Any], float]] = {
        "accuracy\n(more is better)": accuracy,
        "confidence ECE\n(less is better)": measures.resolve("ece_conf"),
        "classwise ECE\n(less is better)": measures.resolve("ece_cwise"),
    }
    with warnings.catch_warnings():
        # Each score of each member would warn of few rows.
        warnings.simplefilter("ignore", HullcalWarning)
        return {
            name: np.array([score(each, truth) for each in all_of_them])
            for name, score in score_of.items()
        }


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
    lanes = scores(probs, labels, weights)
    ax = axes_or_new(ax, height=2.5)
    edge: dict[str, Any] = {"markeredgecolor": BLACK, "markeredgewidth": 0.6}
    groups: tuple[tuple[str, slice, dict[str, Any]], ...] = (
        ("members", slice(-2), {"marker": "o", "color": GREY, "markersize": 4, "alpha": 0.45}),
        ("average", slice(-2, -1), {"marker": "s", "color": BLUE, "markersize": 6, **edge}),
        ("weighted", slice(-1, None), {"marker": "D", "color": VERMILION, "markersize": 5, **edge}),
    )
    for y, values in enumerate(lanes.values()):
        low, high = values.min(), values.max()
        # In the middle if all are equal.
        places = (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
        ax.plot([0.0, 1.0], [y, y], color=GREY, linewidth=0.8, zorder=1)
        for name, which, look in groups:
            x = places[which]
            label = name if y == 0 else None
            ax.plot(x, np.full(len(x), y), linestyle="none", label=label, **look)
        # Above the lane the two values that are compared; under it the ends of its scale.
        said = f"average {number(values[-2])}, weighted {number(values[-1])}"
        ax.text(0.5, y - 0.2, said, fontsize=SMALL, ha="center", va="bottom")
        for end, value in [(0.0, low), (1.0, high)] if high > low else [(0.5, low)]:
            ax.text(end, y + 0.17, number(value), fontsize=SMALL, ha="center", va="top")
    ax.set_yticks(range(len(lanes)), labels=list(lanes), fontsize=SMALL)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(2.5, -0.5)
    ax.set_xlim(-0.06, 1.06)
    ax.set_xticks([])
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    legend_above(ax, columns=3, from_right=True)
    return ax


def corners_of_hull(members: NDArray[np.float64]) -> NDArray[np.float64]:
    """Corners in order; two or one where the members lie on a line or coincide."""
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

    classifiers = ClassifierSet.of(probs)
    n_samples, n_members, n_classes = classifiers.probs.shape
    if n_classes != 3:
        repair = "Merge classes, or use `hullcal.plots.size_distribution`."
        raise refusal("probs", "must have 3 classes to fit a triangle", str(n_classes), repair)
    instance = check_integer(instance, "instance", 0)
    if instance >= n_samples:
        rule = f"must be less than the number of rows, {n_samples}"
        raise refusal("instance", rule, str(instance), "Rows are counted from 0.")
    triangle: Any = axes_or_new(ax, height=3.4, projection="ternary")
    if not isinstance(triangle, mpltern.TernaryAxes):
        raise InvalidInputError(
            f"`ax` must be a ternary Axes; got {type(triangle).__name__}. Make one by "
            '`figure.add_subplot(projection="ternary")` after `import mpltern`.'
        )
    members = classifiers.probs[instance].astype(np.float64)
    hull = corners_of_hull(members)
    mixed = None if weights is None else check_weights(weights, n_members) @ members
    true = None if truth is None else check_points(truth, n_samples, 3)[instance]
    triangle.fill(*hull.T, facecolor=SKY, alpha=0.35, edgecolor=BLUE, label="convex hull")
    for points, marker, size, color, label in (
        (members, "o", 3, BLUE, "members"),
        (members.mean(axis=0), "s", 5, "white", "average"),
        (mixed, "D", 5, VERMILION, "weighted"),
        (true, "*", 9, GREEN, "truth"),
    ):
        if points is not None:
            (dots,) = triangle.plot(*np.atleast_2d(points).T, marker, color=color, label=label)
            dots.set(markersize=size, markeredgecolor=BLACK, markeredgewidth=0.6, clip_on=False)
    write = (triangle.set_tlabel, triangle.set_llabel, triangle.set_rlabel)
    names = classifiers.classes or [f"class {k}" for k in range(3)]
    for set_label, name in zip(write, names, strict=True):
        set_label(as_typed(name), fontsize=SMALL + 1, **PLAIN)
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
    if size not in _SIZES:
        raise unknown("size", size, _SIZES)
    classifiers, truth = ClassifierSet.with_labels(probs, labels)
    predictions = classifiers.mean() if weights is None else classifiers.mix(weights)
    right = predictions.argmax(axis=1) == truth
    size_of, axis_label = _SIZES[size]
    sizes = size_of(classifiers)
    edges = histogram_edges(sizes)
    ax = axes_or_new(ax, height=2.5)
    for values, name, color, style, hatch in (
        (sizes[right], "right", BLUE, "-", None),
        (sizes[~right], "wrong", VERMILION, "--", "////"),
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
    ax.set_xlabel(axis_label)
    ax.set_ylabel("density")
    legend_above(ax)
    return ax
