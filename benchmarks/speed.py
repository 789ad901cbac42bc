"""How many times faster is a test than the authors' own manner of running it?"""

import math

import numpy as np
import scipy
from experiments import named
from threadpoolctl import threadpool_limits

import hullcal as hc
from benchmarks import literal
from benchmarks.measuring import (
    Array,
    Target,
    at_least,
    best_seconds,
    print_table,
    print_title,
    s1,
    seconds,
)

N_SAMPLES, N_RESAMPLES, SPREAD = 100, 100, 0.01
#: Resamples of the literal refit test that are really run; the rest is extrapolated.
LITERAL_REFITS = 2
#: Least ratios of the literal paper's test to our paper's test and to our refit test.
BOUNDS = {
    "ece_conf": (2000, 150),
    "ece_cwise": (2000, 100),
    "hl_cwise": (800, 60),
    "skce_ul": (2000, 250),
}
NULLS = ("paper", "refit", "recentered", "stacked", "maximized")
Times = dict[str, float]


def ours(
    probs: Array, labels: Array, measure: str, null: str, minimizer: str = "steepest"
) -> float:
    """Seconds of our whole call, checks included, after compilation."""
    test = hc.simulation.Test.named(f"{named(measure, null)}:{minimizer}")

    def call() -> None:
        test.run(probs, labels, n_resamples=N_RESAMPLES, rng=0)

    call()
    return best_seconds(call, at_least=1.0, fewest=1)


def times_of(probs: Array, labels: Array, measure: str) -> Times:
    """Seconds of both sides: ours before and after the opponent, in case of a busy moment."""
    g, rng = literal.MEASURES[measure], np.random.default_rng(0)
    lean = literal.LEAN[measure]
    before = {null: ours(probs, labels, measure, null) for null in NULLS}
    lines_1_to_5 = best_seconds(lambda: literal.paper_null(probs, g, N_RESAMPLES, rng), fewest=3)
    line_7 = best_seconds(lambda: literal.minimise(probs, labels, g))
    lean_1_to_5 = best_seconds(lambda: literal.lean_paper_null(probs, lean, N_RESAMPLES, rng))
    lean_7 = best_seconds(lambda: literal.minimise(probs, labels, lean))
    some = seconds(lambda: literal.refit_null(probs, labels, g, LITERAL_REFITS, rng))
    pairwise = ours(probs, labels, measure, "refit", "pairwise")
    after = {null: ours(probs, labels, measure, null) for null in NULLS}
    return {
        "lines 1-5": lines_1_to_5,
        "COBYLA": line_7,
        "literal": lines_1_to_5 + line_7,
        "lean": lean_1_to_5 + lean_7,
        "literal refit": some * N_RESAMPLES / LITERAL_REFITS + line_7,
        "by pairwise": pairwise,
        **{null: min(before[null], after[null]) for null in NULLS},
    }


def fma_rate() -> float:
    """Multiplications with an addition that one core does in a second, by BLAS."""
    side = 1000
    a = np.random.default_rng(0).random((side, side))
    with threadpool_limits(1):
        return float(side**3 / best_seconds(lambda: a @ a))


def least_arithmetic(probs: Array, labels: Array, measure: str, null: str) -> float:
    """Multiplications with an addition that no program for this test could spare.

    A replicate of `paper` mixes all members in the rows that it drew, of which the share 1 - 1/e
    differ. An evaluation of a search adds a number for each row; what does not depend on labels may be
    shared between replicates.
    """
    if null == "paper":
        return N_RESAMPLES * probs.size * (1 - 1 / math.e)
    test = hc.simulation.Test.named(f"{named(measure, null)}:steepest")
    found = test.run(probs, labels, n_resamples=N_RESAMPLES, rng=0)
    return float(found.n_evaluations * len(labels))


def targets_of(measure: str, times: Times) -> list[Target]:
    """What the speed of a test must reach."""
    found = []
    if measure in BOUNDS:
        paper, refit = BOUNDS[measure]
        found = [
            at_least(f"paper's test, {measure}", times["literal"] / times["paper"], paper),
            at_least(f"refit test, {measure}", times["literal"] / times["refit"], refit),
        ]
    if measure.startswith("ece"):
        ratio = times["by pairwise"] / times["refit"]
        found.append(at_least(f"refit, pairwise / steepest, {measure}", ratio, 1.5))
    return found


def run() -> list[Target]:
    """Print seconds of the opponent, milliseconds of ours, and the ratios."""
    print_title("Speed: one test against the authors' manner of running it")
    probs, labels = s1(0, N_SAMPLES, SPREAD)
    print(
        f"S1, N={N_SAMPLES}, M=K=10, u={SPREAD}, D={N_RESAMPLES}, one thread, after compilation. The "
        f"literal refit test is extrapolated from {LITERAL_REFITS} of its resamples. SciPy's COBYLA "
        f"({scipy.__version__}) is itself Python from 1.16 on."
    )
    found = {measure: times_of(probs, labels, measure) for measure in literal.MEASURES}
    theirs = ("lines 1-5", "COBYLA", "literal", "literal refit")
    rows = [[m, *(f"{times[name]:.2f}" for name in theirs)] for m, times in found.items()]
    print_table(["measure, s", *theirs], rows, "The literal opponent")
    names = (*NULLS, "by pairwise")
    rows = [
        [m, *(f"{1e3 * times[name]:.2f}" for name in names)]
        + [f"{times['literal'] / times[null]:,.0f}" for null in ("paper", "refit")]
        + [f"{times['literal refit'] / times['refit']:,.0f}"]
        for m, times in found.items()
    ]
    ratios = ("literal/paper", "literal/refit", "refit/refit")
    print_table(["measure, ms", *names, *ratios], rows, "Ours, and ratios to the opponent")
    rate = fma_rate()
    rows = [
        [m, f"{times['lean']:.3f}", f"{times['lean'] / times['paper']:,.0f}"]
        + [
            f"{least_arithmetic(probs, labels, m, null) / rate / times[null]:.2%}"
            for null in ("paper", "refit")
        ]
        for m, times in found.items()
    ]
    print_table(
        ["measure", "lean, s", "lean/paper", "paper: of the limit", "refit: of the limit"],
        rows,
        "The opponent's lean form, and the share of our time that the arithmetic alone would take at "
        f"the {rate / 1e9:.1f} billion multiply-adds a second that BLAS reaches",
    )
    return [target for measure, times in found.items() for target in targets_of(measure, times)]
