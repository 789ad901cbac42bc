"""The figures of the page; each takes the rows that its table has."""

from pathlib import Path
from typing import Any

import numpy as np

from experiments.canvas import GREY, PAGE, drawing
from experiments.cifar10_networks.study import ALPHA, MEASURES, NULLS, SIZES
from experiments.tables import Rows, column, where

BLUE, ORANGE, GREEN, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"


def draw_alone(rows: Rows, best: float, path: Path) -> None:
    """Each network's ECE, and what a calibrated one would show: nearly never beyond the bar."""
    ordered = sorted(rows, key=lambda row: row["ece_conf"], reverse=True)
    with drawing(path, height=3.0, width=PAGE * 0.8) as figure:
        ax = figure.subplots()
        places = np.arange(len(ordered))
        usual, label = column(ordered, "ece_conf_critical"), "95 % of calibrated classifiers"
        ax.barh(places, usual, color="#D9D9D9", height=0.7, label=label)
        values, label = column(ordered, "ece_conf"), "network, and their average"
        ax.plot(values, places, "o", color=BLUE, label=label)
        ax.axvline(best, color=GREEN, linestyle="--", label="smallest in the hull")
        ax.set_yticks(places, column(ordered, "network"))
        ax.set_xlim(left=0)
        ax.set_xlabel("ece_conf")
        ax.xaxis.set_major_formatter(_short)
        figure.legend(loc="outside upper center", ncols=3)


def draw_weights(rows: Rows, path: Path) -> None:
    """Weights of the best combination, and from where to where they go between splits."""
    with drawing(path, height=2.6) as figure:
        ax = figure.subplots()
        styles = {"ece_conf": (BLUE, "o", -0.14), "ece_cwise": (ORANGE, "s", 0.14)}
        for measure, (colour, marker, shift) in styles.items():
            of_measure = where(rows, measure=measure)
            places = np.arange(len(of_measure)) + shift
            ends = (column(of_measure, f"weight_{end}") for end in ("lower", "upper"))
            ax.vlines(places, *ends, color=colour, linewidth=0.8)
            middle = column(of_measure, "weight")
            ax.plot(places, middle, marker, color=colour, label=f"smallest {measure}")
        names = column(of_measure, "network")
        ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
        ax.axhline(1 / len(of_measure), color=GREY, linewidth=0.8, linestyle=":", label="average")
        ax.set_ylim(bottom=0)
        ax.set_ylabel("weight")
        figure.legend(loc="outside upper center", ncols=3)


def draw_pairs(rows: Rows, alone: dict[str, float], path: Path) -> None:
    """Left: the smallest value of each pair. Right: p-values, one null in each triangle."""
    names = list(alone)
    at = {name: i for i, name in enumerate(names)}
    values, pvalues = (np.full((len(names), len(names)), np.nan) for _ in range(2))
    np.fill_diagonal(values, list(alone.values()))
    for row in rows:
        i, j = at[row["first"]], at[row["second"]]
        values[i, j] = values[j, i] = row["ece_conf"]
        pvalues[max(i, j), min(i, j)] = row["ece_conf_recentered_p"]
        pvalues[min(i, j), max(i, j)] = row["ece_conf_refit_p"]
    with drawing(path, height=3.9) as figure:
        left, right = figure.subplots(1, 2)
        # Vector cells: an image would be embedded and blurred.
        edges = {"edgecolors": "white", "linewidth": 0.3}
        most = max(0.2, np.nanmax(pvalues))
        first = left.pcolormesh(values, cmap="viridis_r", **edges)
        second = right.pcolormesh(pvalues, cmap="cividis", vmin=0, vmax=most, **edges)
        # A cross where the pair is rejected: colour alone would not show the level.
        y, x = np.nonzero(pvalues <= ALPHA)
        right.plot(x + 0.5, y + 0.5, "x", color="white", markersize=3)
        for ax, mesh, label in ((left, first, "smallest ece_conf"), (right, second, "p-value")):
            ax.set_aspect("equal")
            ax.invert_yaxis()
            ax.set_xticks(np.arange(len(names)) + 0.5, names, rotation=90)
            ax.tick_params(length=0)
            place = {"location": "top", "shrink": 0.9, "pad": 0.02}
            figure.colorbar(mesh, ax=ax, label=label, format=_short, **place)
        left.set_yticks(np.arange(len(names)) + 0.5, names)
        right.set_yticks([])
        right.set_xlabel("below the diagonal recentered, above it refit")
        left.set_xlabel("on the diagonal, a network alone")


def draw_sizes(groups: Rows, pairs: Rows, path: Path) -> None:
    """Valid and small: the best value against the mean size; filled where not rejected."""
    with drawing(path, height=3.2, width=PAGE * 0.85) as figure:
        ax = figure.subplots()
        for kind, rows, colour, look in (
            ("pairs", pairs, GREY, {"marker": "o", "s": 12}),
            ("groups", groups, ORANGE, {"marker": "s", "s": 26}),
        ):
            for rejected, fill in ((False, colour), (True, "white")):
                some = [row for row in rows if (row["ece_conf_recentered_p"] <= ALPHA) is rejected]
                place = column(some, "tv_diameter"), column(some, "ece_conf")
                look |= {"linewidth": 0.8, "edgecolors": colour, "facecolors": fill}
                ax.scatter(*place, **look, label=f"{kind}, {'not ' * (not rejected)}rejected")
        for i, row in enumerate(groups):
            # Neighbours in the table may be neighbours in the figure: names go left and right in turn.
            side = {"xytext": (4, 4), "ha": "left"} if i % 2 else {"xytext": (-4, 4), "ha": "right"}
            place = row["tv_diameter"], row["ece_conf"]
            ax.annotate(row["set"], place, textcoords="offset points", **side)
        ax.set_xlabel("mean size of the set (tv_diameter)")
        ax.set_ylabel("smallest ece_conf in the hull")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(_short)
        ax.set_ylim(bottom=0)
        figure.legend(loc="outside upper center", ncols=3)


def draw_growing(rows: Rows, path: Path) -> None:
    """p-values above, sizes below, both against the number of members."""
    members = column(rows, "n_members")
    with drawing(path, height=5.0, width=6.3) as figure:
        valid, small = figure.subplots(2, 1, sharex=True)

        def line(ax: Any, name: str, style: str, colour: str, marker: str, label: str) -> None:
            values = column(rows, name)
            ax.plot(members, values, style, color=colour, marker=marker, label=label)

        for measure, colour, marker in zip(MEASURES, (BLUE, ORANGE), "os", strict=True):
            for null, style in zip(NULLS, ("-", "--"), strict=True):
                label = f"{measure}, {'truth' if null == 'refit' else 'calibrated'}"
                line(valid, f"{measure}_{null}_p", style, colour, marker, label)
        for name, marker, colour in zip(SIZES, "os^v", ("black", GREEN, PURPLE, SKY), strict=True):
            line(small, name, "-", colour, marker, name)
        valid.axhline(ALPHA, color="black", linewidth=0.8, linestyle=":")
        valid.text(members[0], ALPHA, r"$\alpha$ = .05", va="bottom")
        valid.set_yscale("log")
        valid.set_ylabel("p-value")
        small.set_ylabel("mean size (Hartley in bits)")
        small.set_xlabel("members")
        small.set_xticks(members)
        for ax in (valid, small):
            ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, columnspacing=1.0)


def draw_humans(distances: dict[str, Any], disagreement: Rows, path: Path) -> None:
    """Left: how many images are how near. Right: size of the set by people's disagreement."""
    with drawing(path, height=2.9) as figure:
        left, right = figure.subplots(1, 2)
        colours = (GREEN, PURPLE, ORANGE, BLUE, "black")
        lines = zip(colours, ("-", "--", "-.", ":", (0, (1, 3))), strict=True)
        for (name, values), (colour, line) in zip(distances.items(), lines, strict=True):
            # Two hundred quantiles draw what ten thousand steps would.
            levels = np.linspace(0, 1, 201)
            left.plot(np.quantile(values, levels), levels, color=colour, linestyle=line, label=name)
        left.set_xlim(0, 0.5)
        left.set_ylim(0, 1)
        left.set_xlabel("total variation from people's distribution")
        left.set_ylabel("share of images")
        left.legend(loc="lower right", title="distance to", title_fontsize="small")
        places = np.arange(len(disagreement))
        ends = (column(disagreement, f"tv_diameter_{end}") for end in ("lower", "upper"))
        right.vlines(places, *ends, color=BLUE, linewidth=0.8)
        right.plot(places, column(disagreement, "tv_diameter"), "o-", color=BLUE)
        ticks = [f"{row['dissent']}\n({row['n_images']})" for row in disagreement]
        right.set_xticks(places, ticks)
        right.set_ylim(bottom=0)
        right.set_xlabel("people who dissent (images)")
        right.set_ylabel("mean size of the set (tv_diameter)")


def _short(value: float, place: Any = None) -> str:
    """A tick as the tables have it: .025."""
    return f"{value:.4g}".replace("0.", ".", 1)
