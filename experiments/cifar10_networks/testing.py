"""One test as cells of a table, and intervals in words."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import hullcal as hc

MEASURES = ("ece_conf", "ece_cwise")
ALPHA = 0.05
Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much work a run may do."""

    n_resamples: int = 199  # of the tests of the whole set
    n_resamples_alone: int = (
        1999  # Holm's correction of 28 tests needs small p-values; these are cheap
    )
    n_resamples_many: int = 99  # of tests that are run many times over
    n_resamples_pair: int = 59
    n_splits: int = 10
    n_draws: int = 3
    evaluations: int = 1000  # of a search for the smallest value
    seed: int = 0
    n_jobs: int = 1


def tested(classifiers: Any, labels: Any, effort: Effort, **options: Any) -> dict[str, Any]:
    """The test's statistic, and its p-value with the 95 % Monte Carlo interval."""
    result = hc.calibration_test(
        classifiers, labels, alpha=ALPHA, rng=effort.seed, n_jobs=effort.n_jobs, **options
    )
    low, high = result.pvalue_interval
    return {
        "measure": result.measure,
        "null": result.null,
        "n_resamples": result.n_resamples,
        "statistic": result.statistic,
        "critical_value": result.critical_value,
        "p": result.pvalue,
        "p_lower": low,
        "p_upper": high,
    }


def with_interval(row: dict[str, Any], name: str = "p", digits: int = 3) -> str:
    """A number with its interval.

    >>> with_interval({"p": 0.25, "p_lower": 0.1, "p_upper": 0.5}, digits=2)
    '.25 (.10, .50)'
    """
    ends = (row[name], row[f"{name}_lower"], row[f"{name}_upper"])
    middle, low, high = (f"{value:.{digits}f}".replace("0.", ".", 1) for value in ends)
    return f"{middle} ({low}, {high})"


def share(hits: Any, name: str = "share") -> dict[str, Any]:
    """A share of rows with Wilson's 95 % interval."""
    low, high = hc.simulation.wilson(int(np.sum(hits)), len(hits))
    return {name: float(np.mean(hits)), f"{name}_lower": low, f"{name}_upper": high}


def average(values: Any, name: str) -> dict[str, Any]:
    """A mean over rows with its normal 95 % interval."""
    mean = float(np.mean(values))
    reach = 1.96 * float(np.std(values, ddof=1)) / len(values) ** 0.5
    return {name: mean, f"{name}_lower": mean - reach, f"{name}_upper": mean + reach}
