"""Reliability diagram: does what is predicted with probability p come true as often?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hullcal.plots._canvas import BLACK, BLUE, GREY, SKY, VERMILION, axes_or_new, legend_above
from hullcal.plots._curves import Curve, ReliabilityDiagram, reliability_diagram
from hullcal.plots._text import PLAIN
from hullcal.sets import ClassifierSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ReliabilityDiagram", "reliability", "reliability_diagram"]

#: Room for the counts under the diagram, as a share of the height of the diagram.
_STRIP = 0.14


def reliability(
    probs: ArrayLike | ClassifierSet,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    class_index: int | None = None,
    n_bins: int = 10,
    n_resamples: int = 200,
    confidence: float = 0.95,
    rng: int | np.random.Generator | None = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the reliability diagram of a set: members, average and a weighted combination.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes), or ClassifierSet
    labels : array-like of shape (n_samples,)
    weights : array-like of shape (n_members,), optional
        Draws that combination as well, and the consistency band becomes its own.
    class_index : int, optional
        The class whose probability is drawn, from 0; the predicted class if not given.
    n_bins : int
        Bins of equal width.
    n_resamples : int
        How often labels are redrawn for the consistency band.
    confidence : float
        Share of redrawn frequencies inside the band, bin by bin.
    rng : int, numpy.random.Generator or None
        Seed of the redrawn labels.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new Figure if not given.

    Returns
    -------
    matplotlib.axes.Axes
        Under the diagram, bars show how many rows each bin holds.
    """
    diagram = reliability_diagram(
        probs,
        labels,
        weights=weights,
        class_index=class_index,
        n_bins=n_bins,
        n_resamples=n_resamples,
        confidence=confidence,
        rng=rng,
    )
    ax = axes_or_new(ax, height=3.7)
    _draw_band(ax, diagram)
    ax.plot([0, 1], [0, 1], color=BLACK, linestyle=":", linewidth=1, label="calibrated")
    for m, member in enumerate(diagram.members):
        label = _in_words(len(diagram.members)) if m == 0 else None
        _draw_curve(ax, member, color=GREY, style="-", marker="", width=0.6, label=label)
    _draw_curve(ax, diagram.average, color=BLUE, style="--", marker="s", width=1.3, label="average")
    if diagram.weighted is not None:
        _draw_curve(
            ax,
            diagram.weighted,
            color=VERMILION,
            style="-",
            marker="o",
            width=1.5,
            label="weighted",
        )
    _draw_counts(ax, diagram)
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(-_STRIP, 1.0)
    ax.set_yticks(np.arange(6) / 5)
    ax.set_xlabel(f"probability of {diagram.event}", **PLAIN)
    ax.set_ylabel("observed frequency")
    legend_above(ax, columns=2)
    return ax


def _in_words(n_drawn: int) -> str:
    return "1 member" if n_drawn == 1 else f"{n_drawn} members"


def _draw_band(ax: Axes, diagram: ReliabilityDiagram) -> None:
    """A box for each bin with rows, so that a gap stays a gap."""
    full = ~np.isnan(diagram.low)
    whose = "average" if diagram.weighted is None else "weighted"
    ax.bar(
        diagram.edges[:-1][full],
        (diagram.high - diagram.low)[full],
        bottom=diagram.low[full],
        width=np.diff(diagram.edges)[full],
        align="edge",
        facecolor=(SKY, 0.3),
        edgecolor=SKY,
        linewidth=0.6,
        hatch="///",
        label=f"{100 * diagram.confidence:g} % band of {whose}",
    )


def _draw_curve(
    ax: Axes, curve: Curve, *, color: str, style: str, marker: str, width: float, label: str | None
) -> None:
    full = curve.counts > 0
    (line,) = ax.plot(curve.predicted[full], curve.observed[full], style, color=color, label=label)
    faint = not marker
    # A member with a single bin would be a line without length.
    line.set(marker="." if faint else marker, markersize=2 if faint else 4, linewidth=width)
    line.set(alpha=0.5 if faint else 1.0, zorder=1.5 if faint else 3.0, clip_on=False)


def _draw_counts(ax: Axes, diagram: ReliabilityDiagram) -> None:
    counts = (diagram.average if diagram.weighted is None else diagram.weighted).counts
    ax.bar(
        diagram.edges[:-1],
        0.85 * _STRIP * counts / counts.max(),
        bottom=-_STRIP,
        width=np.diff(diagram.edges),
        align="edge",
        facecolor="#DDDDDD",
        edgecolor=GREY,
        linewidth=0.6,
        label=f"rows (at most {counts.max()})",
    )
    ax.axhline(0.0, color=BLACK, linewidth=0.6)
