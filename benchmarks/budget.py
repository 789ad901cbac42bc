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
    ("hl_cwise", "recentered", 100): 0.05,
    ("hl_cwise", "refit", 100): 0.03,
    ("skce_ul", "recentered", 100): 1.0,
    ("skce_ul", "refit", 100): 1.0,
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


def decisions(sets: list[Set], case: Case, budgets: Sequence[int]) -> np.ndarray:
    """Decisions, a row for each budget and a column for each set; the tests go to threads."""
    jobs = list(itertools.product(budgets, sets))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda job: rejects(job[1], case, job[0]), jobs))
    return np.array(found, dtype=float).reshape(len(budgets), len(sets))


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
    default = hc.minimizers.Pairwise.test_budget
    # The default budget is the yardstick, so it is always among those that are run.
    budgets = sorted({*plan.budgets, default})
    level_budgets = sorted({*plan.level_budgets, default})
    print_title("Budget: power and level of a test against the time of its searches")
    print(
        f"S3 (power) and S1 (level), M=K=10, u={SPREAD:g}, D={N_RESAMPLES}, alpha={ALPHA}, "
        f"{plan.n_datasets} data sets each, ms on one thread; the test's default budget is {default} "
        f"({hc.minimizers.Pairwise.easy_test_budget} for HL and SKCE)"
    )
    rows = []
    powers: dict[Case, np.ndarray] = {}
    times: dict[Case, np.ndarray] = {}
    for case in plan.cases:
        away = [s3(seed, case[2], SPREAD, STRENGTHS[case]) for seed in range(plan.n_datasets)]
        rejects(away[0], case, 10)  # compile before the clock runs
        times[case] = np.array([milliseconds(away[0], case, budget) for budget in budgets])
        powers[case] = decisions(away, case, budgets)
        level: dict[int, np.ndarray] = {}
        if case in plan.level_cases:
            inside = [s1(10_000 + seed, case[2], SPREAD) for seed in range(plan.n_datasets)]
            level = dict(zip(level_budgets, decisions(inside, case, level_budgets), strict=True))
        for number, budget in enumerate(budgets):
            gain = powers[case][number] - powers[case][budgets.index(default)]
            rows.append(
                [
                    *(case[0], case[1], str(case[2]), f"{STRENGTHS[case]:g}", f"{budget:,}"),
                    f"{times[case][number]:,.1f}",
                    with_error(powers[case][number]),
                    with_error(gain, "+") if budget != default else "default",
                    with_error(level[budget]) if budget in level else "",
                ]
            )
    print_table(
        [
            *("measure", "null", "N", "strength", "evaluations", "ms", "power"),
            *(f"less power at {default}", "level"),
        ],
        rows,
    )
    print_averages(budgets, default, powers, times)
    return []


def print_averages(
    budgets: list[int], default: int, powers: dict[Case, np.ndarray], times: dict[Case, np.ndarray]
) -> None:
    """Power of each null averaged over its cases, and time relative to the default budget's."""
    yardstick = budgets.index(default)
    rows = []
    for null in ("recentered", "refit"):
        own = [power for case, power in powers.items() if case[1] == null]
        rows.append([f"power, {null}", *(f"{value:.3f}" for value in np.mean(own, axis=(0, 2)))])
        # Cases have their own data sets, so the variances of their means add up.
        gains = np.array([power - power[yardstick] for power in own])
        errors = np.sqrt((gains.var(axis=2) / gains.shape[2]).sum(axis=0)) / len(own)
        means = gains.mean(axis=(0, 2))
        cells = (f"{gain:+.3f} ± {error:.3f}" for gain, error in zip(means, errors, strict=True))
        rows.append([f"  less that at {default}", *cells])
    relative = np.mean([took / took[yardstick] for took in times.values()], axis=0)
    rows.append([f"time / time at {default}", *(f"{value:.2f}" for value in relative)])
    print_table(
        ["evaluations", *(f"{budget:,}" for budget in budgets)],
        rows,
        f"Average of the {len(powers)} cases",
    )
