"""Pictures of results: null distribution, levels, weights and power."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hullcal._validation import check_integer, refusal
from hullcal.plots.canvas import (
    BLACK,
    BLUE,
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
    rows_of,
    write_beside,
)
from hullcal.results import CalibrationTestResult, MinimizeResult, TruthTestResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hullcal.monitor import Monitor
    from hullcal.simulation import Power

#: What has weights of members.
Weighted = CalibrationTestResult | TruthTestResult | MinimizeResult


def null_distribution(
    result: CalibrationTestResult | TruthTestResult, *, ax: Axes | None = None
) -> Axes:
    """Draw the null distribution of a test with its statistic and critical value.

    Parameters
    ----------
    result : CalibrationTestResult or TruthTestResult
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new Figure if not given.

    Returns
    -------
    matplotlib.axes.Axes
        What is infinite has no place on the axis; the legend says so.
    """
    ax = axes_or_new(ax, height=2.6)
    finite = result.null_distribution[np.isfinite(result.null_distribution)]
    counts, edges = np.histogram(finite, histogram_edges(finite))
    n_infinite = result.n_resamples - len(finite)
    said = f"{result.n_resamples} simulated values"
    if isinstance(result, CalibrationTestResult):
        said += f', null "{as_typed(result.null)}"'
    if n_infinite:
        said += f"; {n_infinite} infinite, not on axis"
    ax.stairs(counts, edges, fill=True, facecolor=SKY, edgecolor=BLACK, label=said)
    marks = [
        (result.statistic, "statistic", f"p = {result.pvalue:.3g}", VERMILION, "-"),
        (result.critical_value, "critical value", f"level {result.alpha:g}", BLACK, "--"),
    ]
    for value, name, more, color, style in marks:
        label = f"{name} {number(value)} ({more})"
        if math.isfinite(value):
            ax.axvline(value, color=color, linestyle=style, label=label)
        else:
            ax.plot([], color=color, linestyle=style, label=f"{label}, not on axis")
    if len(finite) == 0:
        ax.set_yticks([])
        if not math.isfinite(result.statistic):
            ax.set_xticks([])
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel(as_typed(getattr(result, "measure", "log-likelihood ratio")), **PLAIN)
    ax.set_ylabel("resamples per bin")
    legend_above(ax)
    return ax


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
    tests = [results] if isinstance(results, CalibrationTestResult) else list(results)
    if not tests or not all(isinstance(each, CalibrationTestResult) for each in tests):
        came, repair = str([type(each).__name__ for each in tests]), "Pass results of tests."
        raise refusal("results", "must be one CalibrationTestResult or more", came, repair)
    ax = axes_or_new(ax, height=1.35 + 0.24 * max(len(tests), 2))
    y = np.arange(len(tests))
    p = [each.pvalue for each in tests]
    low, high = np.transpose([each.pvalue_interval for each in tests])
    ax.hlines(y, 0.0, p, color=BLUE, linewidth=1.0, label="not rejected (level below p)")
    ax.hlines(y, p, 1.0, color=VERMILION, linewidth=4, alpha=0.55, label="rejected (p or more)")
    ax.hlines(y, low, high, color=BLACK, linewidth=1.2)
    ax.plot([low, high], [y, y], "|", color=BLACK, markersize=5, zorder=3, clip_on=False)
    dots = ax.plot(p, y, "o", color=BLACK, markersize=4, label="p, with 95 % interval")
    dots[0].set(zorder=4, clip_on=False)
    # One dashed line if all tests share their level, else a piece of it in each row.
    alphas = [each.alpha for each in tests]
    if len(set(alphas)) == 1:
        ax.axvline(alphas[0], color=BLACK, linestyle="--", linewidth=1, label=f"α = {alphas[0]:g}")
    else:
        pieces = ax.vlines(alphas, y - 0.4, y + 0.4, color=BLACK, linestyle="--", linewidth=1)
        pieces.set_label("α of the test")
    for row, each in enumerate(tests):
        write_beside(ax, f"{each.pvalue:.3g}", 1.0, row)
    rows_of(ax, [as_typed(f"{each.measure}, {each.null}") for each in tests])
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("level α", **PLAIN)
    legend_above(ax, from_right=True)
    return ax


class Shares(NamedTuple):
    """Bars from the top: names ready to be drawn, weights, and how many are summed in the last."""

    names: list[str]
    values: list[float]
    n_others: int


def shares(result: Weighted, *, max_shown: int = 20) -> Shares:
    """Order the weights, the largest first and ties by position, and sum those beyond `max_shown`."""
    max_shown = check_integer(max_shown, "max_shown", 1)
    order = np.argsort(-result.weights, kind="stable")
    shown, others = order[:max_shown], order[max_shown:]
    named = result.members
    names = [f"member {m}" if named is None else as_typed(named[m]) for m in shown]
    values = result.weights[shown].tolist()
    if len(others):
        names.append("1 other" if len(others) == 1 else f"{len(others)} others")
        values.append(math.fsum(result.weights[others]))
    return Shares(names, values, len(others))


def weights(result: Weighted, *, max_shown: int = 20, ax: Axes | None = None) -> Axes:
    """Draw the weights of the members as bars, the largest first.

    Parameters
    ----------
    result : CalibrationTestResult, TruthTestResult or MinimizeResult
    max_shown : int
        Members with a bar of their own; the rest is summed in one.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new Figure if not given.

    Returns
    -------
    matplotlib.axes.Axes
    """
    names, values, n_others = shares(result, max_shown=max_shown)
    ax = axes_or_new(ax, height=0.6 + 0.17 * max(len(names), 3))
    bars = ax.barh(range(len(names)), values, 0.7, color=BLUE, edgecolor=BLACK, linewidth=0.6)
    if n_others:
        bars.patches[-1].set(facecolor="none", edgecolor=GREY, hatch="////")
    for row, value in enumerate(values):
        write_beside(ax, f"{value:.3f}", value, row)
    rows_of(ax, names)
    ax.set_xlim(0.0, 1.18 * max(values))
    ax.set_xlabel("weight")
    return ax


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
    # Here, since other plots must not wait for simulations.
    from hullcal.simulation import Power

    if not isinstance(found, Power):
        raise refusal("found", "must be a Power", type(found).__name__, "Use `simulation.power`.")
    rows = found.n_samples
    ax = axes_or_new(ax, height=2.6)
    ax.set_xscale("log")
    # From a fifth below the fewest rows to a fifth above the most.
    first, last = float(rows[0]) / 1.2, float(rows[-1]) * 1.2
    needed = found.n_needed
    if needed is not None:
        low, high = found.n_needed_interval
        ax.axvspan(low or first, high or last, color=GREY, alpha=0.25, linewidth=0)
        ax.axvline(needed, color=VERMILION, linewidth=1, label=f"{needed} rows needed")
    for at, style, label in (
        (found.target, "--", f"target {found.target:g}"),
        (found.alpha, ":", f"level α = {found.alpha:g}"),
    ):
        ax.axhline(at, color=BLACK, linestyle=style, linewidth=1, label=label)
    ax.vlines(rows, found.lower, found.upper, color=BLUE, linewidth=1.2)
    what = as_typed(f"{found.miscalibration} {found.amount:g}, {found.test}", longest=48)
    ax.plot(rows, found.power, "o-", color=BLUE, markersize=4, linewidth=1, label=what)
    ax.set_xlim(first, last)
    ax.set_ylim(0.0, 1.02)
    shown = rows[:: -(-len(rows) // 6)].tolist()
    ax.set_xticks(shown, labels=[str(n) for n in shown], fontsize=SMALL)
    ax.set_xticks([], minor=True)
    ax.set_yticks(np.linspace(0.0, 1.0, 6))
    ax.set_xlabel("rows N", **PLAIN)
    ax.set_ylabel("share of data sets rejected", **PLAIN)
    legend_above(ax)
    return ax


def evidence(monitor: Monitor, *, ax: Axes | None = None) -> Axes:
    """Draw the e-value of a monitor after each batch, with the threshold 1/alpha.

    Parameters
    ----------
    monitor : Monitor
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new Figure if not given.

    Returns
    -------
    matplotlib.axes.Axes
        Powers of ten by rows: the e-value of all rows, and the detector of a late change. Infinite
        values have no place on the axis; the legend says so.
    """
    if not getattr(monitor, "history", None):
        rule, came = "must be a Monitor with at least one batch", f"{monitor!r:.80}"
        raise refusal("monitor", rule, came, "Call its `update` first.")
    ax = axes_or_new(ax, height=2.6)
    rows, *paths = np.array(monitor.history).T
    names = ("e-value of all rows", "detector of a late change")
    for path, name, color in zip(paths, names, (BLUE, GREY), strict=True):
        finite = np.isfinite(path)
        label = name if finite.all() else f"{name}; infinite values not on axis"
        powers = path[finite] / math.log(10.0)
        ax.plot(rows[finite], powers, "o-", color=color, markersize=3, linewidth=1, label=label)
    threshold = -math.log10(monitor.alpha)
    label = f"threshold 1/α = {1.0 / monitor.alpha:g}"
    ax.axhline(threshold, color=VERMILION, linestyle="--", linewidth=1, label=label)
    ax.set_xlabel("rows", **PLAIN)
    ax.set_ylabel("evidence, power of ten", **PLAIN)
    legend_above(ax)
    return ax
