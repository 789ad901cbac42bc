"""What each command runs, prints and draws."""

import argparse
from collections.abc import Callable
from typing import Any

from experiments.type_errors import grids, null_commands, paper_figures, tables
from experiments.type_errors.running import Rows, affordable, print_estimate, rates
from experiments.type_errors.tables import RATE_COLUMNS, interval, setting

#: Levels of the comparison of departures: the smallest of the paper's twelve, and a middling one.
_LEVELS = (0.05, 0.21)


def scenarios(options: argparse.Namespace) -> None:
    """Figure 1, left: the three scenarios for K=3, M=10 in the triangle."""
    drawn, instance = paper_figures.scenario_points()
    rows = paper_figures.scenario_rows(drawn, instance)
    columns = ("scenario", "point", "class 0", "class 1", "class 2")
    tables.show(rows, columns, title=f"Instance {instance} of {len(drawn['S1'].labels)}")
    tables.write(rows, options.out / "scenarios.csv", columns)
    paper_figures.draw_scenarios(drawn, instance, options.out / "scenarios.svg")


def paper_figure(options: argparse.Namespace) -> None:
    """Errors against the level: Figure 1, or one of the supplement (u=.1, M=100, K=100)."""
    folder = options.work / options.command
    sizes = (options.resamples or 100, options.minimizer)
    parts = []
    for protocol in ("paper", "authors") if options.protocol == "both" else (options.protocol,):
        wanted = options.datasets or 1000
        part = grids.paper_figure(options.command, protocol, wanted, *sizes)
        if options.datasets is None:
            wanted = affordable(wanted, part, folder, options.jobs, options.minutes)
        parts.append(part.but(n_datasets=wanted))
    rows = rates(parts, folder, options.jobs)
    for part in parts:
        some = [row for row in rows if row["part"] == part.name]
        title = f"{options.command}, protocol of the {part.name}, {part.grid.n_datasets} data sets"
        _show_by_level(some, title)
    name = options.command + ("" if options.protocol == "both" else f"_{options.protocol}")
    tables.write(rows, options.out / f"{name}.csv")
    paper_figures.draw_errors(rows, options.out / f"{name}.svg")


def _show_by_level(rows: Rows, title: str) -> None:
    for name in grids.SCENARIOS:
        lines: dict[float, dict[str, Any]] = {}
        for row in rows:
            if row["scenario"] == name:
                line = lines.setdefault(row["alpha"], {"alpha": row["alpha"]})
                line[setting(row)] = interval(row)
        kind = "Type I" if name == "S1" else "Type II"
        tables.show(
            list(lines.values()),
            ("alpha", *grids.SETTINGS),
            title=f"{title}: {kind} error in {name}",
        )


def switches(options: argparse.Namespace) -> None:
    """Each departure of the authors' scripts alone, against the paper's text."""
    parts = grids.switches(options.datasets or 1000, options.resamples or 100, options.minimizer)
    folder = options.work / "switches"
    print_estimate(parts, folder, options.jobs)
    found = [row for row in rates(parts, folder, options.jobs) if row["alpha"] in _LEVELS]
    names = ("scenario", "measure", "n_bins", "alpha")
    plain = {
        tuple(row[name] for name in names): row for row in found if row["part"] == parts[0].name
    }
    rows = []
    for row in found:
        if row["part"] != parts[0].name:
            before = plain[tuple(row[name] for name in names)]
            change = tables.difference(row, before)
            rows.append(row | change | {"error_paper": before["error"]})
    rows.sort(key=lambda row: row["alpha"])
    lines = [
        row
        | {
            "setting": setting(row),
            "text": f"{row['error_paper']:.3f}",
            "with it": interval(row),
            "change, 95 %": f"{row['change']:+.3f} "
            f"({row['change_lower']:+.3f}, {row['change_upper']:+.3f})",
            "": "*" if row["change_lower"] > 0 or row["change_upper"] < 0 else "",
        }
        for row in rows
    ]
    columns = (
        "part",
        "scenario",
        "setting",
        "alpha",
        "kind",
        "text",
        "with it",
        "change, 95 %",
        "",
    )
    tables.show(lines, columns, title="Error rates by departure (* the interval leaves out 0)")
    extra = ("error_paper", "change", "change_lower", "change_upper")
    tables.write(rows, options.out / "switches.csv", (*RATE_COLUMNS, *extra))
    paper_figures.draw_switches(rows, options.out / "switches.svg")


COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "scenarios": scenarios,
    **dict.fromkeys(grids.PAPER_FIGURES, paper_figure),
    "switches": switches,
    "levels": null_commands.levels,
    "nulls": null_commands.nulls,
    "distance": null_commands.distance,
    "classes": null_commands.classes,
    "budget": null_commands.budget,
    "candidates": null_commands.candidates,
}
