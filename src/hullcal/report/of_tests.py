"""Figures of tests: null distributions, p-values and weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hullcal.plots._text import clipped, number, undrawn
from hullcal.plots.level_curve import level_rows
from hullcal.plots.null_distribution import null_histogram
from hullcal.plots.weights import shares
from hullcal.report.svg import LINE, NAME, Panel, width_of
from hullcal.results import CalibrationTestResult

#: Height of one row of a figure that has rows, and the longest name in a title.
_ROW, _LONGEST = 19.0, 80


def null_distribution(result: CalibrationTestResult) -> Panel:
    """Histogram of the null values, with statistic and critical value."""
    histogram = null_histogram(result.null_distribution)
    edges, counts = histogram.edges.tolist(), histogram.counts.tolist()
    places = [v for v in (result.statistic, result.critical_value) if math.isfinite(v)]
    is_empty = sum(counts) == 0
    seen = places if is_empty and places else [*edges, *places]
    low, high = min(seen), max(seen)
    pad = 0.03 * (high - low) or 0.05 * abs(high) or 0.05
    panel = Panel(
        height=200.0 + 3 * LINE,
        x=(low - pad, high + pad),
        y=(0.0, 1.06 * max(*counts, 1)),
        top=3 * LINE + 10.0,
    )
    said = f"{result.n_resamples} null values, {clipped(result.null)}"
    if histogram.n_infinite:
        said += f"; {histogram.n_infinite} infinite, not on axis"
    legend = [("area null", said)]
    if not is_empty:
        panel.steps("area null", edges, counts)
    statistic = f"statistic {number(result.statistic)} (p = {result.pvalue:.3g})"
    critical = f"critical value {number(result.critical_value)} (level {result.alpha:g})"
    for look, value, words in (
        ("line statistic", result.statistic, statistic),
        ("line dashed critical", result.critical_value, critical),
    ):
        off = "" if math.isfinite(value) else ", not on axis"
        legend.append((look, f"{words}{off}"))
        if not off:
            panel.line(look, [(value, 0.0), (value, panel.y[1])])
    panel.legend(legend)
    panel.across(clipped(result.measure), [] if is_empty and not places else None)
    panel.down("resamples per bin", [] if is_empty else None)
    if not is_empty:
        for count, start, end in zip(counts, edges[:-1], edges[1:], strict=True):
            panel.column((start, end), f"{start:.4g} to {end:.4g}: {_counted(count, 'resample')}")
    return panel


def level_curve(results: Sequence[CalibrationTestResult]) -> Panel:
    """A row for each test: thin where its hypothesis stands, thick at levels that reject it."""
    rows = level_rows(results)
    names = [undrawn(row.name) for row in rows]
    alphas = sorted({row.alpha for row in rows})
    panel = _with_rows(names, n_lines=4, right=44.0)
    panel.x = (0.0, 1.0)
    for y, row in enumerate(rows):
        panel.line("line stands", [(0.0, y), (row.pvalue, y)])
        panel.line("line rejects", [(row.pvalue, y), (1.0, y)])
        panel.line("line interval", [(row.low, y), (row.high, y)])
        panel.dot("dot pvalue", row.pvalue, y)
        panel.write(f"{row.pvalue:.3g}", panel.px(1.0) + 6, panel.py(y) + 4)
        reach = (y - 0.5, y + 0.5)
        panel.line("line dashed critical", [(row.alpha, reach[0]), (row.alpha, reach[1])])
    panel.names(names)
    panel.across("level α")
    panel.legend(
        [
            ("line stands", "not rejected (level below p)"),
            ("line rejects", "rejected (p or more)"),
            ("dot pvalue", "p, with 95 % interval"),
            (
                "line dashed critical",
                f"α = {alphas[0]:g}" if len(alphas) == 1 else "α of the test",
            ),
        ]
    )
    for y, (row, result) in enumerate(zip(rows, results, strict=True)):
        name = f"{clipped(result.measure, longest=_LONGEST)}, {clipped(result.null)}"
        interval = f"95 % interval {row.low:.3g} to {row.high:.3g}"
        panel.row(y, f"{name}: p = {row.pvalue:.4g}, {interval}")
    return panel


def weights(result: CalibrationTestResult) -> Panel:
    """A bar for each of the members that weigh most, and one for the others together."""
    bars = shares(result)
    names = [undrawn(name) for name in bars.names]
    panel = _with_rows(names, n_lines=0, right=44.0)
    panel.x = (0.0, max(bars.values))
    for y, value in enumerate(bars.values):
        is_sum = bool(bars.n_others) and y == len(names) - 1
        panel.box("area others" if is_sum else "area weight", (0.0, value), (y - 0.35, y + 0.35))
        panel.write(f"{value:.3f}", panel.px(value) + 4, panel.py(y) + 4)
    panel.names(names)
    panel.across("weight")
    whole = list(names)
    if result.members is not None:
        order = np.argsort(-result.weights, kind="stable")[: len(names) - bool(bars.n_others)]
        whole[: len(order)] = [clipped(result.members[m], longest=_LONGEST) for m in order]
    for y, (name, value) in enumerate(zip(whole, bars.values, strict=True)):
        panel.row(y, f"{name}: weight {value:.4f}")
    return panel


def _with_rows(names: Sequence[str], *, n_lines: int, right: float) -> Panel:
    """Axes whose rows, counted from above, are 0, 1, ..., with room for their names."""
    top = n_lines * LINE + 8.0
    return Panel(
        height=top + _ROW * len(names) + 40.0,
        y=(len(names) - 0.5, -0.5),
        left=14.0 + min(NAME, max(map(width_of, names))),
        right=right,
        top=top,
        bottom=40.0,
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
