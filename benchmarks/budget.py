"""What does a larger budget of the search buy inside a test? Power and level against time."""

import itertools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

import hullcal as hc
from benchmarks.sets import Set, s1, s3
from benchmarks.tables import Target, print_table, print_title
from benchmarks.timing import best_seconds

SPREAD, N_RESAMPLES, ALPHA = 1.0, 99, 0.05
#: Strengths of S3 at which a test of this kind rejects neither never nor always.
STRENGTHS = {
    ("ece_conf", "recentered", 100): 0.3,
    ("ece_conf", "refit", 100): 0.2,
    ("ece_cwise", "recentered", 100): 0.6,
    ("ece_cwise", "refit", 100): 0.2,
    ("ece_conf", "recentered", 500): 0.15,
    ("ece_conf", "refit", 500): 0.1,
    ("ece_cwise", "recentered", 500): 0.25,
    ("ece_cwise", "refit", 500): 0.08,
}
Case = tuple[str, str, int]


@dataclass(frozen=True)
class Plan:
    """Which cases, budgets and numbers of data sets."""

    cases: Sequence[Case]
    budgets: Sequence[int]
    level_cases: Sequence[Case]
    level_budgets: Sequence[int]
    n_datasets: int


FULL = Plan(
    cases=tuple(STRENGTHS),
    budgets=(50, 100, 200, 300, 500, 1000, 3000),
    level_cases=tuple(STRENGTHS),
    level_budgets=(50, 100, 200, 300, 500, 1000, 3000),
    n_datasets=400,
)
#: What fits in a few minutes: standard errors are printed, and differences are between the same sets.
SHORT = Plan(
    cases=tuple(case for case in STRENGTHS if case[2] == 100 or case[0] == "ece_conf"),
    budgets=(50, 100, 200, 300, 500, 1000),
    level_cases=tuple(case for case in STRENGTHS if case[2] == 100),
    level_budgets=(100, 300, 1000),
    n_datasets=100,
)


def rejects(data: Set, case: Case, budget: int) -> bool:
    """The decision of one test on one data set."""
    measure, null, _ = case
    return hc.calibration_test(
        *data,
        measure=measure,
        null=null,
        minimizer=hc.minimizers.Pairwise(max_evaluations=budget),
        n_resamples=N_RESAMPLES,
        alpha=ALPHA,
        rng=0,
    ).rejected


def decisions(sets: list[Set], case: Case, budgets: Sequence[int]) -> dict[int, np.ndarray]:
    """Decisions on all sets, by budget; data sets go to threads."""
    jobs = list(itertools.product(budgets, sets))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda job: rejects(job[1], case, job[0]), jobs))
    rows = np.array(found, dtype=float).reshape(len(budgets), len(sets))
    return dict(zip(budgets, rows, strict=True))


def with_error(values: np.ndarray, sign: str = "") -> str:
    """A mean and its standard error."""
    error = values.std() / np.sqrt(len(values))
    return f"{values.mean():{sign}.3f} ± {error:.3f}"


def milliseconds(data: Set, case: Case, budget: int) -> float:
    """Time of one test on one thread."""
    return 1e3 * best_seconds(lambda: rejects(data, case, budget), at_least=0.1, fewest=2)


def run(full: bool = False) -> list[Target]:
    """Print power, level and time for each case and budget, then their averages."""
    plan = FULL if full else SHORT
    default = hc.minimizers.Pairwise().budgeted(in_test=True).max_evaluations
    assert default is not None
    print_title("Budget: power and level of a test against the time of its searches")
    print(
        f"S3 (power) and S1 (level), M=K=10, u={SPREAD:g}, D={N_RESAMPLES}, alpha={ALPHA}, "
        f"{plan.n_datasets} data sets each, ms on one thread; the test's default budget is {default}"
    )
    rows, powers, times = [], [], []
    for case in plan.cases:
        power, level, took = evaluate(plan, case)
        powers.append([power[budget].mean() for budget in plan.budgets])
        times.append([took[budget] for budget in plan.budgets])
        rows += lines(case, power, level, took)
    most = max(plan.budgets)
    print_table(
        [
            *("measure", "null", "N", "strength", "evaluations", "ms", "power"),
            *(f"power less that at {most:,}", "level"),
        ],
        rows,
    )
    print_average(plan.budgets, np.array(powers), np.array(times), default)
    return []


def evaluate(
    plan: Plan, case: Case
) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray], dict[int, float]]:
    """Decisions on S3 and on S1, and milliseconds, by budget."""
    n_samples, strength = case[2], STRENGTHS[case]
    away = [s3(seed, n_samples, SPREAD, strength) for seed in range(plan.n_datasets)]
    rejects(away[0], case, 10)  # compile before the clock runs
    took = {budget: milliseconds(away[0], case, budget) for budget in plan.budgets}
    power = decisions(away, case, plan.budgets)
    level: dict[int, np.ndarray] = {}
    if case in plan.level_cases:
        inside = [s1(10_000 + seed, n_samples, SPREAD) for seed in range(plan.n_datasets)]
        level = decisions(inside, case, plan.level_budgets)
    return power, level, took


def lines(
    case: Case,
    power: dict[int, np.ndarray],
    level: dict[int, np.ndarray],
    took: dict[int, float],
) -> list[list[str]]:
    """The lines of one case."""
    measure, null, n_samples = case
    most = max(power)
    return [
        [
            *(measure, null, str(n_samples), f"{STRENGTHS[case]:g}", f"{budget:,}"),
            f"{took[budget]:,.1f}",
            with_error(rejected),
            with_error(rejected - power[most], "+") if budget != most else "",
            with_error(level[budget]) if budget in level else "",
        ]
        for budget, rejected in power.items()
    ]


def print_average(
    budgets: Sequence[int], powers: np.ndarray, times: np.ndarray, default: int
) -> None:
    """Power averaged over the cases, and time relative to the default budget's."""
    nearest = min(range(len(budgets)), key=lambda b: abs(budgets[b] - default))
    relative = (times / times[:, [nearest]]).mean(axis=0)
    print_table(
        ["evaluations", *(f"{budget:,}" for budget in budgets)],
        [
            ["mean power", *(f"{value:.3f}" for value in powers.mean(axis=0))],
            [f"time / time at {budgets[nearest]}", *(f"{value:.2f}" for value in relative)],
        ],
        f"Average of the {len(powers)} cases",
    )
