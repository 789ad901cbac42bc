"""Null distribution: how unusual is the statistic among the values under the hypothesis?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hullcal.plots._bins import histogram_edges
from hullcal.plots._canvas import BLACK, SKY, VERMILION, axes_or_new, legend_above
from hullcal.plots._text import PLAIN, as_typed, number
from hullcal.results import CalibrationTestResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["NullHistogram", "null_distribution", "null_histogram"]


@dataclass(frozen=True)
class NullHistogram:
    """Bins of the finite null values, and how many values are infinite.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
    counts : ndarray of shape (n_bins,)
    n_infinite : int
        Null values that no bin can hold.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    n_infinite: int


def null_histogram(values: NDArray[np.float64]) -> NullHistogram:
    """Count the null values in equal bins.

    >>> null_histogram(np.array([1.0, 1.0, np.inf])).n_infinite
    1
    """
    finite = values[np.isfinite(values)]
    edges = histogram_edges(finite)
    counts = np.histogram(finite, edges)[0]
    return NullHistogram(edges, counts.astype(np.int64), len(values) - len(finite))


def null_distribution(result: CalibrationTestResult, *, ax: Axes | None = None) -> Axes:
    """Draw the null distribution of a test with its statistic and critical value.

    Parameters
    ----------
    result : CalibrationTestResult
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new Figure if not given.

    Returns
    -------
    matplotlib.axes.Axes
        What is infinite has no place on the axis; the legend says so.
    """
    ax = axes_or_new(ax, height=2.6)
    histogram = null_histogram(result.null_distribution)
    n_finite = int(histogram.counts.sum())
    said = f"{result.n_resamples} null values, {as_typed(result.null)}"
    if histogram.n_infinite:
        said += f"; {histogram.n_infinite} infinite, not on axis"
    ax.stairs(
        histogram.counts, histogram.edges, fill=True, facecolor=SKY, edgecolor=BLACK, label=said
    )
    statistic = f"statistic {number(result.statistic)} (p = {result.pvalue:.3g})"
    _mark(ax, result.statistic, statistic, VERMILION, "-")
    critical = f"critical value {number(result.critical_value)} (level {result.alpha:g})"
    _mark(ax, result.critical_value, critical, BLACK, "--")
    if n_finite == 0:
        ax.set_yticks([])
        if not np.isfinite(result.statistic):
            ax.set_xticks([])
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel(as_typed(result.measure), **PLAIN)
    ax.set_ylabel("resamples per bin")
    legend_above(ax)
    return ax


def _mark(ax: Axes, at: float, label: str, color: str, style: str) -> None:
    """A labelled vertical line, or its legend entry alone where it has no place."""
    if np.isfinite(at):
        ax.axvline(at, color=color, linestyle=style, linewidth=1.5, label=label)
    else:
        ax.plot([], [], color=color, linestyle=style, linewidth=1.5, label=f"{label}, not on axis")
