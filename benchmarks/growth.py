"""How does the cost grow with rows, classes and resamples, and how much memory does it take?"""

import itertools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import hullcal as hc
from benchmarks.sets import plain
from benchmarks.tables import Target, at_most, print_table, print_targets, print_title
from benchmarks.timing import best_seconds

MEASURES = ("ece_conf", "ece_cwise", "hl_cwise", "skce_ul")
#: Evaluations of a search: fewer than in a test, since all cost the same and the sizes are large.
BUDGET = 100
#: Sizes along each axis, the others staying put: fixed costs are small already at the first.
ROWS = (1000, 2000, 4000, 8000)
CLASSES = (20, 40, 80, 160)
RESAMPLES = {"paper": (2000, 4000, 8000, 16000), "refit": (50, 100, 200, 400)}
#: Resamples where rows or classes grow.
FEW = {"paper": 40, "refit": 4}
PAIR_ROWS = (500, 1000, 2000, 4000)
MEMORY_ROWS = 5000

_MEMORY = """
import resource, sys, tracemalloc
import numpy as np
import hullcal as hc

def peak():
    try:
        status = open("/proc/self/status").read()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except OSError:
        scale = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale

def forget_peak():
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass

rng = np.random.default_rng(0)
def call(n):
    probs = rng.dirichlet(np.ones(10), size=(n, 10))
    labels = rng.integers(10, size=n)
    search = hc.minimizers.Pairwise(max_evaluations=3)
    tracemalloc.start()
    forget_peak()
    before = peak()
    hc.minimize(probs, labels, measure="skce_uq", minimizer=search, rng=0)
    found = peak() - before, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found

call(50)
print(*call(ROWS))
"""


def exponent(sizes: tuple[int, ...], times: list[float]) -> float:
    """Slope of log time against log size."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def test_call(measure: str, null: str, data: Any, n_resamples: int) -> Callable[[], Any]:
    """One test as a call without arguments."""
    search = hc.minimizers.Pairwise(max_evaluations=BUDGET)
    return lambda: hc.calibration_test(
        *data,
        measure=measure,
        null=null,
        minimizer=search,
        n_resamples=n_resamples,
        alpha=0.5,
        rng=0,
    )


def grow(measure: str, null: str, axis: str) -> tuple[tuple[int, ...], list[float]]:
    """Times of a test along one axis."""
    if axis == "N":
        sizes = ROWS
        calls = [test_call(measure, null, plain(0, n), FEW[null]) for n in sizes]
    elif axis == "K":
        sizes = CLASSES
        sets = [plain(0, 500, n_classes=k) for k in sizes]
        calls = [test_call(measure, null, data, FEW[null]) for data in sets]
    else:
        sizes = RESAMPLES[null]
        calls = [test_call(measure, null, plain(0, 100), d) for d in sizes]
    calls[0]()
    return sizes, [best_seconds(call, at_least=0.3, fewest=3) for call in calls]


def print_growth() -> list[Target]:
    """Exponents of both tests in N, K and D."""
    rows, targets = [], []
    for measure in MEASURES:
        slopes = {}
        for null, axis in itertools.product(("paper", "refit"), "NKD"):
            sizes, times = grow(measure, null, axis)
            slopes[f"{null}, {axis}"] = exponent(sizes, times)
            rows.append(
                [
                    *(measure, null, axis, f"{sizes[0]:,} to {sizes[-1]:,}"),
                    *(f"{1e3 * times[0]:,.1f}", f"{1e3 * times[-1]:,.1f}"),
                    f"{slopes[f'{null}, {axis}']:.3f}",
                ]
            )
        worst = max(slopes, key=lambda name: slopes[name])
        targets.append(at_most(f"exponents of {measure} (largest: {worst})", slopes[worst], 1.1))
    print_table(
        ["measure", "null", "axis", "sizes", "first ms", "last ms", "exponent"],
        rows,
        f"Time of a test with a search of {BUDGET} evaluations, M=10; "
        f"N grows at K=10, K at N=500 (D={FEW['paper']} paper, {FEW['refit']} refit), D at N=100, K=10",
    )
    return targets


def print_pairs() -> list[Target]:
    """Time of one evaluation of SKCE over all pairs, and its memory."""
    g = hc.SKCE(estimator="uq")
    times = []
    for n in PAIR_ROWS:
        probs, labels = plain(0, n, n_members=1)
        member = probs[:, 0]
        g(member, labels)
        times.append(
            best_seconds(lambda p=member, y=labels: g(p, y), at_least=0.2)  # type: ignore[misc]
        )
    slope = exponent(PAIR_ROWS, times)
    print_table(
        ["rows", *(f"{n:,}" for n in PAIR_ROWS), "exponent"],
        [["ms per evaluation", *(f"{1e3 * t:.2f}" for t in times), f"{slope:.3f}"]],
        "skce_uq: one evaluation, K=10",
    )
    resident, traced = peak_memory()
    whole = MEMORY_ROWS**2 * 8
    megabytes = 2**20
    figure = (
        f"{resident / megabytes:.1f} MB by the system, {traced / megabytes:.1f} MB by tracemalloc, "
        f"against {whole / megabytes:.0f} MB"
    )
    return [
        at_most("exponent in N of one evaluation, skce_uq", slope, 2.1),
        Target(
            f"minimize with skce_uq at N={MEMORY_ROWS:,}: peak memory added < 1/5 of an NxN array",
            figure,
            max(resident, traced) < whole / 5,
        ),
    ]


def peak_memory() -> tuple[int, int]:
    """Bytes added at the peak of a search in a fresh process: of the process, and of Python's."""
    # Compiled code allocates behind tracemalloc's back, so the system is asked too.
    script = _MEMORY.replace("ROWS", str(MEMORY_ROWS))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    resident, traced = done.stdout.split()
    return int(resident), int(traced)


def run() -> list[Target]:
    """Print exponents, then the memory of SKCE over all pairs."""
    print_title("Growth: fitted exponents of time, and memory over all pairs")
    targets = print_growth() + print_pairs()
    print_targets(targets)
    return targets
