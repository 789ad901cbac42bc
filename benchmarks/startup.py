"""How long until the first result: imports, the first call ever, and the first call of a process?"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import hullcal
from benchmarks.tables import Target, at_most, print_table, print_targets, print_title

PROCESSES = 9
#: What `import hullcal` must leave alone until it is needed.
HEAVY = ("numba", "scipy", "matplotlib", "sklearn", "pandas", "torch")

_MODULES = "import sys, hullcal; print(*sorted({name.split('.')[0] for name in sys.modules}))"
_CALL = """
import time
start = time.perf_counter()
import numpy as np
import hullcal as hc
imported, busy = time.perf_counter(), time.process_time()
rng = np.random.default_rng(0)
members = rng.dirichlet(np.ones(10), size=(100, 10))
labels = rng.integers(10, size=100)
result = hc.calibration_test(members, labels, n_resamples=99, rng=0)
first, busy = time.perf_counter(), time.process_time() - busy
hc.calibration_test(members, labels, n_resamples=99, rng=0)
print(imported - start, first - imported, busy, time.perf_counter() - first)
"""


@dataclass(frozen=True)
class Call:
    """Seconds of a fresh process: imports, its first test, the same test again, and all of it.

    `busy` is the processor time of the first test, which is what an idle machine would take.
    """

    imports: float
    first: float
    busy: float
    again: float
    process: float


def python(source: str, **environment: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", source],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def import_seconds(what: str) -> float:
    """Wall-clock time of an interpreter that imports and ends."""
    start = time.perf_counter()
    python(f"import {what}")
    return time.perf_counter() - start


def import_times() -> tuple[float, float]:
    """Median times of both imports, taken in turn so that a busy moment hits both."""
    plain, ours = [], []
    import_seconds("numpy, hullcal")
    for _ in range(PROCESSES):
        plain.append(import_seconds("numpy"))
        ours.append(import_seconds("numpy, hullcal"))
    return statistics.median(plain), statistics.median(ours)


def first_call(**environment: str) -> Call:
    """A default test in a fresh process."""
    start = time.perf_counter()
    printed = python(_CALL, **environment)
    process = time.perf_counter() - start
    return Call(*map(float, printed.split()), process)


def nowhere_to_cache(folder: Path) -> dict[str, str]:
    """An environment in which no folder can hold compiled code, not even for an administrator.

    A file stands where each folder would be: in place of the cache directory, of the user's own,
    and of `__pycache__` in every folder of a copy of the package.
    """
    package = folder / "hullcal"
    source = Path(hullcal.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    for room in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (room / "__pycache__").touch()
    blocked = folder / "blocked"
    blocked.touch()
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return {
        "PYTHONPATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(blocked),
        "XDG_CACHE_HOME": str(blocked),
        "HOME": str(blocked),
    }


def print_imports() -> list[Target]:
    """Import times and the modules that come along."""
    plain, ours = import_times()
    loaded = set(python(_MODULES).split())
    heavy = sorted(loaded & set(HEAVY))
    print_table(
        ["a fresh interpreter", "median s"],
        [
            ["import numpy", f"{plain:.3f}"],
            ["import numpy, hullcal", f"{ours:.3f}"],
            ["difference", f"{ours - plain:.3f}"],
        ],
        f"Import, {PROCESSES} processes each",
    )
    return [
        at_most("import hullcal adds to import numpy", ours - plain, 0.15, " s"),
        Target(
            f"import hullcal loads none of {', '.join(HEAVY)}",
            ", ".join(heavy) or "none",
            not heavy,
        ),
    ]


def print_calls() -> list[Target]:
    """The first test of a process, with an empty cache, a filled one, and none."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cache = folder / "cache"
        empty = first_call(NUMBA_CACHE_DIR=str(cache))
        filled = min(
            (first_call(NUMBA_CACHE_DIR=str(cache)) for _ in range(3)), key=lambda call: call.first
        )
        nowhere = first_call(**nowhere_to_cache(folder / "copy"))
        kept = sum(1 for _ in cache.rglob("*.nbc"))
        # Should this one find a place after all, the check would prove nothing.
        kept_nowhere = sum(1 for _ in (folder / "copy").rglob("*.nbc"))
    calls = {
        "empty cache": empty,
        "second process, same cache": filled,
        "nowhere to keep compiled code": nowhere,
    }
    print_table(
        ["process", "imports s", "first test s", "processor s", "again s", "whole process s"],
        [
            [
                *(label, f"{call.imports:.2f}", f"{call.first:.2f}", f"{call.busy:.2f}"),
                *(f"{call.again:.3f}", f"{call.process:.2f}"),
            ]
            for label, call in calls.items()
        ],
        "calibration_test with its defaults (N=100, M=K=10, D=99)",
    )
    return [
        at_most("first call on a machine that has never compiled", empty.first, 10, " s"),
        at_most("first call of the second process", filled.first, 1.5, " s"),
        Target("the second process finds compiled code", f"{kept} functions kept", kept > 0),
        Target(
            "a cache that cannot be written is no error",
            f"{nowhere.first:.1f} s, {kept_nowhere} functions kept",
            kept_nowhere == 0,
        ),
    ]


def run() -> list[Target]:
    """Print import times, then first calls."""
    print_title("Startup: imports, the first call ever, the first call of a process")
    targets = print_imports() + print_calls()
    print_targets(targets)
    return targets
