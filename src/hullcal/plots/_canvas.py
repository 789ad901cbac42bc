"""Where is a plot drawn, how large, and in which colours?"""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from hullcal._validation import InvalidInputError
from hullcal.plots._text import PLAIN

#: Width in inches of one column of a journal's page, and of two.
COLUMN, PAGE = 3.35, 6.7

#: Size in points of names and numbers inside a plot.
SMALL = 7.0

# The colours of Okabe and Ito, which colour-blind readers tell apart. No plot relies on them alone.
BLACK, GREY, BLUE, SKY = "#000000", "#8C8C8C", "#0072B2", "#56B4E9"
ORANGE, GREEN, VERMILION, PURPLE = "#E69F00", "#009E73", "#D55E00", "#CC79A7"


def axes_or_new(ax: Axes | None, *, height: float, width: float = COLUMN, **options: Any) -> Axes:
    """Give `ax` back as it is, or the Axes of a new Figure that pyplot knows nothing of."""
    if ax is not None:
        if not isinstance(ax, Axes):
            raise InvalidInputError(
                f"`ax` must be a matplotlib Axes or None; got {type(ax).__name__}. "
                "Of an array of Axes, pass one."
            )
        return ax
    figure = Figure(figsize=(width, height), layout="constrained")
    fresh: Axes = figure.add_subplot(**options)
    fresh.tick_params(labelsize=SMALL)
    for axis in (fresh.xaxis, fresh.yaxis):
        axis.label.set_fontsize(SMALL + 1)
    for side in ("top", "right"):
        if side in fresh.spines:
            fresh.spines[side].set_visible(False)
    return fresh


def legend_above(ax: Axes, *, columns: int = 1, lift: float = 0.02) -> Legend:
    """Set the legend over the Axes, where it cannot hide data."""
    legend = ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0 + lift),
        ncols=columns,
        fontsize=SMALL,
        frameon=False,
        borderaxespad=0.0,
        borderpad=0.0,
        labelspacing=0.3,
        columnspacing=1.0,
        handlelength=1.9,
    )
    for text in legend.get_texts():
        text.set(**PLAIN)
    return legend
