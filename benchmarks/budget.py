"""What does a larger budget of the search buy inside a test? Power and level, by evaluations a start."""

from functools import partial

import numpy as np
from experiments.truth import Draw, alternative, heated

import hullcal as hc
from benchmarks.measuring import Target, print_table, print_title

N_RESAMPLES, ALPHA = 39, 0.05  # 2/40 is alpha exactly
MEASURES = ("ece_conf", "ece_cwise", "ece_cwise_smooth")
#: With fifty members one round takes a hundred evaluations, so that more begins at 250.
BUDGETS = (1, 15, 25, 50, 100, 250)


CASES = {
    "S1, N=100, M=10": partial(heated, n=100, temperature=1.0),
    **{
        f"S3 {amount}, N={n}, M={m}": partial(alternative, name="S3", n=n, strength=amount, m=m)
        for amount, n, m in (
            *((0.2, 100, 10), (0.35, 100, 10), (0.1, 1000, 10)),
            *((0.3, 100, 2), (0.3, 100, 5), (0.3, 100, 50)),
        )
    },
    **{
        f"{'member' if vertex else 'combination'} at temperature {t}, N={n}, M={m}": partial(
            heated, n=n, temperature=t, m=m, vertex=vertex
        )
        for vertex, t, n, m in (
            *((False, 1.4, 300, 10), (False, 0.7, 300, 10), (False, 1.2, 1000, 10)),
            *((True, 1.4, 300, 10), (True, 0.7, 300, 10), (True, 1.2, 1000, 10)),
            *((True, 1.4, 300, 2), (True, 1.4, 300, 5), (True, 0.7, 300, 50)),
        )
    },
}


def rate(draw: Draw, measure: str, budget: int, n_datasets: int) -> float:
    """Rejection rate of "the hull contains the truth": the same sets and seeds for every budget."""
    options = {"n_resamples": N_RESAMPLES, "alpha": ALPHA, "minimizer": f"steepest:{budget}"}
    tests = (
        hc.truth_test(
            *draw(np.random.default_rng([11, seed])), measure=measure, **options, rng=seed
        )
        for seed in range(n_datasets)
    )
    return float(np.mean([test.rejected for test in tests]))


def run(full: bool = False) -> list[Target]:
    """Print a table for each measure: cases down, budgets across."""
    n_datasets = 200 if full else 40
    print_title("Budget: power and level of a test by evaluations a start")
    print(
        f"truth_test, K=10, u=1, D={N_RESAMPLES}, alpha={ALPHA}, {n_datasets} sets a cell "
        f"(standard error at most {0.5 / n_datasets**0.5:.2f}); S1 is the level"
    )
    for measure in MEASURES:
        rows = [
            [name, *(f"{rate(draw, measure, b, n_datasets):.2f}" for b in BUDGETS)]
            for name, draw in CASES.items()
        ]
        print_table(["case", *map(str, BUDGETS)], rows, measure)
    return []
