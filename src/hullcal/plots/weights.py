"""Weights: which members make up the best combination?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hullcal._validation import check_integer
from hullcal.plots._canvas import BLACK, BLUE, GREY, SMALL, axes_or_new
from hullcal.plots._text import PLAIN, member_name
from hullcal.results import CalibrationTestResult, MinimizeResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Shares", "shares", "weights"]


@dataclass(frozen=True)
class Shares:
    """The bars from the top: names ready to be drawn, weights, and how many are summed in the last.

    Attributes
    ----------
    names : tuple of str
    values : tuple of float
    n_others : int
        0 if every member has its own bar.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    n_others: int


def shares(result: CalibrationTestResult | MinimizeResult, *, max_shown: int = 20) -> Shares:
    """Order the weights, the largest first and ties by position, and sum those beyond `max_shown`."""
    max_shown = check_integer(max_shown, "max_shown", 1)
    order = np.argsort(-result.weights, kind="stable")
    shown, others = order[:max_shown], order[max_shown:]
    names = [member_name(result.members, int(m)) for m in shown]
    values = [float(result.weights[m]) for m in shown]
    if len(others):
        names.append("1 other" if len(others) == 1 else f"{len(others)} others")
        values.append(math.fsum(result.weights[others]))
    return Shares(tuple(names), tuple(values), len(others))


def weights(
    result: CalibrationTestResult | MinimizeResult, *, max_shown: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw the weights of the members as bars, the largest first.

    Parameters
    ----------
    result : CalibrationTestResult or MinimizeResult
    max_shown : int
        Members with a bar of their own; the rest is summed in one.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new Figure if not given.

    Returns
    -------
    matplotlib.axes.Axes
    """
    bars = shares(result, max_shown=max_shown)
    n_bars = len(bars.names)
    ax = axes_or_new(ax, height=0.6 + 0.17 * max(n_bars, 3))
    drawn = ax.barh(range(n_bars), bars.values, height=0.7, color=BLUE, edgecolor=BLACK)
    for patch in drawn.patches:
        patch.set_linewidth(0.6)
    if bars.n_others:
        drawn.patches[-1].set(facecolor="white", edgecolor=GREY, hatch="////")
    for at, value in enumerate(bars.values):
        ax.annotate(
            f"{value:.3f}",
            (value, at),
            xytext=(2, 0),
            textcoords="offset points",
            verticalalignment="center",
            fontsize=SMALL,
        )
    ax.set_yticks(range(n_bars), labels=bars.names, fontsize=SMALL, **PLAIN)
    ax.set_ylim(n_bars - 0.4, -0.6)
    ax.set_xlim(0.0, 1.18 * max(bars.values))
    ax.set_xlabel("weight")
    return ax
