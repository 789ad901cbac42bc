"""Size distribution: are the sets larger where the prediction is wrong?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal import uncertainty
from hullcal._validation import InvalidInputError
from hullcal.plots._bins import histogram_edges
from hullcal.plots._canvas import BLUE, VERMILION, axes_or_new, legend_above
from hullcal.plots._text import number
from hullcal.sets import ClassifierSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SizeGroups", "size_distribution", "size_groups"]


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


@dataclass(frozen=True)
class SizeGroups:
    """Sizes of the instances that were predicted right and of those predicted wrong.

    Attributes
    ----------
    right, wrong : ndarray
        One size per instance; either may be empty.
    edges : ndarray of shape (n_bins + 1,)
        Bins of both histograms.
    label : str
        The size in words, with its unit.
    """

    right: NDArray[np.float64]
    wrong: NDArray[np.float64]
    edges: NDArray[np.float64]
    label: str


def size_groups(
    probs: ArrayLike | ClassifierSet,
    labels: ArrayLike,
    *,
    size: str = "tv_diameter",
    weights: ArrayLike | None = None,
) -> SizeGroups:
    """Compute sizes and split them; parameters are those of `size_distribution`."""
    if size not in _SIZES:
        raise InvalidInputError(
            f"`size` must be one of {', '.join(_SIZES)}; got {size!r:.80}. Mind the spelling."
        )
    classifiers, truth = ClassifierSet.with_labels(probs, labels)
    predictions = classifiers.mean() if weights is None else classifiers.mix(weights)
    right = predictions.argmax(axis=1) == truth
    function, label = _SIZES[size]
    values = function(classifiers)
    return SizeGroups(values[right], values[~right], histogram_edges(values), label)


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
    groups = size_groups(probs, labels, size=size, weights=weights)
    ax = axes_or_new(ax, height=2.5)
    _draw_group(ax, groups.right, groups.edges, "right", BLUE, "-", "")
    _draw_group(ax, groups.wrong, groups.edges, "wrong", VERMILION, "--", "////")
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel(groups.label)
    ax.set_ylabel("density")
    legend_above(ax)
    return ax


def _draw_group(
    ax: Axes,
    values: NDArray[np.float64],
    edges: NDArray[np.float64],
    name: str,
    color: str,
    style: str,
    hatch: str,
) -> None:
    if len(values) == 0:
        ax.plot([], [], color=color, linestyle=style, label=f"{name} (no instances)")
        return
    median = float(np.median(values))
    said = f"{name} ({len(values)} instances, median {number(median)})"
    density = np.histogram(values, edges, density=True)[0]
    look: dict[str, Any] = {"edgecolor": color, "linestyle": style, "hatch": hatch or None}
    ax.stairs(density, edges, fill=True, facecolor=(color, 0.15), linewidth=1.4, label=said, **look)
    ax.axvline(median, color=color, linestyle=style, linewidth=0.8)
