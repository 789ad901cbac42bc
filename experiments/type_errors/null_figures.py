"""Figures of all nulls side by side: level, power, distance from the hypothesis, and budget."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from experiments.type_errors import canvas
from experiments.type_errors.grids import AXES, BUDGETS, CENTRE, EVERYWHERE, NULLS
from experiments.type_errors.running import Rows

#: Chance that any point of a panel passes its bound though all tests keep their level.
_CHANCE = 0.01
_SYMBOLS = {"spread": "spread $u$", "n_samples": "$N$", "n_members": "$M$"}


def with_bounds(rows: Rows) -> Rows:
    """Rows of true hypotheses with the largest rate that their level allows.

    The bound is passed with probability .01 at most by any of the points of one level: each has
    its share of that (Bonferroni), and a binomial quantile of its own.
    """
    true = [row for row in rows if row["kind"] == "Type I"]
    bounded = []
    for row in true:
        n_points = sum(other["alpha"] == row["alpha"] for other in true)
        most = binom.ppf(1.0 - _CHANCE / n_points, row["n_datasets"], row["alpha"])
        bound = float(most) / row["n_datasets"]
        bounded.append(row | {"bound": bound, "beyond": row["rejection_rate"] > bound})
    return bounded


def draw_level(rows: Rows, path: Path) -> None:
    """Rejection rates where the null's own hypothesis is true; dashes are bounds.

    The more data sets a cell has, the lower its bound: columns of one null have one number each.
    """
    levels = sorted({row["alpha"] for row in rows})
    sizes = sorted({row["n_datasets"] for row in rows}, reverse=True)
    width = 0.85 / len(sizes)
    with canvas.drawing(path, height=2.6 * len(levels)) as figure:
        panels = figure.subplots(len(levels), 1, sharex=True, squeeze=False)[:, 0]
        for level, ax in zip(levels, panels, strict=True):
            ax.axhline(level, **canvas.LEVEL)
            for (i, null), (j, size) in product(enumerate(NULLS), enumerate(sizes)):
                some = [
                    row
                    for row in rows
                    if (row["alpha"], row["null"], row["n_datasets"]) == (level, null, size)
                ]
                if some:
                    _column(ax, some, i - 0.425 + width * (j + 0.5), width)
            ax.set_ylabel(rf"rejection rate at $\alpha$ = {level:g}")
            ax.set_ylim(bottom=-0.01)
            for between in range(1, len(NULLS)):
                ax.axvline(between - 0.5, color="#DDDDDD", linewidth=0.5, zorder=0)
        panels[-1].set_xticks(range(len(NULLS)), NULLS)
        counts = ", ".join(str(size) for size in sizes)
        panels[-1].set_xlabel(f"null; its columns: points of {counts} data sets")
        for measure, style in canvas.MEASURES.items():
            if any(row["measure"] == measure for row in rows):
                panels[0].plot([], [], linestyle="none", **style, label=measure)
        panels[0].plot([], [], color=canvas.GREY, label="bound (filled: above it)")
        canvas.legend_above(figure, panels[0], columns=7)


def _column(ax: Any, rows: Rows, middle: float, width: float) -> None:
    """Points of one null and one number of data sets, spread out by measure, under their bound."""
    ends = [middle - 0.4 * width, middle + 0.4 * width]
    ax.plot(ends, [rows[0]["bound"]] * 2, color=canvas.GREY, linewidth=1.0, zorder=1)
    measures = [name for name in canvas.MEASURES if any(row["measure"] == name for row in rows)]
    lane = 0.8 * width / len(measures)
    for (k, measure), beyond in product(enumerate(measures), (False, True)):
        some = [row for row in rows if (row["measure"], row["beyond"]) == (measure, beyond)]
        if some:
            style = canvas.MEASURES[measure] | {"linestyle": "none", "markeredgewidth": 0.6}
            if not beyond:
                style["markerfacecolor"] = "white"
            within = lane * (np.linspace(0.2, 0.8, len(some)) if len(some) > 1 else 0.5)
            x = ends[0] + lane * k + within
            ax.plot(np.atleast_1d(x), [row["rejection_rate"] for row in some], **style)


def draw_power(rows: Rows, path: Path) -> None:
    """Power at the centre against strength, a panel for each measure."""
    measures = [name for name in canvas.MEASURES if any(r["measure"] == name for r in rows)]
    lines = -(-len(measures) // 3)
    with canvas.drawing(path, height=0.5 + 2.1 * lines) as figure:
        panels = figure.subplots(lines, 3, sharex=True, sharey=True, squeeze=False)
        for ax in panels.flat[len(measures) :]:
            ax.set_visible(False)
        for measure, ax in zip(measures, panels.flat, strict=False):
            some = [row for row in rows if row["measure"] == measure]
            ax.axhline(some[0]["alpha"], **canvas.LEVEL)
            _nulls(ax, some, "strength", shift=1.025)
            ax.set_xscale("log")
            ticks = sorted({row["strength"] for row in some})
            ax.set_xticks(ticks, [f"{tick:g}".lstrip("0") for tick in ticks], minor=False)
            ax.set_xticks([], minor=True)
            ax.set_title(f"{measure}, {some[0]['n_datasets']} data sets")
            ax.set_ylim(-0.04, 1.04)
        for ax in panels[-1]:
            ax.set_xlabel(f"strength of {rows[0]['scenario']}")
        for ax in panels[:, 0]:
            ax.set_ylabel(rf"power at $\alpha$ = {rows[0]['alpha']:g}")
        canvas.legend_above(figure, panels[0, 0], columns=6)


def on_axis(rows: Rows, axis: str | None) -> Rows:
    """Rows that differ from the centre in that axis at most, or in none."""
    others = {name: value for name, value in CENTRE.items() if name != axis}
    return [row for row in rows if all(row[name] == value for name, value in others.items())]


def draw_axes(rows: Rows, path: Path) -> None:
    """Power at one strength against spread, N and M, each varied alone."""
    with canvas.drawing(path, height=5.4) as figure:
        panels = figure.subplots(len(EVERYWHERE), len(AXES), sharey=True, sharex="col")
        for measure, line in zip(EVERYWHERE, panels, strict=True):
            for axis, ax in zip(AXES, line, strict=True):
                some = [row for row in on_axis(rows, axis) if row["measure"] == measure]
                ax.axhline(some[0]["alpha"], **canvas.LEVEL)
                _nulls(ax, some, axis, shift=1.04)
                ax.set_xscale("log")
                ax.set_xticks(AXES[axis], [f"{value:g}" for value in AXES[axis]])
                ax.set_xticks([], minor=True)
                ax.set_ylim(-0.04, 1.04)
            line[0].set_ylabel(f"power, {measure}")
        for axis, ax in zip(AXES, panels[-1], strict=True):
            ax.set_xlabel(_SYMBOLS[axis])
        canvas.legend_above(figure, panels[0, 0], columns=6)


def draw_calibrated(rows: Rows, path: Path) -> None:
    """Rejections where one member is calibrated and none is the truth: refit alone should reject."""
    with canvas.drawing(path, height=2.6) as figure:
        panels = figure.subplots(1, len(EVERYWHERE), sharey=True)
        for measure, ax in zip(EVERYWHERE, panels, strict=True):
            some = [row for row in rows if row["measure"] == measure]
            ax.axhline(some[0]["alpha"], **canvas.LEVEL)
            _nulls(ax, some, "n_samples", shift=1.03)
            ax.set_xscale("log")
            sizes = sorted({row["n_samples"] for row in some})
            ax.set_xticks(sizes, [str(size) for size in sizes])
            ax.set_xticks([], minor=True)
            ax.set_title(measure)
            ax.set_xlabel("$N$")
            ax.set_ylim(bottom=-0.02)
        panels[0].set_ylabel(rf"rejection rate at $\alpha$ = {rows[0]['alpha']:g}")
        canvas.legend_above(figure, panels[0], columns=6)


def draw_distance(rows: Rows, floors: dict[str, float], path: Path) -> None:
    """Power against the population's distance from the hypothesis."""
    with canvas.drawing(path, height=2.9) as figure:
        panels = figure.subplots(1, len(floors), sharey=True, squeeze=False)[0]
        for (measure, floor), ax in zip(floors.items(), panels, strict=True):
            some = [row for row in rows if row["measure"] == measure]
            ax.axhline(some[0]["alpha"], **canvas.LEVEL)
            ax.axvline(floor, color=canvas.GREY, linewidth=0.8, label="floor: S1 at this size")
            _nulls(ax, [row for row in some if row["scenario"] == "S3"], "distance", shift=1.008)
            for null in NULLS:
                alone = [r for r in some if (r["null"], r["scenario"]) == (null, "S2")]
                style = canvas.NULLS[null] | {"linestyle": "none", "markerfacecolor": "white"}
                x = [row["distance"] for row in alone]
                canvas.bars(ax, x, alone, "rejection_rate", **style)
            ax.set_title(f"{measure}; lines: S3, hollow: S2")
            ax.set_xlabel(f"smallest {measure} in the hull, population")
            ax.set(xlim=(0.0, None), ylim=(-0.04, 1.04))
        panels[0].set_ylabel(rf"power at $\alpha$ = {rows[0]['alpha']:g}")
        canvas.legend_above(figure, panels[0], columns=6)


def draw_budget(rows: Rows, path: Path) -> None:
    """Power in S3 and level in S1 against the evaluations that a search may spend."""
    titles = {"S3": "power, S3", "S1": "level, S1"}
    with canvas.drawing(path, height=4.2) as figure:
        panels = figure.subplots(len(titles), len(EVERYWHERE), sharex=True, sharey="row")
        for scenario, line in zip(titles, panels, strict=True):
            for measure, ax in zip(EVERYWHERE, line, strict=True):
                some = [
                    row for row in rows if (row["measure"], row["scenario"]) == (measure, scenario)
                ]
                ax.axhline(some[0]["alpha"], **canvas.LEVEL)
                _nulls(ax, some, "budget", shift=1.03)
                ax.set_xscale("log")
                ax.set_xticks(BUDGETS, [str(budget) for budget in BUDGETS])
                ax.set_xticks([], minor=True)
                ax.set_title(f"{measure}, {some[0]['n_datasets']} data sets")
            line[0].set_ylabel(titles[scenario])
            line[0].set_ylim(bottom=-0.01)
        for ax in panels[-1]:
            ax.set_xlabel("evaluations of a search")
        canvas.legend_above(figure, panels[0, 0], columns=6)


def _nulls(ax: Any, rows: Rows, along: str, shift: float = 1.0) -> None:
    """A line for each null with intervals, set apart by a factor so that these do not overlap."""
    present = [null for null in NULLS if any(row["null"] == null for row in rows)]
    for i, null in enumerate(present):
        curve = sorted((row for row in rows if row["null"] == null), key=lambda row: row[along])
        x = np.array([row[along] for row in curve]) * shift ** (i - (len(present) - 1) / 2)
        canvas.bars(ax, x, curve, "rejection_rate", **canvas.NULLS[null], label=null)
