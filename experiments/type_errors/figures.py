"""The figures: scenarios, errors against the level, departures, and all nulls side by side."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

import hullcal as hc
from experiments import canvas
from experiments.tables import Rows, where
from experiments.type_errors.grids import AXES, CENTRE, EVERYWHERE, NULLS, SCENARIOS, SETTINGS

#: A spread at which the hull of ten members can be seen, and how many instances there are to choose from.
_SPREAD, _INSTANCES = 0.2, 400


def scenario_points(seed: int = 0) -> tuple[dict[str, Any], int]:
    """Data sets of the three scenarios that share their members, and an instance that shows them well.

    The mean is inside its hull, which is far from the sides of the triangle, and the random corner of
    S3 is not the closest.
    """
    sizes = {"n_samples": _INSTANCES, "n_members": 10, "n_classes": 3, "spread": _SPREAD}
    drawn = {name: hc.simulation.scenario(name, **sizes, rng=seed) for name in SCENARIOS}
    near, far = drawn["S2"], drawn["S3"]
    room = [
        near.probs[i].min()
        if near.corners[i] != far.corners[i] and hc.simulation.in_hull(near.probs[i], near.mean[i])
        else -1.0
        for i in range(_INSTANCES)
    ]
    return drawn, int(np.argmax(room))


def scenario_rows(drawn: dict[str, Any], instance: int) -> Rows:
    """Every point of the figure with its three coordinates."""
    rows: Rows = []
    for name, data in drawn.items():
        points = {f"member {m}": p for m, p in enumerate(data.probs[instance])}
        points |= {"mean": data.mean[instance], "truth": data.truth[instance]}
        if data.corners is not None:
            points["boundary"] = data.boundary[instance]
            points["corner"] = np.eye(3)[data.corners[instance]]
        for point, p in points.items():
            values = {f"class {k}": float(p[k]) for k in range(3)}
            rows.append({"scenario": name, "point": point} | values)
    return rows


def draw_scenarios(drawn: dict[str, Any], instance: int, path: Path) -> None:
    """Figure 1, left: where the truth of one instance may lie."""
    import mpltern  # noqa: F401  # registers its projection

    with canvas.drawing(path, height=2.7) as figure:
        for i, (name, data) in enumerate(drawn.items()):
            ax: Any = figure.add_subplot(1, 3, i + 1, projection="ternary")
            hc.plots.simplex(data.probs, instance=instance, truth=data.truth, ax=ax)
            ax.get_legend().remove()
            ax.set_title(name, pad=16)
            for axis in (ax.taxis, ax.laxis, ax.raxis):
                axis.set_ticks([])
            _plot(ax, [data.mean[instance]], "+", "mean of the prior", color="black", markersize=6)
            if data.corners is not None:
                edge, corner = data.boundary[instance], np.eye(3)[data.corners[instance]]
                label = "where the truth is drawn"
                _plot(ax, [edge, corner], "-", label, color="#D55E00", linewidth=2.2, zorder=1.5)
                _plot(ax, [edge], "X", "boundary", color="#E69F00", markersize=6)
                _plot(ax, [corner], "P", "corner", color="#CC79A7", markersize=7)
        canvas.legend_above(figure, ax, columns=4)


def _plot(ax: Any, points: list[Any], mark: str, label: str, **style: Any) -> None:
    edge = {} if mark in "-+" else {"markeredgecolor": "black", "markeredgewidth": 0.6}
    ax.plot(*np.array(points).T, mark, label=label, clip_on=False, **style, **edge)


def draw_errors(rows: Rows, path: Path) -> None:
    """Figure 1, right: errors against the level, a row of panels for each protocol."""
    parts = list(dict.fromkeys(row["part"] for row in rows))
    with canvas.drawing(path, height=0.5 + 2.25 * len(parts)) as figure:
        panels = figure.subplots(len(parts), 3, sharex=True, sharey=True, squeeze=False)
        for part, line in zip(parts, panels, strict=True):
            for name, ax in zip(SCENARIOS, line, strict=True):
                some = where(rows, part=part, scenario=name)
                _errors(ax, some)
                kind = "Type I" if name == "S1" else "Type II"
                ax.set_title(f"{name}, {part}, {some[0]['n_datasets']} data sets")
                ax.set_ylabel(f"{kind} error")
        for ax in panels[-1]:
            ax.set_xlabel(r"level $\alpha$")
        canvas.legend_above(figure, panels[0, 1], columns=4)


def _errors(ax: Any, rows: Rows) -> None:
    """Curves of one panel; intervals for ten bins and for none, side by side to be told apart."""
    first_kind = rows[0]["kind"] == "Type I"
    ends = [0, 1] if first_kind else [1, 0]
    ax.plot([0, 1], ends, **canvas.LEVEL, label="a test that ignores the data (its level, in S1)")
    shift = -0.009
    for name in SETTINGS:
        curve = [row for row in rows if setting(row) == name]
        levels = np.array([row["alpha"] for row in curve])
        few = curve[0]["n_bins"] == 5
        style = canvas.MEASURES[curve[0]["measure"]] | {"label": name, "markeredgewidth": 0.7}
        if few:
            style |= {"linestyle": "--", "markerfacecolor": "white"}
            ax.plot(levels, [row["error"] for row in curve], **style)
        else:
            canvas.bars(ax, levels + shift, curve, "error", **style)
            shift += 0.006
    ax.set(xlim=(0, 1), ylim=(-0.03, 1.03))


def draw_switches(rows: Rows, path: Path) -> None:
    """Change of the error rate by each departure; filled where the interval leaves out 0."""
    names = list(dict.fromkeys(row["part"] for row in rows))
    levels = sorted({row["alpha"] for row in rows})
    shown = [name for name in SETTINGS if not name.endswith(":5")]
    with canvas.drawing(path, height=0.5 + 0.29 * len(names) * len(levels)) as figure:
        panels = figure.subplots(len(levels), 3, sharex=True, sharey=True, squeeze=False)
        for level, line in zip(levels, panels, strict=True):
            for name, ax in zip(SCENARIOS, line, strict=True):
                ax.axvline(0.0, **canvas.LEVEL)
                for row in rows:
                    if (row["alpha"], row["scenario"]) == (level, name) and setting(row) in shown:
                        place = names.index(row["part"]) + 0.19 * (shown.index(setting(row)) - 1.5)
                        _change(ax, row, place)
                kind = "Type I" if name == "S1" else "Type II"
                ax.set_title(rf"{name}, $\alpha$ = {level:g}: change of {kind} error", fontsize=7)
        panels[0, 0].set_yticks(range(len(names)), [name.replace("+", "\n+ ") for name in names])
        panels[0, 0].set_ylim(len(names) - 0.5, -0.5)
        for ax in panels.flat:
            for between in range(1, len(names)):
                ax.axhline(between - 0.5, color="#DDDDDD", linewidth=0.5, zorder=0)
        for name in shown:
            measure = name.split(":")[0]
            panels[0, 0].plot([], [], **canvas.MEASURES[measure], linestyle="none", label=name)
        canvas.legend_above(figure, panels[0, 0], columns=4)


def _change(ax: Any, row: dict[str, Any], place: float) -> None:
    ends = [[row["change"] - row["change_lower"]], [row["change_upper"] - row["change"]]]
    certain = row["change_lower"] > 0.0 or row["change_upper"] < 0.0
    style = canvas.MEASURES[row["measure"]] | {"markeredgewidth": 0.7, "linestyle": "none"}
    if not certain:
        style["markerfacecolor"] = "white"
    ax.errorbar([row["change"]], [place], xerr=ends, elinewidth=0.6, **style)


def setting(row: dict[str, Any]) -> str:
    """The measure with its bins, where it has any: "ece_conf:5"."""
    return row["measure"] if row["n_bins"] is None else f"{row['measure']}:{row['n_bins']}"


#: Chance that any point of a panel passes its bound though all tests keep their level.
_CHANCE = 0.01
_SYMBOLS = {"spread": "spread $u$", "n_samples": "$N$", "n_members": "$M$"}


def with_bounds(rows: Rows) -> Rows:
    """Rows of true hypotheses with the largest rate that their level allows.

    The bound is passed with probability .01 at most by any of the points of one level: each has
    its share of that (Bonferroni), and a binomial quantile of its own.
    """
    true = where(rows, kind="Type I")
    bounded = []
    for row in true:
        n_points = len(where(true, alpha=row["alpha"]))
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
                if some := where(rows, alpha=level, null=null, n_datasets=size):
                    _column(ax, some, i - 0.425 + width * (j + 0.5), width)
            ax.set_ylabel(rf"rejection rate at $\alpha$ = {level:g}")
            ax.set_ylim(bottom=-0.01)
            for between in range(1, len(NULLS)):
                ax.axvline(between - 0.5, color="#DDDDDD", linewidth=0.5, zorder=0)
        panels[-1].set_xticks(range(len(NULLS)), NULLS)
        counts = ", ".join(str(size) for size in sizes)
        panels[-1].set_xlabel(f"null; its columns: points of {counts} data sets")
        for measure in _measures(rows):
            panels[0].plot([], [], linestyle="none", **canvas.MEASURES[measure], label=measure)
        panels[0].plot([], [], color=canvas.GREY, label="bound (filled: above it)")
        canvas.legend_above(figure, panels[0], columns=7)


def _column(ax: Any, rows: Rows, middle: float, width: float) -> None:
    """Points of one null and one number of data sets, spread out by measure, under their bound."""
    ends = [middle - 0.4 * width, middle + 0.4 * width]
    ax.plot(ends, [rows[0]["bound"]] * 2, color=canvas.GREY, linewidth=1.0, zorder=1)
    measures = _measures(rows)
    lane = 0.8 * width / len(measures)
    for (k, measure), beyond in product(enumerate(measures), (False, True)):
        if some := where(rows, measure=measure, beyond=beyond):
            style = canvas.MEASURES[measure] | {"linestyle": "none", "markeredgewidth": 0.6}
            if not beyond:
                style["markerfacecolor"] = "white"
            within = lane * (np.linspace(0.2, 0.8, len(some)) if len(some) > 1 else 0.5)
            x = ends[0] + lane * k + within
            ax.plot(np.atleast_1d(x), [row["rejection_rate"] for row in some], **style)


def on_axis(rows: Rows, axis: str | None) -> Rows:
    """Rows that differ from the centre in that axis at most, or in none."""
    return where(rows, **{name: value for name, value in CENTRE.items() if name != axis})


def draw_curves(lines: Sequence[tuple[str, Rows]], along: str, axis_label: str, path: Path) -> None:
    """A line of panels under each label, a panel for each measure, a curve for each null."""
    measures_of = [_measures(rows) for _, rows in lines]
    with canvas.drawing(path, height=0.5 + 2.1 * len(lines)) as figure:
        n_columns = max(map(len, measures_of))
        panels = figure.subplots(len(lines), n_columns, sharex=True, sharey="row", squeeze=False)
        for (label, rows), measures, line in zip(lines, measures_of, panels, strict=True):
            for ax in line[len(measures) :]:
                ax.set_visible(False)
            for measure, ax in zip(measures, line, strict=False):
                some = where(rows, measure=measure)
                _panel(ax, some, along, shift=1.03)
                counts = {row["n_datasets"] for row in some}
                ax.set_title(
                    f"{measure}, {counts.pop()} data sets" if len(counts) == 1 else measure
                )
                ax.set_ylim(bottom=-0.02)
            line[0].set_ylabel(label)
        for ax in panels[-1]:
            ax.set_xlabel(axis_label)
        canvas.legend_above(figure, panels[0, 0], columns=6)


def _measures(rows: Rows) -> list[str]:
    """The measures of these rows, in the order of their marks."""
    present = {row["measure"] for row in rows}
    return [name for name in canvas.MEASURES if name in present]


def draw_axes(rows: Rows, path: Path) -> None:
    """Power at one strength against spread, N and M, each varied alone."""
    with canvas.drawing(path, height=5.4) as figure:
        panels = figure.subplots(len(EVERYWHERE), len(AXES), sharey=True, sharex="col")
        for measure, line in zip(EVERYWHERE, panels, strict=True):
            for axis, ax in zip(AXES, line, strict=True):
                _panel(ax, where(on_axis(rows, axis), measure=measure), axis, shift=1.04)
                ax.set_ylim(-0.04, 1.04)
            line[0].set_ylabel(f"power, {measure}")
        for axis, ax in zip(AXES, panels[-1], strict=True):
            ax.set_xlabel(_SYMBOLS[axis])
        canvas.legend_above(figure, panels[0, 0], columns=6)


def draw_distance(rows: Rows, floors: dict[str, float], path: Path) -> None:
    """Power against the population's distance from the hypothesis."""
    with canvas.drawing(path, height=2.9) as figure:
        panels = figure.subplots(1, len(floors), sharey=True, squeeze=False)[0]
        for (measure, floor), ax in zip(floors.items(), panels, strict=True):
            some = where(rows, measure=measure)
            ax.axhline(some[0]["alpha"], **canvas.LEVEL)
            ax.axvline(floor, color=canvas.GREY, linewidth=0.8, label="floor: S1 at this size")
            _nulls(ax, where(some, scenario="S3"), "distance", shift=1.008)
            for null in NULLS:
                alone = where(some, scenario="S2", null=null)
                style = canvas.NULLS[null] | {"linestyle": "none", "markerfacecolor": "white"}
                x = [row["distance"] for row in alone]
                canvas.bars(ax, x, alone, "rejection_rate", **style)
            ax.set_title(f"{measure}; lines: S3, hollow: S2")
            ax.set_xlabel(f"smallest {measure} in the hull, population")
            ax.set(xlim=(0.0, None), ylim=(-0.04, 1.04))
        panels[0].set_ylabel(rf"power at $\alpha$ = {rows[0]['alpha']:g}")
        canvas.legend_above(figure, panels[0], columns=6)


def _panel(ax: Any, rows: Rows, along: str, shift: float) -> None:
    """The level and a line for each null, on a logarithmic axis with a tick at each value."""
    ax.axhline(rows[0]["alpha"], **canvas.LEVEL)
    _nulls(ax, rows, along, shift)
    ax.set_xscale("log")
    ticks = sorted({row[along] for row in rows})
    ax.set_xticks(ticks, [f"{tick:g}".lstrip("0") for tick in ticks])
    ax.set_xticks([], minor=True)


def _nulls(ax: Any, rows: Rows, along: str, shift: float = 1.0) -> None:
    """A line for each null with intervals, set apart by a factor so that these do not overlap."""
    present = [null for null in NULLS if any(row["null"] == null for row in rows)]
    for i, null in enumerate(present):
        curve = sorted(where(rows, null=null), key=lambda row: row[along])
        x = np.array([row[along] for row in curve]) * shift ** (i - (len(present) - 1) / 2)
        canvas.bars(ax, x, curve, "rejection_rate", **canvas.NULLS[null], label=null)
