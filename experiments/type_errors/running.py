"""Studies run with a journal each, and how long they will take."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from experiments.type_errors.grids import Part
from hullcal.simulation import run

Rows = list[dict[str, Any]]
#: Numbers of data sets to fall back on when those wanted would take too long.
_LADDER = (500, 300, 200, 100, 50, 30, 20, 15, 10, 5)


def rates(parts: list[Part], folder: Path, n_jobs: int) -> Rows:
    """Rates of all parts, each row with the name of its `part`; a finished part is read, not run."""
    rows: Rows = []
    for i, part in enumerate(parts):
        began = time.perf_counter()
        study = run(
            part.grid,
            folder=_place(part, folder),
            resume=True,
            n_jobs=n_jobs,
            progress=sys.stderr.isatty(),
        )
        rows += [{"part": part.name} | row for row in study.rates()]
        seconds = time.perf_counter() - began
        print(
            f"[{i + 1}/{len(parts)}] {part.name}: {part.grid.n_tests} tests of "
            f"{part.grid.n_datasets} data sets a cell, {in_words(seconds)}",
            flush=True,
        )
    return rows


def print_estimate(parts: list[Part], folder: Path, n_jobs: int) -> None:
    """Say how long the unfinished parts will take, from one data set of each kind."""
    left = [part for part in parts if not (_place(part, folder) / "manifest.json").exists()]
    if not left:
        return
    work, known = 0.0, {}
    for part in left:
        # Scenarios differ in how long a data set takes to draw, which is little beside its tests.
        but = ("scenario", "strength", "n_datasets")
        kind = repr({name: value for name, value in part.settings.items() if name not in but})
        if kind not in known:
            known[kind] = _seconds(part)
        work += known[kind] * len(part.grid.cells) * part.grid.n_datasets
    seconds = work / _processes(n_jobs)
    print(f"about {in_words(seconds)} to come ({len(known)} data sets were timed)", flush=True)


def affordable(wanted: int, part: Part, folder: Path, n_jobs: int, minutes: float) -> int:
    """The wanted number of data sets, or fewer if they would take too long; chosen once and kept.

    The part's first measure is timed on one data set: these searches differ little in their cost.
    """
    memory = folder / "data_sets.json"
    chosen = json.loads(memory.read_text()) if memory.exists() else {}
    if part.name not in chosen:
        each = _seconds(part.but(measure=part.settings["measure"][0]))
        tests = len(part.grid.cells) * len(part.grid.tests)
        print(f"{part.name}: {each:.3g} s for a data set, a measure and its search", flush=True)
        most = minutes * 60 * _processes(n_jobs) / (each * tests)
        fitting = [number for number in (wanted, *_LADDER) if number <= min(wanted, most)]
        chosen[part.name] = fitting[0] if fitting else min(wanted, _LADDER[-1])
        folder.mkdir(parents=True, exist_ok=True)
        memory.write_text(json.dumps(chosen))
    if chosen[part.name] < wanted:
        print(
            f"{part.name}: {chosen[part.name]} data sets, since {wanted} would take longer than "
            f"{minutes:g} minutes",
            flush=True,
        )
    return int(chosen[part.name])


def in_words(seconds: float) -> str:
    """A time for people.

    >>> in_words(4000)
    '1 h 6 min'
    """
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = int(seconds // 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def _place(part: Part, folder: Path) -> Path:
    """A folder for each number of data sets, so that a trial does not stand in a study's way."""
    return folder / f"{part.name.replace(', ', ' ').replace(' ', '-')}-R{part.grid.n_datasets}"


def _seconds(part: Part) -> float:
    """Time of one data set with all its tests, in the last scenario, once everything is compiled."""
    axes = ("scenario", "strength")
    last = {
        axis: part.settings[axis][-1]
        for axis in axes
        if isinstance(part.settings.get(axis), list | tuple)
    }
    one = part.but(**last, n_datasets=1)
    run(one.but(n_samples=10, n_members=2).grid)
    began = time.perf_counter()
    run(one.grid)
    return time.perf_counter() - began


def _processes(n_jobs: int) -> int:
    import joblib

    return int(joblib.effective_n_jobs(n_jobs))
