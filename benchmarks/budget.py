"""What does a larger budget of the search buy inside a test? Power and level, by evaluations a start."""

from dataclasses import dataclass

import numpy as np

import hullcal as hc
from benchmarks.measuring import Set, Target, print_table, print_title

N_RESAMPLES, ALPHA = 39, 0.05  # 2/40 is alpha exactly
MEASURES = ("ece_conf", "ece_cwise", "ece_cwise_smooth")
#: With fifty members one round takes a hundred evaluations, so that more begins at 250.
BUDGETS = (1, 15, 25, 50, 100, 250)


@dataclass(frozen=True)
class Case:
    """Sets of one kind: S1, S3, or labels of a combination (or a member) at another temperature."""

    kind: str
    amount: float = 1.0
    n_samples: int = 100
    n_members: int = 10

    def draw(self, seed: int) -> Set:
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


def rate(case: Case, measure: str, budget: int, n_datasets: int) -> float:
    """Rejection rate with refitted labels: the same sets and seeds for every budget."""
    options = {"measure": measure, "null": "refit", "n_resamples": N_RESAMPLES, "alpha": ALPHA}
    search = hc.minimizers.Steepest(max_evaluations=budget)
    return float(
        np.mean(
            [
                hc.calibration_test(
                    *case.draw(seed), **options, minimizer=search, rng=seed
                ).rejected
                for seed in range(n_datasets)
            ]
        )
    )


def run(full: bool = False) -> list[Target]:
    """Print a table for each measure: cases down, budgets across."""
    n_datasets = 200 if full else 40
    print_title("Budget: power and level of a test by evaluations a start")
    print(
        f"refitted labels, K=10, u=1, D={N_RESAMPLES}, alpha={ALPHA}, {n_datasets} sets a cell "
        f"(standard error at most {0.5 / n_datasets**0.5:.2f}); S1 is the level"
    )
    for measure in MEASURES:
        rows = [
            [str(case), *(f"{rate(case, measure, b, n_datasets):.2f}" for b in BUDGETS)]
            for case in CASES
        ]
        print_table(["case", *map(str, BUDGETS)], rows, measure)
    return []
