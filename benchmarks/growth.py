"""How does the cost grow with rows, members, classes and resamples, and how much memory does it take?"""

from itertools import product
from pathlib import Path

from experiments import named

import hullcal as hc
from benchmarks.measuring import (
    Set,
    Target,
    at_most,
    best_seconds,
    exponent,
    plain,
    print_table,
    print_title,
)
from benchmarks.scale import memory

MEASURES = ("ece_conf", "ece_cwise", "hl_cwise", "skce_ul")
#: Evaluations of a search: fewer than in a test, since all cost the same and the sizes are large.
BUDGET = 100
#: Sizes along each axis, the others staying put: fixed costs are small already at the first.
SIZES = {"N": (1000, 2000, 4000, 8000), "M": (10, 20, 40, 80), "K": (20, 40, 80, 160)}
RESAMPLES = {"paper": (2000, 4000, 8000, 16000), "refit": (50, 100, 200, 400)}
#: Resamples where rows or classes grow.
FEW = {"paper": 40, "refit": 4}
PAIR_ROWS = (500, 1000, 2000, 4000)
MEMORY_ROWS = 5000


def seconds_of(measure: str, null: str, data: Set, n_resamples: int) -> float:
    """Time of one test."""
    test = hc.simulation.Test.named(f"{named(measure, null)}:pairwise:{BUDGET}")
    options = {"n_resamples": n_resamples, "alpha": 0.5, "rng": 0}
    return best_seconds(lambda: test.run(*data, **options), at_least=0.3, fewest=3)


def grow(measure: str, null: str, axis: str) -> tuple[tuple[int, ...], list[float]]:
    """Sizes along one axis, and times of a test."""
    sizes = RESAMPLES[null] if axis == "D" else SIZES[axis]
    sets = {
        "N": lambda n: (plain(0, n), FEW[null]),
        "M": lambda m: (plain(0, 500, n_members=m), FEW[null]),
        "K": lambda k: (plain(0, 500, n_classes=k), FEW[null]),
        "D": lambda d: (plain(0, 100), d),
    }
    seconds_of(measure, null, *sets[axis](sizes[0]))
    return sizes, [seconds_of(measure, null, *sets[axis](size)) for size in sizes]


def print_growth() -> list[Target]:
    """Exponents of both tests in N, M, K and D."""
    rows, targets = [], []
    for measure in MEASURES:
        slopes = {}
        for null, axis in product(("paper", "refit"), "NMKD"):
            sizes, times = grow(measure, null, axis)
            slope = slopes[f"{null}, {axis}"] = exponent(sizes, times)
            ends = (f"{sizes[0]:,} to {sizes[-1]:,}", *(f"{1e3 * times[i]:,.1f}" for i in (0, -1)))
            rows.append([measure, null, axis, *ends, f"{slope:.3f}"])
        worst = max(slopes, key=lambda name: slopes[name])
        targets.append(at_most(f"exponents of {measure} (largest: {worst})", slopes[worst], 1.1))
    print_table(
        ["measure", "null", "axis", "sizes", "first ms", "last ms", "exponent"],
        rows,
        f"Time of a test with a search of {BUDGET} evaluations; "
        "N grows at M=K=10, M at N=500 and K=10, K at N=500 and M=10 "
        f"(D={FEW['paper']} paper, {FEW['refit']} refit), D at N=100 and M=K=10",
    )
    return targets


def print_pairs() -> list[Target]:
    """Time of one evaluation of SKCE over all pairs, and its memory beside an N x N array."""
    g = hc.SKCE(estimator="uq")
    times = []
    for n in PAIR_ROWS:
        probs, labels = plain(0, n, n_members=1)
        g(probs[:, 0], labels)
        times.append(best_seconds(lambda p=probs[:, 0], y=labels: g(p, y), at_least=0.2))
    slope = exponent(PAIR_ROWS, times)
    print_table(
        ["rows", *(f"{n:,}" for n in PAIR_ROWS), "exponent"],
        [["ms per evaluation", *(f"{1e3 * t:.2f}" for t in times), f"{slope:.3f}"]],
        "skce_uq: one evaluation, K=10",
    )
    probs, labels = plain(0, MEMORY_ROWS)
    search = hc.minimizers.Pairwise(max_evaluations=3)
    before, whole = memory("VmRSS"), MEMORY_ROWS**2 * 8
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    hc.minimize(probs, labels, measure="skce_uq", minimizer=search, rng=0)
    most = memory("VmHWM") - before
    return [
        at_most("exponent in N of one evaluation, skce_uq", slope, 2.1),
        at_most(f"skce_uq, N={MEMORY_ROWS:,}: peak memory over an NxN array", most / whole, 0.2),
    ]


def run() -> list[Target]:
    """Print exponents, then the memory of SKCE over all pairs."""
    print_title("Growth: fitted exponents of time, and memory over all pairs")
    return print_growth() + print_pairs()
