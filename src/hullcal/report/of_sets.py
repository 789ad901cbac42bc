"""Figures of sets: reliability, what the weights buy, size, and one row in the triangle."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal.plots._curves import Curve, reliability_diagram
from hullcal.plots._text import clipped, number, undrawn
from hullcal.plots.average_against_weighted import Lane, comparison
from hullcal.plots.simplex import simplex_points
from hullcal.plots.size_distribution import size_groups
from hullcal.report.svg import LINE, WIDTH, Panel
from hullcal.sets import ClassifierSet

#: Room for the counts under a reliability diagram, as a share of its height.
_STRIP = 0.14

#: Members of which each has a title of its own.
_TITLED = 200


def reliability(
    classifiers: ClassifierSet,
    labels: NDArray[np.int32],
    weights: NDArray[np.float64],
    class_index: int | None = None,
) -> Panel:
    """Members faint, the average, and the combination with its consistency band.

    Of one classifier these are all the same, and drawn once.
    """
    diagram = reliability_diagram(classifiers, labels, weights=weights, class_index=class_index)
    weighted = diagram.average if diagram.weighted is None else diagram.weighted
    edges = diagram.edges.tolist()
    panel = Panel(height=290.0 + 3 * LINE, y=(-_STRIP, 1.0), top=3 * LINE + 12.0)
    bins = list(pairwise(edges))
    for across, low, high in zip(bins, diagram.low, diagram.high, strict=True):
        if not math.isnan(low):
            panel.box("area band", across, (low, high))
    most = int(weighted.counts.max())
    for across, count in zip(bins, weighted.counts, strict=True):
        panel.box("area rows", across, (-_STRIP, _STRIP * (0.85 * count / most - 1.0)))
    panel.line("line dotted", [(0.0, 0.0), (1.0, 1.0)])
    several = classifiers.n_members > 1
    curves = [("line weighted", "dot weighted", weighted)]
    if several:
        for member in diagram.members:
            panel.line("line member", _points(member))
        curves.insert(0, ("line dashed average", "square average", diagram.average))
    for look, dot, curve in curves:
        panel.line(look, _points(curve))
        for x, y in _points(curve):
            panel.dot(dot, x, y)
    name, band = "weighted" if several else "classifier", f"{100 * diagram.confidence:g} % band"
    legend = [("line weighted", name), ("area band", f"{band} of {name}" if several else band)]
    if several:
        legend.append(("line dashed average", "average"))
        legend.append(("line member", f"{len(diagram.members)} members"))
    legend += [("line dotted", "calibrated"), ("area rows", f"rows (at most {most})")]
    panel.legend(legend, columns=2)
    panel.across(f"probability of {undrawn(diagram.event)}")
    panel.down("observed frequency", [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    for j, across in enumerate(bins):
        said = f"{across[0]:g} to {across[1]:g}. {name}: {_bin(weighted, j)}"
        if weighted.counts[j]:
            said += f", band {diagram.low[j]:.3f} to {diagram.high[j]:.3f}"
        if several:
            said += f". average: {_bin(diagram.average, j)}"
        panel.column(across, f"{said}.")
    return panel


def _points(curve: Curve) -> list[tuple[float, float]]:
    full = curve.counts > 0
    return list(zip(curve.predicted[full].tolist(), curve.observed[full].tolist(), strict=True))


def _bin(curve: Curve, j: int) -> str:
    if not curve.counts[j]:
        return "no rows"
    rows = "1 row" if curve.counts[j] == 1 else f"{curve.counts[j]} rows"
    return f"{rows}, predicted {curve.predicted[j]:.3f}, observed {curve.observed[j]:.3f}"


def average_against_weighted(
    classifiers: ClassifierSet, labels: NDArray[np.int32], weights: NDArray[np.float64]
) -> Panel:
    """A lane for each score, from its smallest to its largest value."""
    lanes = comparison(classifiers, labels, weights).lanes
    top = LINE + 8.0
    panel = Panel(
        height=top + 82.0 * len(lanes), y=(len(lanes), 0.0), left=24.0, right=24.0, top=top
    )
    panel.bottom = 0.0
    panel.legend(
        [
            ("dot member", "members"),
            ("square average", "average"),
            ("diamond weighted", "weighted"),
        ],
        columns=3,
    )
    for number_of_lane, lane in enumerate(lanes):
        _draw_lane(panel, lane, number_of_lane, classifiers)
    return panel


def _draw_lane(panel: Panel, lane: Lane, which: int, classifiers: ClassifierSet) -> None:
    y = which + 0.65
    name = lane.name.replace("\n", " ")
    start = panel.py(which)
    panel.write(name, WIDTH / 2, start + 16, look="strong", anchor="middle")
    said = f"average {number(lane.average)}, weighted {number(lane.weighted)}"
    panel.write(said, WIDTH / 2, start + 31, anchor="middle")
    panel.line("axis", [(0.0, y), (1.0, y)])
    score = name.partition(" (")[0]
    places = lane.place(lane.members)
    if len(places) <= _TITLED:
        for m, x in enumerate(places.tolist()):
            title = f"{_member(classifiers, m)}: {score} {number(lane.members[m])}"
            panel.dot("dot member mark", x, y, title)
    else:  # members that fall on one place are one dot
        for x in np.unique(places.round(3)).tolist():
            panel.dot("dot member", x, y)
    for look, value, who in (
        ("square average mark", lane.average, "average"),
        ("diamond weighted mark", lane.weighted, "weighted"),
    ):
        panel.dot(look, float(lane.place(value)), y, f"{who}: {score} {number(value)}", size=4.0)
    low, high = lane.scale
    for x, value in [(0.0, low), (1.0, high)] if high > low else [(0.5, low)]:
        panel.write(number(value), panel.px(x), panel.py(y) + 19, look="faint", anchor="middle")


def _member(classifiers: ClassifierSet, m: int) -> str:
    names = classifiers.members
    return f"member {m}" if names is None else clipped(names[m], longest=80)


def size_distribution(classifiers: ClassifierSet, labels: NDArray[np.int32]) -> Panel:
    """Densities of the size where the average is right and where it is wrong, and their medians."""
    groups = size_groups(classifiers, labels)
    edges = groups.edges.tolist()
    parts: list[tuple[str, str, NDArray[np.float64], NDArray[Any]]] = []
    for look, name, values in (
        ("right", "right", groups.right),
        ("dashed wrong", "wrong", groups.wrong),
    ):
        parts.append((look, name, values, np.histogram(values, edges)[0]))
    widths = np.diff(groups.edges)
    dense = [counts / (max(len(values), 1) * widths) for _, _, values, counts in parts]
    highest = max(float(density.max()) for density in dense)
    panel = Panel(
        height=220.0 + 2 * LINE,
        x=(edges[0], edges[-1]),
        y=(0.0, 1.06 * highest),
        top=2 * LINE + 10.0,
    )
    legend = []
    for (look, name, values, _), density in zip(parts, dense, strict=True):
        if len(values) == 0:
            legend.append((f"area {look}", f"{name} (no instances)"))
            continue
        median = float(np.median(values))
        panel.steps(f"area {look}", edges, density.tolist())
        panel.line(f"line {look}", [(median, 0.0), (median, panel.y[1])])
        said = f"{name} ({len(values)} instances, median {number(median)})"
        legend.append((f"area {look}", said))
    panel.legend(legend)
    panel.across(groups.label)
    panel.down("density")
    for j, (start, end) in enumerate(pairwise(edges)):
        said = ", ".join(f"{counts[j]} {name}" for _, name, _, counts in parts)
        panel.column((start, end), f"{start:.4g} to {end:.4g}: {said}")
    return panel


def simplex(classifiers: ClassifierSet, weights: NDArray[np.float64]) -> Panel:
    """The first row in the triangle of its three classes."""
    points = simplex_points(classifiers, weights=weights)
    names = [undrawn(name) for name in points.corners]
    panel = Panel(height=360.0, left=30.0, right=30.0, top=62.0, bottom=36.0)
    # An equilateral triangle: the height of a point is its first probability.
    panel.y = (0.0, (panel.height - 98.0) / 300.0)

    def place(p: NDArray[np.float64]) -> tuple[float, float]:
        return float(p[2] + p[0] / 2), float(p[0]) * math.sqrt(0.75)

    panel.line("axis", map(place, np.eye(3)), closed=True)
    for share in (0.25, 0.5, 0.75):
        for k in range(3):
            ends = np.full((2, 3), 1.0 - share)
            ends[:, k] = share
            ends[0, (k + 1) % 3] = ends[1, (k + 2) % 3] = 0.0
            panel.line("grid", map(place, ends))
    panel.line("area hull", map(place, points.hull), closed=True)

    def draw(look: str, who: str, p: NDArray[np.float64]) -> None:
        said = ", ".join(f"{name} {value:.3f}" for name, value in zip(names, p, strict=True))
        panel.dot(look, *place(p), f"{who}: {said}" if "mark" in look else "")

    look = "dot hulled mark" if len(points.members) <= _TITLED else "dot hulled"
    for m, member in enumerate(points.members):
        draw(look, _member(classifiers, m), member)
    draw("square average mark", "average", points.mean)
    if points.combination is not None:
        draw("diamond weighted mark", "weighted", points.combination)
    panel.legend(
        [
            ("area hull", "convex hull"),
            ("dot hulled", "members"),
            ("square average", "average"),
            ("diamond weighted", "weighted"),
        ],
        columns=2,
    )
    below = panel.height - 14.0
    panel.write(names[0], WIDTH / 2, 52.0, anchor="middle")
    panel.write(names[1], 8.0, below)
    panel.write(names[2], WIDTH - 8.0, below, anchor="end")
    return panel
