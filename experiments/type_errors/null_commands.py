"""What the commands about nulls run, print and draw: levels, powers, distances, budgets, candidates."""

import argparse
import itertools
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy.stats import fisher_exact

import hullcal as hc
from experiments.type_errors import grids, null_figures, tables
from experiments.type_errors.candidates import CANDIDATES
from experiments.type_errors.running import Rows, print_estimate, rates
from experiments.type_errors.tables import RATE_COLUMNS, interval
from hullcal.simulation import scenario
from hullcal.simulation.rates import kind_of_error, rates_of

_ALPHA = 0.05
#: The strength at which axes and budgets are compared: neither hopeless nor certain.
_STRENGTH = 0.2
#: Nulls by how much they should see.
_ORDER = ("paper", "recentered", "stacked", "refit")


def levels(options: argparse.Namespace) -> None:
    """All five nulls where their hypothesis is true, and in the case calibrated but not the truth."""
    parts = [part for part in _parts(options) if part.name.split()[-1] == "level"]
    parts += [part for part in _parts(options) if part.name.startswith("calibrated")]
    _draw_levels(_run(parts, options), options.out)


def nulls(options: argparse.Namespace) -> None:
    """All five nulls: what `levels` shows, and their power."""
    rows = _run(_parts(options), options)
    _draw_levels(rows, options.out)
    at_level = [row for row in rows if row["alpha"] == _ALPHA]
    centre = null_figures.on_axis(at_level, None)
    for name in ("S2", "S3"):
        some = [row for row in centre if row["scenario"] == name]
        title = f"Power at the centre, {name}, level {_ALPHA}"
        _show_nulls(some, ("measure", "strength", "n_datasets"), title)
        tables.write(some, options.out / f"nulls_power_{name}.csv")
        null_figures.draw_power(some, options.out / f"nulls_power_{name}.svg")
    outside = [row for row in at_level if row["scenario"] in ("S2", "S3")]
    sizes = ("measure", "scenario", "strength", *grids.AXES)
    _show_nulls(outside, (*sizes, "n_datasets"), f"Power everywhere, level {_ALPHA}")
    tables.write(outside, options.out / "nulls_power.csv")
    _show_order(outside, sizes)
    fixed = [
        row
        for row in outside
        if (row["scenario"], row["strength"]) == ("S3", _STRENGTH)
        and row["measure"] in grids.EVERYWHERE
    ]
    null_figures.draw_axes(fixed, options.out / "nulls_axes.svg")
    tables.write(fixed, options.out / "nulls_axes.csv")


def _show_order(rows: Rows, names: tuple[str, ...]) -> None:
    """Where a null that should see less sees more, beyond noise; and mean powers at one strength."""
    cells: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        cells.setdefault(tuple(row[name] for name in names), {})[row["null"]] = row
    for less, more in (*itertools.pairwise(_ORDER), ("recentered", "refit")):
        beyond = [place for place, cell in cells.items() if _sees_more(cell[less], cell[more])]
        print(f"{less} sees more than {more} in {len(beyond)} of {len(cells)} cells, beyond noise")
        for place in beyond:
            print("  ", *place)
    for null in grids.NULLS:
        means = {
            measure: np.mean(
                [
                    row["rejection_rate"]
                    for row in rows
                    if (row["null"], row["measure"]) == (null, measure)
                    and (row["scenario"], row["strength"]) == ("S3", _STRENGTH)
                ]
            )
            for measure in ("ece_conf", "ece_cwise")
        }
        text = ", ".join(f"{measure} {mean:.2f}" for measure, mean in means.items())
        print(f"mean power of {null} in S3 at {_STRENGTH}: {text}")


def _sees_more(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether the first rejects more often, by Fisher's exact test at .05."""
    counts = [
        [round(row["rejection_rate"] * row["n_datasets"]), row["n_datasets"]]
        for row in (one, other)
    ]
    table = [[hits, total - hits] for hits, total in counts]
    more = one["rejection_rate"] > other["rejection_rate"]
    return bool(more and fisher_exact(table).pvalue < 0.05)


def _parts(options: argparse.Namespace) -> list[grids.Part]:
    return grids.nulls(options.datasets or grids.WHOLE, options.resamples or 99, options.minimizer)


def _run(parts: list[grids.Part], options: argparse.Namespace) -> Rows:
    """Journals are shared by the commands, so that none runs again what another has."""
    folder = options.work / "nulls"
    print_estimate(parts, folder, options.jobs)
    return rates(parts, folder, options.jobs)


def _draw_levels(rows: Rows, out: Path) -> None:
    _level(rows, out)
    calibrated = [row for row in rows if row["alpha"] == _ALPHA and row["scenario"] == "calibrated"]
    title = f"Rejections where one member is calibrated and none the truth, level {_ALPHA}"
    _show_nulls(calibrated, ("measure", "n_samples", "n_datasets"), title)
    tables.write(calibrated, out / "nulls_calibrated.csv")
    null_figures.draw_calibrated(calibrated, out / "nulls_calibrated.svg")


def _level(rows: Rows, out: Path) -> None:
    bounded = null_figures.with_bounds(rows)
    sizes = ("scenario", "measure", *grids.AXES, "n_datasets", "alpha")
    _show_nulls(bounded, sizes, "Rejection rates where the null's own hypothesis is true")
    beyond = [row for row in bounded if row["beyond"]]
    columns = ("null", *sizes, "rejection_rate", "bound")
    print(
        f"{len(beyond)} of {len(bounded)} rates are above their 99 % bound, all cells allowed for"
    )
    if beyond:
        tables.show(beyond, columns, title="Above their bound")
    tables.write(bounded, out / "nulls_level.csv", (*RATE_COLUMNS, "bound", "beyond"))
    null_figures.draw_level(bounded, out / "nulls_level.svg")


def _show_nulls(rows: Rows, names: tuple[str, ...], title: str) -> None:
    """A line for each cell, a column for each null."""
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        where = {name: row[name] for name in names}
        line = lines.setdefault(tuple(where.values()), where | dict.fromkeys(grids.NULLS))
        line[row["null"]] = interval(row, "rejection_rate")
    shown = [null for null in grids.NULLS if any(line[null] for line in lines.values())]
    tables.show(list(lines.values()), (*names, *shown), title=title)


def distance(options: argparse.Namespace) -> None:
    """Power at the centre against how far the population is from the hypothesis."""
    measures = ("ece_conf", "ece_cwise")
    parts = grids.nulls(
        options.datasets or grids.WHOLE, options.resamples or 99, options.minimizer, core=True
    )
    found = rates(parts, options.work / "nulls", options.jobs)
    rows = [
        row
        for row in found
        if row["alpha"] == _ALPHA and row["measure"] in measures and row["kind"] == "Type II"
    ]
    places: list[tuple[str, float | None, str]] = [("S1", None, measure) for measure in measures]
    places += dict.fromkeys((row["scenario"], row["strength"], row["measure"]) for row in rows)
    smallest = joblib.Parallel(n_jobs=options.jobs)(
        joblib.delayed(_smallest)(*place, grids.CENTRE | {"n_samples": options.population})
        for place in places
    )
    values = dict(zip(places, smallest, strict=True))
    floors = {measure: values["S1", None, measure] for measure in measures}
    for row in rows:
        row["distance"] = values[row["scenario"], row["strength"], row["measure"]]
        row["floor"] = floors[row["measure"]]
    text = ", ".join(f"{measure} {floor:.4f}" for measure, floor in floors.items())
    print(f"floor, the value under S1 with N={options.population}: {text}")
    names = ("measure", "scenario", "strength", "distance", "n_datasets")
    _show_nulls(rows, names, f"Smallest measure in the hull, and power, level {_ALPHA}")
    tables.write(rows, options.out / "distance.csv", (*RATE_COLUMNS, "distance", "floor"))
    null_figures.draw_distance(rows, floors, options.out / "distance.svg")


def _smallest(name: str, strength: float | None, measure: str, sizes: dict[str, Any]) -> float:
    """Minimum over all combinations on a sample so large that it stands for the population."""
    far = {} if strength is None else {"strength": strength}
    data = scenario(name, **sizes, **far, rng=0)
    best = hc.minimize(data.probs, data.labels, measure=measure, rng=0)
    return float(best.value)


def budget(options: argparse.Namespace) -> None:
    """Power in S3, and level in S1, against the budget of the search."""
    part = grids.budget(options.datasets or 200, options.resamples or 99)
    folder = options.work / "budget"
    print_estimate([part], folder, options.jobs)
    rows = [row for row in rates([part], folder, options.jobs) if row["alpha"] == _ALPHA]
    for row in rows:
        row["budget"] = int(row["minimizer"].split(":")[1])
    names = ("scenario", "measure", "budget", "n_datasets")
    _show_nulls(rows, names, f"Rejection rates by budget, level {_ALPHA}")
    tables.write(rows, options.out / "budget.csv", (*RATE_COLUMNS, "budget"))
    null_figures.draw_budget(rows, options.out / "budget.svg")


def classes(options: argparse.Namespace) -> None:
    """Levels of nulls against the number of classes."""
    part = grids.classes(options.datasets or 100, options.resamples or 59, options.minimizer)
    folder = options.work / "classes"
    print_estimate([part], folder, options.jobs)
    rows = rates([part], folder, options.jobs)
    names = ("measure", "n_samples", "n_classes", "n_datasets")
    for alpha in (_ALPHA, 0.2):
        some = [row for row in rows if row["alpha"] == alpha]
        _show_nulls(some, names, f"Rejections of sets that contain the truth, level {alpha}")
    tables.write(rows, options.out / "classes.csv")


def candidates(options: argparse.Namespace) -> None:
    """Nulls for "contains a calibrated classifier" that were tried: level and power at .05 and .2."""
    n_datasets, n_resamples = options.datasets or 200, options.resamples or 59
    names = [getattr(null, "name", null) for null in CANDIDATES]
    rows: Rows = []
    for place, settings in _TRIED.items():
        for measure in ("ece_conf", "ece_cwise"):
            found = joblib.Parallel(n_jobs=options.jobs)(
                joblib.delayed(_pvalues)(settings, measure, options.minimizer, n_resamples, r)
                for r in range(n_datasets)
            )
            kinds = [kind_of_error(settings["name"], null) for null in CANDIDATES]
            for name, kind, values in zip(names, kinds, zip(*found, strict=True), strict=True):
                rows += [
                    {"place": place, "measure": measure, "null": name} | row
                    for row in rates_of(kind, values, (_ALPHA, 0.2))
                ]
            lines: dict[str, dict[str, Any]] = {}
            for row in rows:
                if (row["place"], row["measure"]) == (place, measure):
                    line = lines.setdefault(row["null"], {"null": row["null"]})
                    line[f"at {row['alpha']:g}"] = interval(row, "rejection_rate")
            title = f"Rejections of {n_datasets} data sets, {place}, {measure}"
            tables.show(list(lines.values()), ("null", "at 0.05", "at 0.2"), title=title)
    columns = ("place", "measure", "null", "alpha", "kind")
    tables.write(rows, options.out / "candidates.csv", (*columns, *RATE_COLUMNS[-7:]))


#: The truth in the hull, a calibrated member beside it, and neither.
_TRIED: dict[str, dict[str, Any]] = {
    "S1": {"name": "S1", **grids.CENTRE},
    "calibrated, N=300": {"name": "calibrated", "n_samples": 300},
    "S3 at .25": {"name": "S3", "strength": 0.25, **grids.CENTRE},
}


def _pvalues(
    settings: dict[str, Any], measure: str, search: Any, n_resamples: int, r: int
) -> list[float]:
    """All candidates on data set r, at seeds of its own."""
    data = scenario(**settings, rng=r)
    return [
        hc.calibration_test(
            data.probs,
            data.labels,
            measure=measure,
            null=null,
            minimizer=search or "pairwise",
            n_resamples=n_resamples,
            rng=r,
        ).pvalue
        for null in CANDIDATES
    ]
