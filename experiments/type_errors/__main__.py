"""How often does the test of a classifier set err? Run, print and draw one study.

    python -m experiments.type_errors figure1 --jobs -1 --out docs/figures/type_errors

A command that is stopped goes on where it was when it is given again. It prints its figures as
numbers with Wilson's 95 % intervals, and writes each figure as SVG and as a tidy CSV.
"""

import itertools
import math
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import joblib

import hullcal as hc
from experiments import command_line, tables
from experiments.tables import Rows, interval
from experiments.type_errors import figures, grids
from experiments.type_errors.figures import setting

Given = Namespace

#: What identifies a rate, and the rate: the columns of every file of rates.
RATE_COLUMNS = (
    *("part", "scenario", "n_samples", "n_members", "n_classes", "spread", "strength"),
    *("protocol", "measure", "n_bins", "null", "minimizer", "alpha", "kind"),
    *("error", "error_lower", "error_upper"),
    *("rejection_rate", "rejection_lower", "rejection_upper", "n_datasets"),
)
_ALPHA = 0.05
#: Levels of the comparison of departures: the smallest of the paper's twelve, and a middling one.
_LEVELS = (_ALPHA, 0.21)
#: The strength at which axes are compared: neither hopeless nor certain.
_STRENGTH = 0.2


def rates(parts: list[grids.Part], folder: Path, n_jobs: int) -> Rows:
    """Rates of all parts, each row with the name of its `part`; a finished part is read, not run."""
    rows: Rows = []
    for name, grid in parts:
        # A folder for each number of data sets, so that a trial does not stand in a study's way.
        place = folder / f"{name.replace(', ', ' ').replace(' ', '-')}-R{grid.n_datasets}"
        options = {"folder": place, "resume": True, "progress": sys.stderr.isatty()}
        run = partial(hc.simulation.run, grid, n_jobs=n_jobs, **options)
        study = tables.timed(f"{name}, {grid.n_datasets} data sets a cell,", run)
        rows += [{"part": name} | row for row in study.rates()]
    return rows


def scenarios(given: Given) -> None:
    """Figure 1, left: the three scenarios for K=3, M=10 in the triangle."""
    drawn, instance = figures.scenario_points()
    rows = figures.scenario_rows(drawn, instance)
    title = f"Instance {instance} of {len(drawn['S1'].labels)}"
    tables.show(rows, tuple(rows[0]), title=title)
    tables.write(rows, given.out / "scenarios.csv")
    figures.draw_scenarios(drawn, instance, given.out / "scenarios.svg")


def paper_figure(given: Given) -> None:
    """Errors against the level: Figure 1, or one of the supplement (u=.1, M=100, K=100)."""
    protocols = ("paper", "authors") if given.protocol == "both" else (given.protocol,)
    sizes = (given.datasets or 1000, given.resamples or 100)
    parts = [grids.paper_figure(given.command, protocol, *sizes) for protocol in protocols]
    rows = rates(parts, given.work / given.command, given.jobs)
    for protocol, name in itertools.product(protocols, grids.SCENARIOS):
        lines: dict[float, dict[str, Any]] = {}
        for row in rows:
            if (row["part"], row["scenario"]) == (protocol, name):
                line = lines.setdefault(row["alpha"], {"alpha": row["alpha"]})
                line[setting(row)] = interval(row, "error")
        kind = "Type I" if name == "S1" else "Type II"
        title = f"{given.command}, protocol of the {protocol}: {kind} error in {name}"
        tables.show(list(lines.values()), ("alpha", *grids.SETTINGS), title=title)
    name = given.command + ("" if given.protocol == "both" else f"_{given.protocol}")
    tables.write(rows, given.out / f"{name}.csv", RATE_COLUMNS)
    figures.draw_errors(rows, given.out / f"{name}.svg")


def switches(given: Given) -> None:
    """Each departure of the authors' scripts alone, against the paper's text."""
    parts = grids.switches(given.datasets or 1000, given.resamples or 100)
    found = rates(parts, given.work / "switches", given.jobs)
    names = ("scenario", "measure", "n_bins", "alpha")
    plain = {tuple(row[name] for name in names): row for row in found if row["part"] == "paper"}
    rows = []
    for row in sorted(found, key=lambda row: row["alpha"]):
        if row["part"] != "paper" and row["alpha"] in _LEVELS:
            before = plain[tuple(row[name] for name in names)]
            rows.append(row | difference(row, before) | {"error_paper": before["error"]})
    lines = [
        row
        | {
            "setting": setting(row),
            "with it": interval(row, "error"),
            "change, 95 %": interval(row, "change"),
            "": "*" if row["change_lower"] > 0 or row["change_upper"] < 0 else "",
        }
        for row in rows
    ]
    columns = ("part", "scenario", "setting", "alpha", "kind", "error_paper", "with it")
    tables.show(lines, (*columns, "change, 95 %", ""), title="Error rates, and their change")
    extra = ("error_paper", "change", "change_lower", "change_upper")
    tables.write(rows, given.out / "switches.csv", (*RATE_COLUMNS, *extra))
    figures.draw_switches(rows, given.out / "switches.svg")


def difference(changed: dict[str, Any], plain: dict[str, Any]) -> dict[str, float]:
    """Newcombe's 95 % interval for the change of an error rate, from Wilson's of both.

    It is meant for independent data sets; where both rates come from the same ones, as with another
    search, it is wider than need be.
    """
    change = changed["error"] - plain["error"]
    below = changed["error"] - changed["error_lower"], plain["error_upper"] - plain["error"]
    above = changed["error_upper"] - changed["error"], plain["error"] - plain["error_lower"]
    return {
        "change": change,
        "change_lower": change - math.hypot(*below),
        "change_upper": change + math.hypot(*above),
    }


def _null_rates(given: Given, *, wanted: Callable[[str], bool]) -> Rows:
    """Rates of parts of the study of nulls; commands share journals, so that none runs twice."""
    sizes = (given.datasets or grids.WHOLE, given.resamples or 99)
    parts = [part for part in grids.nulls(*sizes) if wanted(part.name)]
    return rates(parts, given.work / "nulls", given.jobs)


def nulls(given: Given) -> None:
    """All five nulls: rates where their hypothesis is true, and their power."""
    rows = _null_rates(given, wanted=bool)
    _show_levels(rows, given.out)
    at_level = tables.where(rows, alpha=_ALPHA)
    centre = tables.where(figures.on_axis(at_level, None), scenario="S3")
    _show_nulls(centre, ("measure", "strength", "n_datasets"), f"Power at the centre, S3, {_ALPHA}")
    tables.write(centre, given.out / "nulls_power_S3.csv", RATE_COLUMNS)
    lines = [
        (f"power at level {_ALPHA}", [row for row in centre if row["measure"] in measures])
        for measures in (grids.EVERYWHERE, grids.AT_THE_CENTRE)
    ]
    figures.draw_curves(lines, "strength", "strength of S3", given.out / "nulls_power_S3.svg")
    outside = [row for row in at_level if row["scenario"] in ("S2", "S3")]
    sizes = ("measure", "scenario", "strength", *grids.AXES)
    _show_nulls(outside, (*sizes, "n_datasets"), f"Power everywhere, level {_ALPHA}")
    tables.write(outside, given.out / "nulls_power.csv", RATE_COLUMNS)
    fixed = tables.where(outside, scenario="S3", strength=_STRENGTH)
    fixed = [row for row in fixed if row["measure"] in grids.EVERYWHERE]
    figures.draw_axes(fixed, given.out / "nulls_axes.svg")
    tables.write(fixed, given.out / "nulls_axes.csv", RATE_COLUMNS)


def _show_levels(rows: Rows, out: Path) -> None:
    bounded = figures.with_bounds(rows)
    sizes = ("scenario", "measure", *grids.AXES, "n_datasets", "alpha")
    _show_nulls(bounded, sizes, "Rejection rates where the null's own hypothesis is true")
    beyond = tables.where(bounded, beyond=True)
    title = f"{len(beyond)} of {len(bounded)} rates above their 99 % bound, all cells allowed for"
    tables.show(beyond, ("null", *sizes, "rejection_rate", "bound"), title=title)
    tables.write(bounded, out / "nulls_level.csv", (*RATE_COLUMNS, "bound", "beyond"))
    figures.draw_level(bounded, out / "nulls_level.svg")
    calibrated = tables.where(rows, alpha=_ALPHA, scenario="calibrated")
    title = f"Rejections where one member is calibrated and none the truth, level {_ALPHA}"
    _show_nulls(calibrated, ("measure", "n_samples", "n_datasets"), title)
    tables.write(calibrated, out / "nulls_calibrated.csv", RATE_COLUMNS)
    lines = [(f"rejection rate at level {_ALPHA}", calibrated)]
    figures.draw_curves(lines, "n_samples", "$N$", out / "nulls_calibrated.svg")


def _show_nulls(rows: Rows, names: tuple[str, ...], title: str) -> None:
    """A line for each cell, a column for each null."""
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        where = {name: row[name] for name in names}
        line = lines.setdefault(tuple(where.values()), where | dict.fromkeys(grids.NULLS))
        line[row["null"]] = interval(row, "rejection_rate")
    shown = [null for null in grids.NULLS if any(line[null] for line in lines.values())]
    tables.show(list(lines.values()), (*names, *shown), title=title)


def distance(given: Given) -> None:
    """Power at the centre against how far the population is from the hypothesis."""
    measures = ("ece_conf", "ece_cwise")
    rows = [
        row
        for row in _null_rates(given, wanted=lambda name: name.startswith("centre"))
        if row["alpha"] == _ALPHA and row["measure"] in measures and row["kind"] == "Type II"
    ]
    places: list[tuple[str, float | None, str]] = [("S1", None, measure) for measure in measures]
    places += dict.fromkeys((row["scenario"], row["strength"], row["measure"]) for row in rows)
    smallest = joblib.Parallel(n_jobs=given.jobs)(
        joblib.delayed(_smallest)(*place, grids.CENTRE | {"n_samples": given.population})
        for place in places
    )
    values = dict(zip(places, smallest, strict=True))
    floors = {measure: values["S1", None, measure] for measure in measures}
    for row in rows:
        row["distance"] = values[row["scenario"], row["strength"], row["measure"]]
        row["floor"] = floors[row["measure"]]
    text = ", ".join(f"{measure} {floor:.4f}" for measure, floor in floors.items())
    print(f"floor, the value under S1 with N={given.population}: {text}")
    names = ("measure", "scenario", "strength", "distance", "n_datasets")
    _show_nulls(rows, names, f"Smallest measure in the hull, and power, level {_ALPHA}")
    tables.write(rows, given.out / "distance.csv", (*RATE_COLUMNS, "distance", "floor"))
    figures.draw_distance(rows, floors, given.out / "distance.svg")


def _smallest(name: str, strength: float | None, measure: str, sizes: dict[str, Any]) -> float:
    """Minimum over all combinations on a sample so large that it stands for the population."""
    far = {} if strength is None else {"strength": strength}
    data = hc.simulation.scenario(name, **sizes, **far, rng=0)
    return float(hc.minimize(data.probs, data.labels, measure=measure, rng=0).value)


def classes(given: Given) -> None:
    """Levels of nulls against the number of classes."""
    part = grids.classes(given.datasets or 100, given.resamples or 59)
    rows = rates([part], given.work / "classes", given.jobs)
    names = ("measure", "n_samples", "n_classes", "alpha", "n_datasets")
    _show_nulls(rows, names, "Rejections of sets that contain the truth")
    tables.write(rows, given.out / "classes.csv", RATE_COLUMNS)


COMMANDS: dict[str, Callable[[Given], None]] = {
    "scenarios": scenarios,
    **dict.fromkeys(grids.PAPER_FIGURES, paper_figure),
    "switches": switches,
    "nulls": nulls,
    "distance": distance,
    "classes": classes,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and run its command."""
    parser = command_line("experiments.type_errors", __doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        one = commands.add_parser(name, help=command.__doc__, description=command.__doc__)
        text = "data sets a cell; in nulls and distance those at the centre, others in proportion"
        one.add_argument("--datasets", type=int, metavar="R", help=text)
        one.add_argument("--resamples", type=int, metavar="D", help="null values of a test")
        one.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one a core")
        one.add_argument("--out", type=Path, default=Path("docs/figures/type_errors"))
        text = "its journals go to FOLDER/COMMAND"
        work = Path("build/type_errors")
        one.add_argument("--work", type=Path, default=work, metavar="FOLDER", help=text)
        if name in grids.PAPER_FIGURES:
            one.add_argument("--protocol", choices=("paper", "authors", "both"), default="both")
        if name == "distance":
            text = "instances that stand for the population"
            one.add_argument("--population", type=int, default=20_000, metavar="N", help=text)
    given = parser.parse_args(arguments)
    if given.resamples is not None:
        # Another study must not meet the journal of the plain one.
        given.work /= f"resamples={given.resamples}"
    tables.timed(given.command, lambda: COMMANDS[given.command](given))


if __name__ == "__main__":
    main()
