"""The largest Monte Carlo p-value over all combinations (Dufour 2006)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError
from hullcal.measures import Measure
from hullcal.minimizers import Minima, Minimizer
from hullcal.notes import Note
from hullcal.nulls._base import CALIBRATED, Null
from hullcal.objectives.base import Floats, Function, Objective
from hullcal.pvalues import exceeds
from hullcal.resampling import Loop
from hullcal.threads import blocks


@dataclass(frozen=True, kw_only=True)
class Maximized(Null):
    r"""Maximised Monte Carlo test.

    For each :math:`\lambda`, :math:`p(\lambda)` is the p-value of "p_λ is calibrated" from labels
    drawn from p_λ, rows fixed, with the same random numbers for every λ; the test's p-value is the
    largest. The statistic and its distribution are those at that λ (ties: the smaller g). The level
    holds for any N under strong calibration if the maximum is found; a search that stops short can
    only make p too small. `converged` says that none of its steps could raise p further, which is no
    proof of a global maximum. In memory it runs on one thread.
    """

    name: ClassVar[str] = "maximized"
    hypothesis: ClassVar[str] = CALIBRATED
    one_by_one: ClassVar[bool] = False

    def check(self, measure: Measure, minimizer: Minimizer) -> None:
        super().check(measure, minimizer)
        if "measure" in minimizer.needs:
            raise InvalidInputError(
                f"null `{self.name}` maximises a function of the weights that is no measure, which "
                f'minimizer `{minimizer.name}` cannot take; use minimizer="steepest".'
            )

    def line_7(self, objective: Objective, minimizer: Minimizer, loop: Loop) -> Minima:
        """The combination with the largest p-value, and g there."""
        best = super().line_7(objective, minimizer, loop)
        # Where g is smallest the p-value is often large: one more start.
        own = objective.starts(), objective.likeliest(), best.weights[:, np.newaxis]
        starts = np.concatenate(own, axis=1)
        # Most searches converge before that; progress counts these.
        search = minimizer.alone()
        budget = min(search.max_evaluations or 1, _USUAL * objective.n_members)
        ranked = _Rank(objective, starts, loop, budget)
        found = search.minimize(ranked, loop.key)
        # A search that chooses its own starts may have passed that one by.
        weights = min(found.weights[0], best.weights[0], key=ranked.score)
        n_evaluations = best.n_evaluations + found.n_evaluations * (loop.n_resamples + 1)
        value = objective.at(weights)
        return Minima(weights[np.newaxis], value, value, n_evaluations, found.converged)

    def replicates(
        self, objective: Objective, best: Minima, loop: Loop
    ) -> Callable[[int, int], Floats]:
        draw = objective.drawing_labels(best.weights[0], loop.key)
        return lambda first, last: draw(first, last).at(best.weights[0])

    def together(self, objective: Objective, minimizer: Minimizer) -> int:
        return objective.together(1)

    def statistic(self, replicates: Floats, minimizer: Minimizer, loop: Loop) -> Floats:
        # Line 7 has counted their evaluations.
        return np.column_stack([replicates, np.zeros(len(replicates))])

    def notes(self, objective: Objective, best: Minima, loop: Loop) -> tuple[Note, ...]:
        return (Note("largest_pvalue"),)


#: Combinations looked at, for each member, before a search converges.
_USUAL = 50


class _Rank(Function):
    """What the search minimises: minus the number of exceedances at λ, ties broken by g there."""

    n_cases = 1

    def __init__(self, objective: Objective, starts: Floats, loop: Loop, budget: int) -> None:
        self.n_members = objective.n_members
        self._objective, self._starts, self._loop = objective, starts, loop
        self._budget, self._calls = budget, 0

    def starts(self) -> Floats:
        return self._starts

    def likeliest(self) -> Floats:
        return np.empty((self.n_cases, 0, self.n_members))  # among the starts

    def score(self, weights: Floats) -> float:
        """The score of a combination, from g of the data and of labels drawn from it."""
        draw = self._objective.drawing_labels(weights, self._loop.key)
        n_resamples = self._loop.n_resamples
        bounds = blocks(0, n_resamples, self._objective.together(1))
        null = np.concatenate([draw(*ends).at(weights) for ends in bounds])
        statistic = float(self._objective.at(weights)[0])
        tie_break = 0.5 if np.isinf(statistic) else 0.5 * statistic / (1.0 + abs(statistic))
        return tie_break - float(exceeds(null, statistic).sum())

    def values(self, weights: Floats, cases: NDArray[np.int64]) -> Floats:
        values = np.empty(len(weights))
        for i, point in enumerate(weights):
            values[i] = self.score(point)
            # Work is counted in combinations here, but told in resamples.
            self._calls += 1
            done = self._calls * self._loop.n_resamples // self._budget
            self._loop.report(min(done, self._loop.n_resamples - 1))
        return values
