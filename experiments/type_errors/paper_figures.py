"""The paper's own figures: scenarios, errors against the level, and what each departure does."""

from pathlib import Path
from typing import Any

import numpy as np

import hullcal as hc
from experiments.type_errors import canvas
from experiments.type_errors.grids import SCENARIOS, SETTINGS
from experiments.type_errors.running import Rows
from experiments.type_errors.tables import setting
from hullcal.simulation import in_hull, scenario

#: A spread at which the hull of ten members can be seen, and how many instances there are to choose from.
_SPREAD, _INSTANCES = 0.2, 400


def scenario_points(seed: int = 0) -> tuple[dict[str, Any], int]:
    """Data sets of the three scenarios that share their members, and an instance that shows them well.

    The mean is inside its hull, which is far from the sides of the triangle, and the random corner of
    S3 is not the closest.
    """
    sizes = {"n_samples": _INSTANCES, "n_members": 10, "n_classes": 3, "spread": _SPREAD}
    drawn = {name: scenario(name, **sizes, rng=seed) for name in SCENARIOS}
    near, far = drawn["S2"], drawn["S3"]
    room = [
        near.probs[i].min()
        if near.corners[i] != far.corners[i] and in_hull(near.probs[i], near.mean[i])
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
                some = [row for row in rows if (row["part"], row["scenario"]) == (part, name)]
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
