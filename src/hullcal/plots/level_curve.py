"""Level curve: at which levels is each hypothesis rejected?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hullcal._validation import InvalidInputError
from hullcal.plots._canvas import BLACK, BLUE, SMALL, VERMILION, axes_or_new, legend_above
from hullcal.plots._text import PLAIN, as_typed
from hullcal.results import CalibrationTestResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LevelRow", "level_curve", "level_rows"]


@dataclass(frozen=True)
class LevelRow:
    """One test: its name ready to be drawn, its p-value with Monte Carlo interval, and its level."""

    name: str
    pvalue: float
    low: float
    high: float
    alpha: float


def level_rows(
    results: CalibrationTestResult | Sequence[CalibrationTestResult],
) -> tuple[LevelRow, ...]:
    """Take from each result what its row shows."""
    several = [results] if isinstance(results, CalibrationTestResult) else list(results)
    if not several or not all(isinstance(each, CalibrationTestResult) for each in several):
        raise InvalidInputError(
            "`results` must be a CalibrationTestResult or a sequence of at least one; got "
            f"{[type(each).__name__ for each in several]}. Pass what `calibration_test` returns."
        )
    return tuple(
        LevelRow(
            as_typed(f"{each.measure}, {each.null}"),
            each.pvalue,
            *each.pvalue_interval,
            each.alpha,
        )
        for each in several
    )


def level_curve(
    results: CalibrationTestResult | Sequence[CalibrationTestResult], *, ax: Axes | None = None
) -> Axes:
    """Draw for each test the levels at which it rejects, a row each.

    Parameters
    ----------
    results : CalibrationTestResult or sequence of them
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new Figure if not given.

    Returns
    -------
    matplotlib.axes.Axes
        Thin where the level is below the p-value and the hypothesis stands, thick where it is
        rejected; a dot at the p-value, with its 95 % Monte Carlo interval.
    """
    rows = level_rows(results)
    at = range(len(rows))
    pvalues = [row.pvalue for row in rows]
    ax = axes_or_new(ax, height=1.35 + 0.24 * max(len(rows), 2))
    ax.hlines(at, 0.0, pvalues, color=BLUE, linewidth=1.0, label="not rejected (level below p)")
    ax.hlines(
        at, pvalues, 1.0, color=VERMILION, linewidth=4.0, alpha=0.55, label="rejected (p or more)"
    )
    ax.hlines(at, [row.low for row in rows], [row.high for row in rows], color=BLACK, linewidth=1.2)
    ends = [end for row in rows for end in (row.low, row.high)]
    twice = [i for i in at for _ in range(2)]
    ax.plot(ends, twice, "|", color=BLACK, markersize=5, zorder=3, clip_on=False)
    (dots,) = ax.plot(pvalues, at, "o", color=BLACK, markersize=4, label="p, with 95 % interval")
    dots.set(zorder=4, clip_on=False)
    _mark_levels(ax, rows)
    for i, row in enumerate(rows):
        ax.annotate(
            f"{row.pvalue:.3g}",
            (1.0, i),
            xytext=(4, 0),
            textcoords="offset points",
            verticalalignment="center",
            fontsize=SMALL,
            annotation_clip=False,
        )
    ax.set_yticks(list(at), labels=[row.name for row in rows], fontsize=SMALL, **PLAIN)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("level α", **PLAIN)
    legend_above(ax, from_right=True)
    return ax


def _mark_levels(ax: Axes, rows: tuple[LevelRow, ...]) -> None:
    """One dashed line if all tests share their level, else a piece of it in each row."""
    alphas = [row.alpha for row in rows]
    if len(set(alphas)) == 1:
        ax.axvline(alphas[0], color=BLACK, linestyle="--", linewidth=1, label=f"α = {alphas[0]:g}")
        return
    below, above = [i - 0.4 for i in range(len(rows))], [i + 0.4 for i in range(len(rows))]
    ax.vlines(alphas, below, above, color=BLACK, linestyle="--", linewidth=1, label="α of the test")
