"""How long until the first result: imports, the first call ever, and the first call of a process?"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

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
    """The first test of a process, with an empty cache and with a filled one."""
    with tempfile.TemporaryDirectory() as cache:
        empty = first_call(NUMBA_CACHE_DIR=cache)
        filled = min(first_call(NUMBA_CACHE_DIR=cache) for _ in range(3))
        kept = len(list(Path(cache).rglob("*.nbc")))
    calls = {"empty cache": empty, "second process, same cache": filled}
    print_table(
        ["process", "imports s", "first test s", "processor s", "again s"],
        [[label, *(f"{taken:.3f}" for taken in call)] for label, call in calls.items()],
        "calibration_test with its defaults (N=100, M=K=10, D=99)",
    )
    return [
        at_most("first call on a machine that has never compiled", empty.first, 10, " s"),
        at_most("first call of the second process", filled.first, 1.5, " s"),
        Target("the second process finds compiled code", f"{kept} functions kept", kept > 0),
    ]


def run() -> list[Target]:
    """Print import times, then first calls."""
    print_title("Startup: imports, the first call ever, the first call of a process")
    return print_imports() + print_calls()
