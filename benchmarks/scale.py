"""How do time and memory of a test grow? Tables, and figures as CSV.

    python -m benchmarks.scale                      # all of it, with 10 million rows: half an hour
    python -m benchmarks.scale --most-rows 100000   # a look

Each test runs in a process of its own.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import SUPPRESS
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from experiments import command_line, named, tables

import hullcal as hc
from benchmarks.measuring import (
    Array,
    Set,
    Target,
    at_least,
    at_most,
    exponent,
    print_targets,
    print_title,
)

ROWS = [10**3, 10**4, 10**5, 10**6, 10**7]
CLASSES = [10, 100, 1000, 3485]
MEMBERS = [2, 5, 10, 20, 50, 100]
#: Rows made at a time, rows of a shard, and rows on which everything is compiled before the clock runs.
CHUNK, SHARD, WARM = 20_000, 2**20, 120_000
COLUMNS = (
    *("n", "m", "k", "measure", "null", "engine", "threads", "n_resamples", "evaluations"),
    *("seconds", "processor", "private", "p", "statistic"),
)
Cell = dict[str, Any]


def written(path: Path, shape: tuple[int, int, int], rng: np.random.Generator) -> Array:
    """Predictions (float32, uniform) as a file, written a few rows at a time; labels of their mean."""
    probs = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    labels = np.empty(len(probs), dtype=np.int32)
    rows = max(1, min(CHUNK, 10**7 // probs[0].size))
    for begin in range(0, len(probs), rows):
        part = probs[begin : begin + rows]
        rng.standard_exponential(out=part, dtype=np.float32)
        part /= part.sum(axis=2, keepdims=True, dtype=np.float64).astype(np.float32)
        mean = part.mean(axis=1, dtype=np.float64)
        labels[begin : begin + rows] = hc.simulation.draw_labels(mean, rng)
    probs.flush()
    return labels


def made(folder: Path, n_samples: int, n_members: int, n_classes: int) -> Path:
    """A folder of shards probs-*.npy and labels-*.npy."""
    target = folder / f"{n_samples}x{n_members}x{n_classes}"
    if target.is_dir():
        return target
    target.mkdir()
    rng = np.random.default_rng(n_samples + n_members + n_classes)
    for shard, first in enumerate(range(0, n_samples, SHARD)):
        shape = (min(SHARD, n_samples - first), n_members, n_classes)
        labels = written(target / f"probs-{shard:05d}.npy", shape, rng)
        np.save(target / f"labels-{shard:05d}.npy", labels)
    return target


def in_memory(folder: Path) -> Set:
    """All shards as one array, and the labels."""
    parts = [sorted(folder.glob(f"{name}-*.npy")) for name in ("probs", "labels")]
    probs, labels = (np.concatenate([np.load(path) for path in paths]) for paths in parts)
    return probs, labels


def memory(name: str) -> int:
    """A figure of this process, in bytes."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split(f"{name}:")[1].split()[0])


def run_cell(cell: Cell) -> Cell:
    """Time and private memory of one test, in this process."""
    folder = Path(cell["folder"])
    test = hc.simulation.Test.named(named(cell["measure"], cell["null"]))
    options = {"n_resamples": cell["n_resamples"], "rng": 0}
    few = {**options, "n_resamples": 20}
    if cell["engine"] == "dask":
        from distributed import Client, LocalCluster

        workers = {"n_workers": os.cpu_count(), "threads_per_worker": 1, "memory_limit": 0}
        with LocalCluster(**workers, dashboard_address=None) as cluster, Client(cluster) as client:
            test.run(folder.parent / "warm", None, engine=client, **few)
            start = time.perf_counter()
            result = test.run(folder, None, engine=client, **options)
            found: Cell = {"seconds": time.perf_counter() - start}
    else:
        probs, labels = in_memory(folder)
        test.run(probs[:WARM], labels[:WARM], **few)
        before = memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        start, busy = time.perf_counter(), time.process_time()
        result = test.run(probs, labels, n_jobs=cell["threads"], **options)
        found = {"seconds": time.perf_counter() - start, "processor": time.process_time() - busy}
        found["private"] = (memory("VmHWM") - before) / probs.nbytes
    found |= {"p": result.pvalue, "statistic": float.hex(result.statistic)}
    return found | {"evaluations": result.n_evaluations}


def measured(folder: Path, **cell: Any) -> Cell:
    """The figures of one test, run in a process of its own, and a line about it."""
    usual = {"engine": "local", "threads": 1, "measure": "ece_conf", "null": "paper"}
    cell = {**usual, "n_resamples": 100, "folder": str(folder), **cell}
    command = [sys.executable, "-m", "benchmarks.scale", "--cell", json.dumps(cell)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    cell |= json.loads(done.stdout.splitlines()[-1])
    size = ", ".join(f"{name.upper()} = {cell[name]:,}" for name in ("n", "m", "k") if name in cell)
    private = f", private memory {cell['private']:.2f} x input" if "private" in cell else ""
    print(
        f"{size}: {cell['engine']}, {cell['threads']} thread(s) or workers, {cell['null']}: "
        f"{cell['seconds']:.2f} s, {cell['evaluations']:,} evaluations, p = {cell['p']:.3f}{private}",
        flush=True,
    )
    return cell


def print_growth(cells: list[Cell], name: str) -> None:
    """The exponent over the larger half of the sizes."""
    half = cells[len(cells) // 2 :]
    grown = exponent([cell[name] for cell in half], [cell["seconds"] for cell in half])
    print(f"seconds grow as {name.upper()}^{grown:.2f}")


def rows(work: Path, most: int) -> tuple[list[Cell], list[Target]]:
    """N from a thousand to ten million at M = K = 10, one and two threads, and Dask beside them."""
    print_title("Rows: the paper's test, ece_conf, D = 100, M = K = 10, float32")
    found: list[Cell] = []
    for n in [n for n in ROWS if n <= most]:
        folder = made(work, n, 10, 10)
        last = {threads: measured(folder, n=n, threads=threads) for threads in (1, 2)}
        found += last.values()
        if n >= 10**6:
            found.append(measured(folder, n=n, engine="dask", threads=2))
    print_growth([cell for cell in found if cell["threads"] == 1], "n")
    one, two = last.values()
    targets = [at_least("two threads against one", one["seconds"] / two["seconds"], 1.7)]
    if found[-1]["engine"] == "dask":
        dask = found[-1]
        ratio = two["seconds"] / dask["seconds"]
        same = (dask["statistic"], dask["p"]) == (two["statistic"], two["p"])
        targets.append(at_least("dask against local, two each", ratio, 0.8))
        targets.append(Target("dask and local give the same bits", str(same), same))
    if most >= 10**7:
        targets.append(at_most("10^7 rows, two threads", two["seconds"], 120, " s"))
        targets.append(at_most("private memory beyond it", two["private"], 0.3, " x input"))
    return found, targets


def classes(work: Path, most: int) -> tuple[list[Cell], list[Target]]:
    """K from 10 to 3,485 at the paper's Proteins' N."""
    n = min(most, 5088)
    print_title(f"Classes: ece_cwise, N = {n:,}, M = 10, two threads")
    found: list[Cell] = []
    for k in CLASSES:
        folder = made(work, n, 10, k)
        common = {"n": n, "k": k, "measure": "ece_cwise", "threads": 2}
        found.append(measured(folder, **common))
        found.append(measured(folder, **common, null="refit", n_resamples=99))
    paper, refit = found[-2:]
    return found, [
        at_most(
            f"N = {n:,}, K = {CLASSES[-1]:,}, ece_cwise, paper, D = 100", paper["seconds"], 60, " s"
        ),
        at_most("the same, refit, D = 99", refit["seconds"] / 60, 30, " min"),
    ]


def members(work: Path, most: int) -> tuple[list[Cell], list[Target]]:
    """M from 2 to 100."""
    n = min(most, 300_000)
    print_title(f"Members: ece_conf, paper, D = 100, N = {n:,}, K = 10, two threads")
    found = []
    for m in MEMBERS:
        found.append(measured(made(work, n, m, 10), n=n, m=m, threads=2))
        shutil.rmtree(work / f"{n}x{m}x10")
    print_growth(found, "m")
    return found, []


SECTIONS = {"rows": rows, "classes": classes, "members": members}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the sections, print targets, and write the figures if they are wanted."""
    parser = command_line("benchmarks.scale", __doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument("--most-rows", type=int, default=10**7)
    parser.add_argument("--out", type=Path, help="folder for the figures as CSV")
    parser.add_argument("--cell", type=json.loads, help=SUPPRESS)
    given = parser.parse_args(arguments)
    if given.cell is not None:
        print(json.dumps(run_cell(given.cell)))
        return
    if unknown := set(given.sections) - set(SECTIONS):
        parser.error(f"unknown {', '.join(sorted(unknown))}; choose from {', '.join(SECTIONS)}")
    targets: list[Target] = []
    with tempfile.TemporaryDirectory(prefix="hullcal-scale-") as name:
        work = Path(name)
        made(work, min(given.most_rows, 300_000), 10, 10).rename(work / "warm")
        for section in given.sections or SECTIONS:
            cells, own = SECTIONS[section](work, given.most_rows)
            targets += own
            if given.out is not None:
                names = [name for name in COLUMNS if any(name in cell for cell in cells)]
                rows_of = [{name: cell.get(name, "") for name in names} for cell in cells]
                tables.write(rows_of, given.out / f"{section}.csv")
    print_title("Targets")
    print_targets(targets)


if __name__ == "__main__":
    main()
