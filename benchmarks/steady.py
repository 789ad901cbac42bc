"""Is the answer a function of the data? Real sets in other orders, without a few rows, by other seeds."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from experiments import named
from experiments.levels import forest

import hullcal as hc
from benchmarks.measuring import Set, Target, at_most, print_table, print_title

#: Fourteen published networks on the test images of CIFAR-10.
DATA = Path(__file__).parents[2] / "shared" / "data" / "cifar10_14nets.npz"
#: Measures that compare all pairs of rows are given so many.
FEW_ROWS = 300
PAIRS = ("skce_b", "skce_uq")
#: Orders, subsets and seeds tried, and resamples behind a standard deviation of the null.
ORDERS, SUBSETS, SEEDS, NULL = 20, 30, 20, 199
#: Seeds are compared by p-values of so many resamples.
RESAMPLES = 999
#: Measures that jump where rows change their bins or partners; theirs is stated, not bounded.
JUMPY = ("hl_cwise", "skce_ul")


def sets() -> dict[str, Set]:
    """The real sets that can be had here."""
    found: dict[str, Set] = {}
    if find_spec("sklearn") is not None:
        found["digits, forest"] = forest("digits", min_samples_leaf=3)
        found["digits, extra trees"] = forest("digits", extra=True, min_samples_leaf=3)
        found["wine, forest"] = forest("wine")
        found["cancer, forest"] = forest("breast_cancer", min_samples_leaf=3)
    if DATA.is_file():
        with np.load(DATA, allow_pickle=False) as data:
            probs, labels = data["probs"], data["labels"].astype(np.int64)
        found["5 networks, N=2,000"] = probs[:2000, :5], labels[:2000]
        found["14 networks, N=1,000"] = probs[:1000], labels[:1000]
    return found


def outcome(data: Set, measure: str, null: str = "refit", seed: int = 0, n: int = 1):
    """One test of a set."""
    test = hc.simulation.Test.named(named(measure, null))
    return test.run(*data, n_resamples=n, alpha=max(0.05, 1 / (n + 1)), rng=seed)


def orders(data: Set, measure: str) -> tuple[float, float]:
    """Largest change of the statistic and of the weights when rows and members are permuted."""
    probs, labels = data
    first = outcome(data, measure)
    moved, turned = 0.0, 0.0
    for seed in range(ORDERS):
        rng = np.random.default_rng(seed)
        rows, members = rng.permutation(len(labels)), rng.permutation(probs.shape[1])
        again = outcome((probs[rows][:, members], labels[rows]), measure)
        moved = max(moved, abs(again.statistic - first.statistic))
        turned = max(turned, np.abs(again.weights - first.weights[members]).max())
    return moved, turned


def subsets(data: Set, measure: str) -> tuple[float, float]:
    """Standard deviation of statistic and minimum without 1 row in 200, in those of the null."""
    probs, labels = data
    null_values = outcome(data, measure, n=NULL).null_distribution
    if np.isinf(null_values).any():
        return np.nan, np.nan
    null = null_values.std()
    found = []
    for seed in range(SUBSETS):
        dropped = np.random.default_rng(seed).choice(
            len(labels), size=max(1, len(labels) // 200), replace=False
        )
        again = outcome((np.delete(probs, dropped, 0), np.delete(labels, dropped)), measure)
        found.append((again.statistic, again.minimum))
    statistic, minimum = np.std(found, axis=0)
    return statistic / null, minimum / null


def seeds(data: Set, measure: str) -> tuple[float, float, float]:
    """Smallest and largest p-value of "stacked" over seeds; their deviation over the binomial's."""
    found = [outcome(data, measure, "stacked", seed, RESAMPLES).pvalue for seed in range(SEEDS)]
    mean = float(np.mean(found))
    explained = np.sqrt(max(mean * (1 - mean), 1 / RESAMPLES) / RESAMPLES)
    return min(found), max(found), float(np.std(found, ddof=1) / explained)


def run() -> list[Target]:
    """Print three tables and their targets."""
    print_title("Steadiness: orders of rows and members, a few rows less, seeds")
    targets, rows, p_rows = [], [], []
    for name, data in sets().items():
        for measure in hc.measures.available():
            some = tuple(part[:FEW_ROWS] for part in data) if measure in PAIRS else data
            row = [name, measure]
            if measure != "skce_ul":  # which pairs rows as they come
                moved, turned = orders(some, measure)
                targets.append(at_most(f"{name}, {measure}: statistic by orders", moved, 1e-9))
                row += [f"{moved:.1e}", f"{turned:.1e}"]
            else:
                row += ["-", "-"]
            statistic, minimum = subsets(some, measure)
            if measure not in JUMPY:
                targets.append(at_most(f"{name}, {measure}: fewer rows", statistic, 0.25))
            rows.append([*row, f"{statistic:.2f}", f"{minimum:.2f}"])
        for measure in ("ece_conf", "ece_cwise"):
            low, high, ratio = seeds(data, measure)
            targets.append(at_most(f"{name}, {measure}: p by seeds over binomial", ratio, 1.6))
            p_rows.append([name, measure, f"{low:.3f}", f"{high:.3f}", f"{ratio:.2f}"])
    print_table(
        ["set", "measure", "orders: t", "weights", "rows: t / sd", "minimum / sd"],
        rows,
        f"Largest change over {ORDERS} orders; deviation over {SUBSETS} subsets without 1 row in 200, in "
        "standard deviations of the null",
    )
    print_table(
        ["set", "measure", "smallest p", "largest p", "deviation / binomial"],
        p_rows,
        f"Null stacked, {RESAMPLES} resamples, {SEEDS} seeds",
    )
    return targets
