"""How low does each search get, and how fast? COBYLA and CMA-ES are the opponents.

CMA-ES comes twice: with g in NumPy, which is what there is without hullcal, and with our own compiled
objective, which tells the two methods apart from the cost of an evaluation.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import hullcal as hc
from benchmarks import literal
from benchmarks.sets import Set, s1
from benchmarks.tables import Target, print_table, print_targets, print_title
from benchmarks.timing import seconds
from hullcal.engines.local import packed_problem

SIZES = (100, 500, 1000, 5000)
SPREADS = (0.01, 0.03, 0.1, 0.3, 1.0)
MEASURES = ("ece_conf", "ece_cwise")
BUDGET = 10_000
#: What a search may spend: inside a test by default, and more.
BUDGETS = (hc.minimizers.Pairwise.test_budget, 1_000, BUDGET)
SEARCHES = {
    "cobyla": hc.minimizers.Cobyla(),
    **{f"pairwise {n:,}": hc.minimizers.Pairwise(max_evaluations=n) for n in BUDGETS},
    "random 10,000": hc.minimizers.Random(max_evaluations=BUDGET),
}
CMA, CMA_NUMPY, COBYLA, OURS = "CMA-ES 10,000", "CMA-ES in NumPy", "cobyla", "pairwise 10,000"
NAMES = (*SEARCHES, CMA)
#: Evaluations after which CMA-ES in NumPy is stopped; its time grows in proportion to them.
NUMPY_BUDGET = 500
#: Values this close are one value, summed in another order.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Found:
    """What a search reached on one set, and in how many seconds."""

    value: float
    seconds: float


#: What every search found, by number of rows and spread.
Cells = dict[tuple[int, float], dict[str, Found]]


def ours(probs: np.ndarray, labels: np.ndarray, measure: str, name: str) -> Found:
    """One of our searches, called as a user would."""
    found: list[float] = []

    def call() -> None:
        result = hc.minimize(probs, labels, measure=measure, minimizer=SEARCHES[name], rng=0)
        found.append(result.value)

    took = seconds(call)
    return Found(found[0], took)


def softmax(points: np.ndarray) -> np.ndarray:
    """Weights of unconstrained points."""
    weights = np.exp(points - points.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


#: Values of g at rows of weights.
Values = Callable[[np.ndarray], np.ndarray]


def cma_es(values_at: Values, n_members: int, budget: int) -> Found:
    """CMA-ES on softmax weights, restarted with twice the population until the budget is spent."""
    import cma

    best = [np.inf]

    def search() -> None:
        left, run, population = budget, 0, None
        while left > 0:
            options = {"verbose": -9, "seed": run + 1, "maxfevals": left}
            if population is not None:
                options["popsize"] = population
            strategy = cma.CMAEvolutionStrategy(np.zeros(n_members), 1.0, options)
            while not strategy.stop():
                points = strategy.ask()
                values = values_at(softmax(np.array(points)))
                strategy.tell(points, values)
                best[0] = min(best[0], float(values.min()))
            left -= strategy.result.evaluations
            population = 2 * strategy.popsize
            run += 1

    with warnings.catch_warnings():
        # It tells when a generation is flat, as a step function is now and then.
        warnings.simplefilter("ignore")
        took = seconds(search)
    return Found(best[0], took)


def compiled_values(probs: np.ndarray, labels: np.ndarray, measure: str) -> Values:
    """Our own objective; a generation is evaluated by one call."""
    classifiers, truth = hc.ClassifierSet.with_labels(probs, labels)
    objective = packed_problem(classifiers, truth, hc.measures.resolve(measure)).objective
    return lambda weights: objective.values(weights, np.zeros(len(weights), dtype=np.int64))


def numpy_values(probs: np.ndarray, labels: np.ndarray, measure: str) -> Values:
    """The objective that a user of NumPy writes."""
    g = literal.MEASURES[measure]
    return lambda weights: np.array([g(literal.combine(probs, w), labels) for w in weights])


def compare(data: Set, measure: str) -> dict[str, Found]:
    """Every search on one set."""
    found = {name: ours(*data, measure, name) for name in SEARCHES}
    n_members = data[0].shape[1]
    found[CMA] = cma_es(compiled_values(*data, measure), n_members, BUDGET)
    slow = cma_es(numpy_values(*data, measure), n_members, NUMPY_BUDGET)
    found[CMA_NUMPY] = Found(slow.value, slow.seconds * BUDGET / NUMPY_BUDGET)
    return found


def print_values(cells: Cells, measure: str) -> None:
    """One line a set, then means and times."""
    rows = [
        [f"{n:,}", f"{u:g}", *(f"{found[name].value:.5f}" for name in NAMES)]
        for (n, u), found in cells.items()
    ]
    rows.append(["mean value", "", *(f"{mean(cells, name):.5f}" for name in NAMES)])
    for n in SIZES:
        own = of_size(cells, n)
        times = (f"{1e3 * total(own, name) / len(own):,.1f}" for name in NAMES)
        rows.append([f"ms, N={n:,}", "", *times])
    print_table(["N", "u", *NAMES], rows, f"{measure}: value reached on {len(cells)} sets (S1)")


def mean(cells: Cells, name: str) -> float:
    """Mean value reached."""
    return float(np.mean([found[name].value for found in cells.values()]))


def total(cells: Cells, name: str) -> float:
    """Seconds over all sets."""
    return sum(found[name].seconds for found in cells.values())


def time_ratios(cells: Cells, opponent: str) -> str:
    """Our time over an opponent's: over all sets, and by number of rows."""
    by_size = (f"N={n:,}: {time_ratio(of_size(cells, n), opponent):.3f}" for n in SIZES)
    return f"{time_ratio(cells, opponent):.3f} of it ({', '.join(by_size)})"


def time_ratio(cells: Cells, opponent: str) -> float:
    """Our time over an opponent's."""
    return total(cells, OURS) / total(cells, opponent)


def of_size(cells: Cells, n_samples: int) -> Cells:
    """The sets of one number of rows."""
    return {cell: found for cell, found in cells.items() if cell[0] == n_samples}


def targets_of(cells: Cells, measure: str) -> list[Target]:
    """Never worse than COBYLA, as low as CMA-ES, in a tenth of its time."""
    pairs = [(found[OURS].value, found[COBYLA].value) for found in cells.values()]
    worse = sum(a > b + ROUNDING for a, b in pairs)
    means = mean(cells, OURS), mean(cells, CMA)
    lower = sum(found[OURS].value <= found[CMA].value + ROUNDING for found in cells.values())
    return [
        Target(
            f"{measure}: {OURS} never worse than one COBYLA start",
            f"worse on {worse} of {len(pairs)} sets",
            worse == 0,
        ),
        Target(
            f"{measure}: mean of {OURS} no higher than that of {CMA}",
            f"{means[0]:.5f} against {means[1]:.5f} (no higher on {lower} of {len(pairs)} sets)",
            means[0] <= means[1],
        ),
        Target(
            f"{measure}: {OURS} in a tenth of the time of {CMA_NUMPY}",
            time_ratios(cells, CMA_NUMPY),
            time_ratio(cells, CMA_NUMPY) <= 0.1,
        ),
    ]


def run() -> list[Target]:
    """Print a table of values and times for each measure."""
    print_title("Search: value reached and time taken, M=K=10, one thread")
    # Compile before the clock runs.
    for measure in MEASURES:
        for name in SEARCHES:
            ours(*s1(0, 100, 0.1, n_members=3), measure, name)
    targets = []
    sets = {(n, u): s1(seed, n, u) for seed, (n, u) in enumerate(grid())}
    for measure in MEASURES:
        cells = {cell: compare(data, measure) for cell, data in sets.items()}
        print_values(cells, measure)
        print(f"Time against {CMA} on our own objective: {time_ratios(cells, CMA)}\n")
        targets += targets_of(cells, measure)
    print_targets(targets)
    return targets


def grid() -> list[tuple[int, float]]:
    """The 20 sets: one for each number of rows and each spread."""
    return [(n, u) for n in SIZES for u in SPREADS]
