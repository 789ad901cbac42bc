"""Average against weighted: what do the weights buy, beside the members and their average?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal.measures import Measure
from hullcal.measures.ece_conf import ConfidenceECE
from hullcal.measures.ece_cwise import ClasswiseECE
from hullcal.plots._canvas import BLACK, BLUE, GREY, SMALL, VERMILION, axes_or_new, legend_above
from hullcal.plots._text import number
from hullcal.scores import Score, accuracy
from hullcal.sets import ClassifierSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Comparison", "Lane", "average_against_weighted", "comparison"]


@dataclass(frozen=True)
class Lane:
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

    def place(self, value: ArrayLike) -> NDArray[np.float64]:
        """Where a value lies on the scale of the lane, from 0 to 1; in the middle if all are equal."""
        low, high = self.scale
        values = np.asarray(value, dtype=np.float64)
        return (values - low) / (high - low) if high > low else np.full_like(values, 0.5)


@dataclass(frozen=True)
class Comparison:
    """Accuracy, confidence ECE and classwise ECE, in this order."""

    lanes: tuple[Lane, Lane, Lane]


def comparison(
    probs: ArrayLike | ClassifierSet, labels: ArrayLike, weights: ArrayLike
) -> Comparison:
    """Score the members, their average and the weighted combination."""
    classifiers, truth = ClassifierSet.with_labels(probs, labels)
    average, weighted = classifiers.mean(), classifiers.mix(weights)
    members = [classifiers.probs[:, m, :] for m in range(classifiers.n_members)]
    ConfidenceECE().check(len(truth), stacklevel=4)  # one warning of few rows is enough
    scores: dict[str, Score] = {
        "accuracy\n(more is better)": accuracy,
        "confidence ECE\n(less is better)": _unchecked(ConfidenceECE()),
        "classwise ECE\n(less is better)": _unchecked(ClasswiseECE()),
    }
    first, second, third = (
        Lane(
            name,
            np.array([score(each, truth) for each in members]),
            score(average, truth),
            score(weighted, truth),
        )
        for name, score in scores.items()
    )
    return Comparison((first, second, third))


def _unchecked(measure: Measure) -> Score:
    """The measure as a score of predictions that passed the door."""

    def score(probs: NDArray[Any], labels: NDArray[np.int32]) -> float:
        mixed = np.ascontiguousarray(probs.T, dtype=np.float64)
        return measure.evaluate(mixed, labels, measure.parameters(probs))

    return score


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
    lanes = comparison(probs, labels, weights).lanes
    ax = axes_or_new(ax, height=2.5)
    for y, lane in enumerate(lanes):
        ax.plot([0.0, 1.0], [y, y], color=GREY, linewidth=0.8, zorder=1)
        _draw_points(ax, lane, y)
        _write_numbers(ax, lane, y)
    ax.set_yticks(range(3), labels=[lane.name for lane in lanes], fontsize=SMALL)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(2.5, -0.5)
    ax.set_xlim(-0.06, 1.06)
    ax.set_xticks([])
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    legend_above(ax, columns=3, from_right=True)
    return ax


def _draw_points(ax: Axes, lane: Lane, y: int) -> None:
    marks: list[tuple[NDArray[np.float64], str, str, int, float, str]] = [
        (lane.members, "o", GREY, 4, 0.45, "members"),
        (np.array([lane.average]), "s", BLUE, 6, 1.0, "average"),
        (np.array([lane.weighted]), "D", VERMILION, 5, 1.0, "weighted"),
    ]
    for values, marker, color, size, alpha, label in marks:
        x = lane.place(values)
        (line,) = ax.plot(x, np.full(len(x), y), marker, color=color, markersize=size, alpha=alpha)
        line.set(markeredgecolor=BLACK if alpha == 1.0 else color, label=label if y == 0 else None)
        line.set_markeredgewidth(0.6)


def _write_numbers(ax: Axes, lane: Lane, y: int) -> None:
    """Above the lane the two values that are compared; under it the ends of its scale."""
    said = f"average {number(lane.average)}, weighted {number(lane.weighted)}"
    ax.text(0.5, y - 0.2, said, fontsize=SMALL, horizontalalignment="center", va="bottom")
    low, high = lane.scale
    ends = [(0.0, low), (1.0, high)] if high > low else [(0.5, low)]
    for x, value in ends:
        ax.text(x, y + 0.17, number(value), fontsize=SMALL, ha="center", va="top", color="#555555")
