"""Power curve: how does the chance to detect a miscalibration grow with the rows?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hullcal._validation import InvalidInputError
from hullcal.plots._canvas import BLACK, BLUE, GREY, SMALL, VERMILION, axes_or_new, legend_above
from hullcal.plots._text import PLAIN, as_typed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hullcal.simulation import Power

__all__ = ["power_curve"]


def power_curve(found: Power, *, ax: Axes | None = None) -> Axes:
    """Draw the power by number of rows, and the number that the target needs.

    Parameters
    ----------
    found : Power
        What `hullcal.simulation.power` returns.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new Figure if not given.

    Returns
    -------
    matplotlib.axes.Axes
        Dots with Wilson's 95 % intervals over the rows in logarithmic scale; dashed the target,
        dotted the level; a line at the rows that are needed, shaded where these may lie.
    """
    # Here, since the report wants what plots compute and must not wait for simulations.
    from hullcal.simulation import Power

    if not isinstance(found, Power):
        raise InvalidInputError(
            f"`found` must be a Power; got {type(found).__name__}. Pass what `simulation.power` returns."
        )
    n_samples = found.n_samples
    ax = axes_or_new(ax, height=2.6)
    ax.set_xscale("log")
    # From a fifth below the fewest rows to a fifth above the most.
    first, last = float(n_samples[0]) / 1.2, float(n_samples[-1]) * 1.2
    if found.n_needed is not None:
        low, high = found.n_needed_interval
        ax.axvspan(
            *(first if low is None else low, last if high is None else high),
            color=GREY,
            alpha=0.25,
            linewidth=0,
        )
        ax.axvline(
            found.n_needed, color=VERMILION, linewidth=1, label=f"{found.n_needed} rows needed"
        )
    ax.axhline(
        found.target, color=BLACK, linestyle="--", linewidth=1, label=f"target {found.target:g}"
    )
    ax.axhline(
        found.alpha, color=BLACK, linestyle=":", linewidth=1, label=f"level α = {found.alpha:g}"
    )
    ax.vlines(n_samples, found.lower, found.upper, color=BLUE, linewidth=1.2)
    what = as_typed(f"{found.miscalibration} {found.amount:g}, {found.measure}", longest=48)
    ax.plot(n_samples, found.power, "o-", color=BLUE, markersize=4, linewidth=1, label=what)
    ax.set_xlim(first, last)
    ax.set_ylim(0.0, 1.02)
    shown = n_samples[:: -(-len(n_samples) // 6)]
    ax.set_xticks(shown.tolist(), labels=[str(n) for n in shown], fontsize=SMALL)
    ax.set_xticks([], minor=True)
    ax.set_yticks(np.linspace(0.0, 1.0, 6))
    ax.set_xlabel("rows N", **PLAIN)
    ax.set_ylabel("share of data sets rejected", **PLAIN)
    legend_above(ax)
    return ax
