"""How low does each search get, and how fast? COBYLA and CMA-ES are the opponents.

CMA-ES comes twice: with g in NumPy, which is what there is without hullcal, and with our measures,
which tells the two methods apart from the cost of an evaluation.
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import hullcal as hc
from benchmarks import literal
from benchmarks.measuring import Array, Set, Target, at_most, print_table, print_title, s1, seconds

SIZES = (100, 500, 1000, 5000)
SPREADS = (0.01, 0.03, 0.1, 0.3, 1.0)
MEASURES = ("ece_conf", "ece_cwise")
BUDGET = 10_000
SEARCHES = {
    "cobyla": hc.minimizers.Cobyla(),
    "steepest": hc.minimizers.Steepest(),
    **{f"pairwise {n:,}": hc.minimizers.Pairwise(max_evaluations=n) for n in (200, 1000, BUDGET)},
    "random 10,000": hc.minimizers.Random(max_evaluations=BUDGET),
}
CMA, CMA_NUMPY, OURS = "CMA-ES 10,000", "CMA-ES in NumPy", "pairwise 10,000"
NAMES = (*SEARCHES, CMA)
#: Evaluations after which CMA-ES in NumPy is stopped; its time grows in proportion to them.
NUMPY_BUDGET = 500
#: Values this close are one value, summed in another order.
ROUNDING = 1e-12


class Found(NamedTuple):
    """What a search reached on one set, and in how many seconds."""

    value: float
    seconds: float


#: What every search found, by number of rows and spread.
Cells = dict[tuple[int, float], dict[str, Found]]


def ours(data: Set, measure: str, name: str) -> Found:
    """One of our searches, called as a user would."""
    found: list[float] = []
    options = {"measure": measure, "minimizer": SEARCHES[name], "rng": 0}
    took = seconds(lambda: found.append(hc.minimize(*data, **options).value))
    return Found(found[0], took)


def cma_es(g: Callable[[Array], float], n_members: int, budget: int) -> Found:
    """CMA-ES on softmax weights, restarted with twice the population until the budget is spent."""
    import cma

    best = np.inf

    def value(point: Array) -> float:
        nonlocal best
        weights = np.exp(point - point.max())
        found = g(weights / weights.sum())
        best = min(best, found)
        return found

    def search() -> None:
        left, run, options = budget, 1, {"verbose": -9}
        while left > 0:
            options |= {"seed": run, "maxfevals": left}
            strategy = cma.CMAEvolutionStrategy(np.zeros(n_members), 1.0, options)
            while not strategy.stop():
                points = strategy.ask()
                strategy.tell(points, [value(point) for point in points])
            left -= strategy.result.evaluations
            options["popsize"] = 2 * strategy.popsize
            run += 1

    with warnings.catch_warnings():
        # It tells when a generation is flat, as a step function is now and then.
        warnings.simplefilter("ignore")
        took = seconds(search)
    return Found(float(best), took)


def compare(data: Set, measure: str) -> dict[str, Found]:
    """Every search on one set."""
    found = {name: ours(data, measure, name) for name in SEARCHES}
    probs, labels = data
    compiled, plain = hc.measures.resolve(measure), literal.MEASURES[measure]
    n_members = probs.shape[1]
    found[CMA] = cma_es(lambda w: compiled(literal.combine(probs, w), labels), n_members, BUDGET)
    slow = cma_es(lambda w: plain(literal.combine(probs, w), labels), n_members, NUMPY_BUDGET)
    found[CMA_NUMPY] = Found(slow.value, slow.seconds * BUDGET / NUMPY_BUDGET)
    return found


def time_ratio(cells: Cells, opponent: str) -> float:
    """Our time over an opponent's."""
    both = [sum(found[name].seconds for found in cells.values()) for name in (OURS, opponent)]
    return both[0] / both[1]


def print_values(cells: Cells, measure: str) -> None:
    """One line a set, then means and times."""
    rows = [
        [f"{n:,}", f"{u:g}", *(f"{found[name].value:.5f}" for name in NAMES)]
        for (n, u), found in cells.items()
    ]
    means = (np.mean([found[name].value for found in cells.values()]) for name in NAMES)
    rows.append(["mean value", "", *(f"{mean:.5f}" for mean in means)])
    for n in SIZES:
        own = [found for cell, found in cells.items() if cell[0] == n]
        times = (1e3 * np.mean([found[name].seconds for found in own]) for name in NAMES)
        rows.append([f"ms, N={n:,}", "", *(f"{time:,.1f}" for time in times)])
    print_table(["N", "u", *NAMES], rows, f"{measure}: value reached on {len(cells)} sets (S1)")


def targets_of(cells: Cells, measure: str) -> list[Target]:
    """Never worse than COBYLA, as low as CMA-ES, in a tenth of its time."""
    reached = {name: np.array([f[name].value for f in cells.values()]) for name in NAMES}
    worse = int((reached[OURS] > reached["cobyla"] + ROUNDING).sum())
    means = reached[OURS].mean() / reached[CMA].mean()
    times = time_ratio(cells, CMA_NUMPY)
    return [
        at_most(f"{measure}: sets where {OURS} is worse than one COBYLA start", worse, 0),
        at_most(f"{measure}: mean of {OURS} over that of {CMA}", means, 1),
        at_most(f"{measure}: time of {OURS} over that of {CMA_NUMPY}", times, 0.1),
    ]


def run() -> list[Target]:
    """Print a table of values and times for each measure."""
    print_title("Search: value reached and time taken, M=K=10, one thread")
    targets = []
    grid = [(n, u) for n in SIZES for u in SPREADS]
    sets = {(n, u): s1(seed, n, u) for seed, (n, u) in enumerate(grid)}
    for measure in MEASURES:
        for name in SEARCHES:
            ours(s1(0, 100, 0.1, n_members=3), measure, name)  # compile before the clock runs
        cells = {cell: compare(data, measure) for cell, data in sets.items()}
        print_values(cells, measure)
        print(f"Time against {CMA} on our measure: {time_ratio(cells, CMA):.3f}\n")
        targets += targets_of(cells, measure)
    return targets
