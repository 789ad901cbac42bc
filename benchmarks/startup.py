"""How long until the first result: imports, the first call ever, and the first call of a process?"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import hullcal
from benchmarks.measuring import Target, at_most, print_table, print_title

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


class Call(NamedTuple):
    """Seconds of a fresh process: imports, first test, its processor time, and the same test again."""

    imports: float
    first: float
    busy: float
    again: float


def python(source: str, **environment: str) -> str:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", source]
    env = {**os.environ, **environment}
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout


def first_call(**environment: str) -> Call:
    """A default test in a fresh process."""
    return Call(*map(float, python(_CALL, **environment).split()))


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
    return {
        "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]),
        "PYTHONDONTWRITEBYTECODE": "1",
        **dict.fromkeys(("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"), str(blocked)),
    }


def print_imports() -> list[Target]:
    """Median import times, taken in turn so that a busy moment hits both, and what comes along."""
    times: dict[str, list[float]] = {"numpy": [], "numpy, hullcal": []}
    for _ in range(PROCESSES):
        for what, taken in times.items():
            start = time.perf_counter()
            python(f"import {what}")
            taken.append(time.perf_counter() - start)
    medians = {what: statistics.median(taken) for what, taken in times.items()}
    rows = [[f"import {what}", f"{median:.3f}"] for what, median in medians.items()]
    print_table(["a fresh interpreter", "median s"], rows, f"Import, {PROCESSES} processes each")
    added = medians["numpy, hullcal"] - medians["numpy"]
    heavy = sorted(set(python(_MODULES).split()) & set(HEAVY))
    came = ", ".join(heavy) or "none"
    return [
        at_most("import hullcal adds to import numpy", added, 0.15, " s"),
        Target(f"import hullcal loads none of {', '.join(HEAVY)}", came, not heavy),
    ]


def print_calls() -> list[Target]:
    """The first test of a process, with an empty cache, a filled one, and none."""
    with tempfile.TemporaryDirectory() as name:
        cache, copy = Path(name) / "cache", Path(name) / "copy"
        empty = first_call(NUMBA_CACHE_DIR=str(cache))
        filled = min(first_call(NUMBA_CACHE_DIR=str(cache)) for _ in range(3))
        nowhere = first_call(**nowhere_to_cache(copy))
        # Should the last one find a place after all, the check would prove nothing.
        kept, kept_nowhere = (len(list(place.rglob("*.nbc"))) for place in (cache, copy))
    calls = {"empty cache": empty, "second process, same cache": filled, "no cache": nowhere}
    print_table(
        ["process", "imports s", "first test s", "processor s", "again s"],
        [[label, *(f"{taken:.3f}" for taken in call)] for label, call in calls.items()],
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
    return print_imports() + print_calls()
