"""What does a larger budget of the search buy inside a test? Power and level, by budget and starts."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import hullcal as hc
from benchmarks.tables import Target, print_table, print_title
from hullcal._compiled.streams import key_of
from hullcal.engines.local import packed_problem
from hullcal.engines.packed import Packed
from hullcal.minimizers.steepest import Steepest

N_RESAMPLES, ALPHA = 39, 0.05  # 2/40 is alpha exactly
MEASURES = ("ece_conf", "ece_cwise", "ece_cwise_smooth")
BUDGETS = (1, 15, 25, 50, 100)


@dataclass(frozen=True)
class Case:
    """Sets of one kind: S1, S3, or labels of a combination (or a member) at another temperature."""

    kind: str
    amount: float = 1.0
    n_samples: int = 100
    n_members: int = 10

    def draw(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Members (N, M, K) and labels; K = 10, spread 1."""
        rng = np.random.default_rng([11, seed])
        sizes = {"n_samples": self.n_samples, "n_members": self.n_members, "spread": 1.0}
        if self.kind == "S3":
            found = hc.simulation.scenario("S3", strength=self.amount, **sizes, rng=rng)
            return found.probs, found.labels
        probs = hc.simulation.scenario("S1", **sizes, rng=rng).probs
        m = self.n_members
        weights = np.eye(m)[0] if self.kind == "member" else rng.dirichlet(np.ones(m))
        law = np.einsum("m,nmk->nk", weights, probs) ** (1.0 / self.amount)
        levels = rng.random((len(law), 1)) * law.sum(axis=1, keepdims=True)
        return probs, (law.cumsum(axis=1)[:, :-1] <= levels).sum(axis=1)

    def __str__(self) -> str:
        amount = "" if self.kind == "S1" else f" {self.amount:g}"
        return f"{self.kind}{amount}, N={self.n_samples}, M={self.n_members}"


CASES = (
    Case("S1"),
    Case("S3", 0.2),
    Case("S3", 0.35),
    Case("temperature", 1.4, 300),
    Case("temperature", 0.7, 300),
    Case("member", 1.4, 300),
    Case("member", 0.7, 300),
    Case("S3", 0.3, n_members=2),
    Case("member", 1.4, 300, n_members=2),
    Case("S3", 0.3, n_members=5),
    Case("member", 1.4, 300, n_members=5),
    Case("S3", 0.3, n_members=50),
    Case("member", 0.7, 300, n_members=50),
    Case("S3", 0.1, 1000),
    Case("temperature", 1.2, 1000),
    Case("member", 1.2, 1000),
)


def objective_of(probs: np.ndarray, labels: np.ndarray, measure: str) -> Packed:
    """What the search is given."""
    classifiers, classes = hc.ClassifierSet.with_labels(probs, labels)
    return packed_problem(classifiers, classes, hc.measures.resolve(measure)).packed


def statistics(objective: Packed, budget: int) -> dict[str, np.ndarray]:
    """Mean and minimum of the ends, over all starts and over fewer, for every case of the objective."""
    search = Steepest(max_evaluations=budget)
    values = search.ends(objective, *search.starts(objective))[1]
    found = {}
    n_members = (len(values) - 2) // 2
    own = np.arange(2)
    ways = np.concatenate([own, np.arange(2 + n_members, len(values))])
    for name, some in {
        "all": slice(None),
        "members": slice(2 + n_members),
        "ways": ways,
        "two": own,
    }.items():
        ends = np.sort(values[some], axis=0)
        found[f"{name}, mean"] = ends.mean(axis=0)
        found[f"{name}, quarter"] = ends[: -(-len(ends) // 4)].mean(axis=0)
        found[f"{name}, min"] = ends[0]
    return found


def rates(case: Case, measure: str, budgets: Sequence[int], n_datasets: int) -> dict:
    """Rejection rates with refitted labels: the same sets and resamples for every rule."""
    rejected: dict[tuple[int, str], int] = {}
    for seed in range(n_datasets):
        objective = objective_of(*case.draw(seed), measure)
        draw = objective.drawing_labels(objective.maximum_likelihood(), key_of(seed))
        replicates = draw(0, N_RESAMPLES)
        for budget in budgets:
            null = statistics(replicates, budget)
            for rule, t in statistics(objective, budget).items():
                pvalue = (1 + (null[rule] >= t[0] - 1e-12).sum()) / (N_RESAMPLES + 1)
                key = budget, rule
                rejected[key] = rejected.get(key, 0) + int(pvalue <= ALPHA)
    return {key: count / n_datasets for key, count in rejected.items()}


def run(full: bool = False) -> list[Target]:
    """Print a table for each measure: cases down, budgets and rules across."""
    n_datasets = 200 if full else 40
    print_title(
        "Budget: power and level of a test by evaluations a start, starts, and what is compared"
    )
    print(
        f"refitted labels, K=10, u=1, D={N_RESAMPLES}, alpha={ALPHA}, {n_datasets} sets a cell (standard "
        f"error at most {0.5 / n_datasets**0.5:.2f}); S1 is the level; the test's budget is "
        f"{Steepest.test_budget}"
    )
    rules = ("all, quarter", "all, mean", "all, min", "members, mean", "ways, mean", "two, min")
    for measure in MEASURES:
        rows = []
        for case in CASES:
            # With fifty members one round takes a hundred evaluations.
            budgets = BUDGETS if case.n_members < 50 else (1, 15, 250)
            found = rates(case, measure, budgets, n_datasets)
            for budget in budgets:
                cells = [f"{found[budget, rule]:.2f}" for rule in rules]
                rows.append([str(case), f"{budget}", *cells])
        print_table(["case", "budget", *rules], rows, measure)
    return []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    run(parser.parse_args().full)
