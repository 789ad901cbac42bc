"""The largest Monte Carlo p-value over all combinations (Dufour 2006)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError
from hullcal.engines.engine import Problem
from hullcal.engines.packed import Packed
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.nulls._base import CALIBRATED, Floats, Null, Outcome, Resampling
from hullcal.nulls._single import of_combination
from hullcal.pvalues import exceeds


@dataclass(frozen=True, kw_only=True)
class Maximized(Null):
    r"""Maximised Monte Carlo test.

    For each :math:`\lambda`, :math:`p(\lambda)` is the p-value of "p_λ is calibrated" from labels
    drawn from p_λ, rows fixed, with the same random numbers for every λ; the test's p-value is the
    largest. The statistic and its distribution are those at that λ (ties: the smaller g). The level
    holds for any N under strong calibration if the maximum is found; a search that stops short can
    only make p too small. `converged` says that none of its steps could raise p further, which is no
    proof of a global maximum. It runs on one thread.
    """

    name: ClassVar[str] = "maximized"
    hypothesis: ClassVar[str] = CALIBRATED
    in_memory: ClassVar[bool] = True
    searches_measure: ClassVar[bool] = False

    def check(self, measure: Measure, minimizer: Minimizer) -> None:
        super().check(measure, minimizer)
        if not minimizer.any_function:
            raise InvalidInputError(
                f"null `{self.name}` maximises a step function of the weights, which minimizer "
                f'`{minimizer.name}` cannot take; use minimizer="pairwise".'
            )

    def run(self, problem: Problem, minimizer: Minimizer, resampling: Resampling) -> Outcome:
        objective = problem.packed
        rank = _Rank(
            objective=objective, resampling=resampling, budget=minimizer.max_evaluations or 1
        )
        found = minimizer.minimize(replace(objective, measure=rank, entries=None), resampling.key)
        if resampling.progress is not None:
            resampling.progress(resampling.n_resamples, resampling.n_resamples)
        weights = found.weights[0]
        statistic, distribution = rank.at(objective.mixed(weights))
        return Outcome(
            statistic=statistic,
            weights=weights,
            distribution=distribution,
            n_evaluations=int(found.n_evaluations[0]) * (resampling.n_resamples + 1),
            converged=bool(found.converged[0]),
        )


@dataclass(frozen=True, kw_only=True)
class _Rank(Measure):
    """What the search minimises: minus the number of exceedances at λ, ties broken by g there."""

    name: ClassVar[str] = "rank"
    objective: Packed
    resampling: Resampling
    budget: int

    @property
    def value(self) -> Callable[..., float]:  # type: ignore[override]
        """The score of mixed predictions; it ranks by exceedances, then by g."""
        calls = count(1)

        def score(mixed: Floats, *_: NDArray[np.generic]) -> float:
            statistic, null = self.at(mixed)
            self.report(next(calls))
            tie_break = 0.5 if np.isinf(statistic) else 0.5 * statistic / (1.0 + abs(statistic))
            return tie_break - float(exceeds(null, statistic).sum())

        return score

    def report(self, calls: int) -> None:
        """Work is counted in combinations here, but told in resamples, whenever one more is done."""
        progress, total = self.resampling.progress, self.resampling.n_resamples
        done = calls * total // self.budget
        if progress is not None and (calls - 1) * total // self.budget < done < total:
            progress(done, total)

    def at(self, mixed: Floats) -> tuple[float, Floats]:
        """g of the data, and of labels drawn from the mixed predictions."""
        key, n_resamples = self.resampling.key, self.resampling.n_resamples
        return of_combination(self.objective, mixed, key, n_resamples)

    def state_size(self, n_classes: int) -> int:
        return 0
