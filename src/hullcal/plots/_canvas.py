"""Where is a plot drawn, how large, and in which colours?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hullcal._validation import InvalidInputError
from hullcal.plots._text import PLAIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

#: Width in inches of one column of a journal's page.
COLUMN = 3.35

#: Size in points of names and numbers inside a plot.
SMALL = 7.0

# Colours of Okabe and Ito, which colour-blind readers tell apart, and a grey. No plot relies on them
# alone.
BLACK, BLUE, SKY, GREEN, VERMILION = "#000000", "#0072B2", "#56B4E9", "#009E73", "#D55E00"
GREY = "#8C8C8C"


def axes_or_new(ax: Axes | None, *, height: float, width: float = COLUMN, **options: Any) -> Axes:
    """Give `ax` back as it is, or the Axes of a new Figure that pyplot knows nothing of."""
    # Here, since the report wants what plots compute and must not wait for what draws them.
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


def legend_above(
    ax: Axes, *, columns: int = 1, lift: float = 0.02, from_right: bool = False
) -> Legend:
    """Set the legend over the Axes, where it cannot hide data.

    From the right side it may reach over long row labels; from the left it begins with the axis.
    """
    legend = ax.legend(
        loc="lower right" if from_right else "lower left",
        bbox_to_anchor=(float(from_right), 1.0 + lift),
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
