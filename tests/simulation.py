"""Rejection rates of the test on simulated sets: which scenario, which measure, which null."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

import hullcal as hc
import oracles
from hullcal.objectives.opening import packed

ALPHA = 0.05
#: 3/60 is 0.05 exactly, so a test that is exact rejects in exactly 5 % of sets.
N_RESAMPLES = 59
MEASURES = ("ece_conf", "ece_cwise", "hl_cwise", "skce_ul", "skce_uq", "skce_b")
COSTLY = ("hl_cwise", "skce_uq", "skce_b")
NULLS = (*hc.nulls.available(), "refit")


def random_set(seed, n=30, m=3, k=3):
    """Members and labels that know nothing of each other."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(k), size=(n, m)), rng.integers(k, size=n)


def objective_of(probs, labels, measure="ece_conf"):
    """What a search evaluates, in memory."""
    return packed(*hc.ClassifierSet.with_labels(probs, labels), hc.measures.resolve(measure))


def judged(probs, labels, *, null=None, measure="ece_conf", **options):
    """The test under a null, where "refit" names the truth test by the measure."""
    if null == "refit":
        return hc.truth_test(probs, labels, measure=measure, **options)
    return hc.calibration_test(probs, labels, null=null, measure=measure, **options)


@dataclass(frozen=True)
class Scenario:
    """Where sets come from, and which hypotheses hold there."""

    draw: Callable[[np.random.Generator], oracles.Scenario]
    calibrated: bool
    truth: bool


def _s1(n: int, m: int, k: int, u: float, vertex: bool) -> Scenario:
    return Scenario(
        lambda rng: oracles.scenario_s1(rng, n, m, k, u, vertex), calibrated=True, truth=True
    )


def _s3(n: int, m: int, k: int, u: float, strength: float) -> Scenario:
    return Scenario(
        lambda rng: oracles.scenario_s3_fast(rng, n, m, k, u, strength),
        calibrated=False,
        truth=False,
    )


def _calibrated(n: int) -> Scenario:
    return Scenario(lambda rng: oracles.calibrated_not_truth(rng, n), calibrated=True, truth=False)


#: N = 100, M = K = 10 unless a name says otherwise. "small" is N = 40, M = K = 3, for the measures
#: that sort rows or compare all pairs of them.
SCENARIOS = {
    "S1 u=1": _s1(100, 10, 10, 1.0, vertex=False),
    "S1 u=.1": _s1(100, 10, 10, 0.1, vertex=False),
    "S1 vertex u=1": _s1(100, 10, 10, 1.0, vertex=True),
    "S1 vertex u=.1": _s1(100, 10, 10, 0.1, vertex=True),
    "calibrated N=150": _calibrated(150),
    "calibrated N=300": _calibrated(300),
    "calibrated N=1000": _calibrated(1000),
    "S3 .15 u=1": _s3(100, 10, 10, 1.0, 0.15),
    "S3 .25 u=1": _s3(100, 10, 10, 1.0, 0.25),
    "S3 .5 u=1": _s3(100, 10, 10, 1.0, 0.5),
    "S3 .25 u=.1": _s3(100, 10, 10, 0.1, 0.25),
    "small S1 u=1": _s1(40, 3, 3, 1.0, vertex=False),
    "small S1 vertex u=1": _s1(40, 3, 3, 1.0, vertex=True),
    "small calibrated N=60": _calibrated(60),
    "small S3 .5 u=1": _s3(40, 3, 3, 1.0, 0.5),
}


@dataclass(frozen=True)
class Cell:
    """One entry of the table."""

    scenario: str
    measure: str
    null: str

    @property
    def hypothesis_holds(self) -> bool:
        """Whether what this null tests is true of this scenario."""
        scenario = SCENARIOS[self.scenario]
        return scenario.truth if self.null == "refit" else scenario.calibrated

    def __str__(self) -> str:
        return f"{self.scenario}, {self.measure}, {self.null}"


@lru_cache(maxsize=1024)
def data(scenario: str, index: int) -> oracles.Scenario:
    """The set number `index` of a scenario: the same one for every measure and null."""
    stream = np.random.default_rng([list(SCENARIOS).index(scenario), index])
    return SCENARIOS[scenario].draw(stream)


@cache
def rejections(cell: Cell, n_sets: int, n_resamples: int = N_RESAMPLES) -> int:
    """How many of the first `n_sets` sets are rejected; threads share them out."""

    def rejected(index: int) -> bool:
        settings = {"alpha": ALPHA, "n_resamples": n_resamples, "rng": index}
        found = judged(
            *data(cell.scenario, index), measure=cell.measure, null=cell.null, **settings
        )
        return found.rejected

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return sum(pool.map(rejected, range(n_sets)))


def cells(
    scenarios: Sequence[str], measures: Sequence[str], nulls: Sequence[str]
) -> Iterator[Cell]:
    """Cells of the table; costly measures only at small size, and only they there."""
    for scenario in scenarios:
        for measure in measures:
            if (measure in COSTLY) == scenario.startswith("small"):
                yield from (Cell(scenario, measure, null) for null in nulls)
