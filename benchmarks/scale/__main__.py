"""How do time and memory of a test grow? Tables against this machine's limits, and figures as CSV.

python -m benchmarks.scale                      # all of it, with 10 million rows: half an hour
python -m benchmarks.scale --most-rows 100000   # a look
"""

import argparse
import csv
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale.data import made
from benchmarks.scale.limits import batches, machine
from benchmarks.tables import Target, at_least, at_most, print_table, print_targets, print_title

ROWS = [10**3, 10**4, 10**5, 10**6, 10**7]
CLASSES = [10, 100, 1000, 3485]
MEMBERS = [2, 5, 10, 20, 50, 100]
#: What the tables of rows, classes and members show.
COLUMNS = [
    *("n", "m", "k", "measure", "null", "engine", "threads", "n_resamples", "evaluations"),
    *("seconds", "processor", "private", "p", "statistic"),
]
PAPER = {"measure": "ece_conf", "null": "paper", "n_resamples": 100}


def measured(folder: Path, **cell: Any) -> dict[str, Any]:
    """The figures of one test, run in a process of its own."""
    cell = {"engine": "local", "threads": 1, "folder": str(folder), **PAPER, **cell}
    command = [sys.executable, "-m", "benchmarks.scale.cell", json.dumps(cell)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return {**cell, **json.loads(done.stdout.splitlines()[-1])}


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Slope of log time against log size over the larger half of the sizes."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(seconds[half:]), 1)[0])


def shown(cells: list[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """The columns of a table, in few digits."""
    return [
        {
            name: f"{c[name]:.3g}" if isinstance(c[name], float) else c[name]
            for name in names
            if name in c
        }
        for c in cells
    ]


def rows(work: Path, most: int) -> tuple[list[dict[str, Any]], list[Target]]:
    """N from a thousand to ten million at M = K = 10, one and two threads, and Dask beside them."""
    print_title("Rows: the paper's test, ece_conf, D = 100, M = K = 10, float32")
    found: list[dict[str, Any]] = []
    for n in [n for n in ROWS if n <= most]:
        folder = made(work, n, 10, 10)
        for threads in (1, 2):
            found.append({"n": n, **measured(folder, threads=threads)})
            _line(found[-1])
        if n >= 10**6:
            found.append({"n": n, **measured(folder, engine="dask", threads=2)})
            _line(found[-1])
        if n == 10**7:
            shutil.rmtree(folder)
    one = [cell for cell in found if cell["threads"] == 1]
    grown = exponent([c["n"] for c in one], [c["seconds"] for c in one])
    print(f"seconds grow as N^{grown:.2f}, one thread")
    targets = []
    largest = {
        (c["engine"], c["threads"]): c for c in found if c["n"] == max(x["n"] for x in found)
    }
    local = largest["local", 2]
    if most >= 10**7:
        targets += [
            at_most("10^7 rows, two threads", local["seconds"], 120, " s"),
            at_most("private memory beyond the input", local["private"], 0.3, " x input"),
        ]
    targets.append(
        at_least("two threads against one", largest["local", 1]["seconds"] / local["seconds"], 1.7)
    )
    if ("dask", 2) in largest:
        dask = largest["dask", 2]
        targets.append(
            at_least("dask against local, two each", local["seconds"] / dask["seconds"], 0.8)
        )
        same = dask["statistic"] == local["statistic"] and dask["p"] == local["p"]
        targets.append(Target("dask and local give the same bits", str(same), same))
    return found, targets


def classes(work: Path) -> tuple[list[dict[str, Any]], list[Target]]:
    """K from 10 to 3,485 at the paper's Proteins' N."""
    print_title("Classes: ece_cwise, N = 5,088, M = 10, two threads")
    found: list[dict[str, Any]] = []
    for k in CLASSES:
        folder = made(work, 5088, 10, k)
        common = {"measure": "ece_cwise", "threads": 2}
        refit = {**common, "null": "refit", "n_resamples": 99}
        for how in (common, refit):
            found.append({"n": 5088, "k": k, **measured(folder, **how)})
            _line(found[-1])
    paper, refit = found[-2:]
    targets = [
        at_most("N = 5,088, K = 3,485, ece_cwise, paper, D = 100", paper["seconds"], 60, " s"),
        at_most("the same, refit, D = 99", refit["seconds"] / 60, 30, " min"),
    ]
    return found, targets


def members(work: Path, most: int) -> tuple[list[dict[str, Any]], list[Target]]:
    """M from 2 to 100."""
    n = min(most, 300_000)
    print_title(f"Members: ece_conf, paper, D = 100, N = {n:,}, K = 10, two threads")
    found = []
    for m in MEMBERS:
        folder = made(work, n, m, 10)
        found.append({"n": n, "m": m, **measured(folder, threads=2)})
        _line(found[-1])
        shutil.rmtree(folder)
    grown = exponent([c["m"] for c in found], [c["seconds"] for c in found])
    print(f"seconds grow as M^{grown:.2f}")
    return found, []


def _line(cell: dict[str, Any]) -> None:
    size = ", ".join(f"{name.upper()} = {cell[name]:,}" for name in ("n", "m", "k") if name in cell)
    private = f", private memory {cell['private']:.2f} x input" if "private" in cell else ""
    print(
        f"{size}: {cell['engine']}, {cell['threads']} thread(s) or workers, {cell['null']}: "
        f"{cell['seconds']:.2f} s, {cell['evaluations']:,} evaluations, p = {cell['p']:.3f}{private}",
        flush=True,
    )


def write(path: Path, cells: list[dict[str, Any]]) -> None:
    """All figures of a section."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = [name for name in dict.fromkeys(name for c in cells for name in c) if name != "folder"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(cells)


def main() -> None:
    """Run the sections, print targets, and write the figures if they are wanted."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = ("limits", "rows", "classes", "members")
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(names))
    parser.add_argument("--most-rows", type=int, default=10**7)
    parser.add_argument("--out", type=Path, help="folder for the figures as CSV")
    given = parser.parse_args()
    unknown = set(given.sections) - set(names)
    if unknown:
        parser.error(f"unknown {', '.join(sorted(unknown))}; the sections are {', '.join(names)}")
    wanted = given.sections or names
    targets: list[Target] = []
    with tempfile.TemporaryDirectory(prefix="hullcal-scale-") as name:
        work = Path(name)
        made(work, 300_000, 10, 10).rename(work / "warm")
        tables = {
            "limits": lambda: batches(machine()),
            "rows": lambda: rows(work, given.most_rows),
            "classes": lambda: classes(work),
            "members": lambda: members(work, given.most_rows),
        }
        for section in [name for name in names if name in wanted]:
            cells, own = tables[section]()
            targets += own
            if given.out is not None:
                columns = list(cells[0]) if section == "limits" else COLUMNS
                write(given.out / f"{section}.csv", shown(cells, columns))
    print_table(["targets", ""], [])
    print_targets(targets)


if __name__ == "__main__":
    main()
