"""The largest Monte Carlo p-value over all combinations (Dufour 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError
from hullcal.measures import Measure
from hullcal.minimizers import Minima, Minimizer
from hullcal.notes import Note
from hullcal.nulls._base import CALIBRATED, Floats, Null
from hullcal.objectives.base import Function, Objective
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
    searches_replicates: ClassVar[bool] = False
    one_by_one: ClassVar[bool] = False

    def check(self, measure: Measure, minimizer: Minimizer) -> None:
        super().check(measure, minimizer)
        if not minimizer.any_function:
            raise InvalidInputError(
                f"null `{self.name}` maximises a function of the weights that is no measure, which "
                f'minimizer `{minimizer.name}` cannot take; use minimizer="steepest".'
            )

    def distribution(
        self, objective: Objective, best: Minima, minimizer: Minimizer, loop: Loop
    ) -> dict[str, Any]:
        # Where g is smallest the p-value is often large: one more start.
        starts = np.concatenate([objective.starts(), best.weights[:, np.newaxis]], axis=1)
        # Most searches converge before that; progress is told in these terms.
        budget = min(minimizer.max_evaluations or 1, _USUAL * objective.n_members)
        ranked = _Rank(objective, starts, loop, budget)
        found = minimizer.minimize(ranked, loop.key)
        if loop.progress is not None:
            loop.progress(loop.n_resamples, loop.n_resamples)
        # A search that chooses its own starts may have passed that one by.
        weights = min(found.weights[0], best.weights[0], key=lambda own: _score(*ranked.null(own)))
        statistic, values = ranked.null(weights)
        return {
            "statistic": statistic,
            "minimum": statistic,
            "weights": weights,
            "null_distribution": values,
            "n_evaluations": int(found.n_evaluations[0]) * (loop.n_resamples + 1),
            "converged": bool(found.converged[0]),
            "notes": (Note("largest_pvalue"),),
        }


#: Combinations looked at, for each member, before a search converges.
_USUAL = 50


def _score(statistic: float, null: Floats) -> float:
    """What the search minimises: minus the number of exceedances at λ, ties broken by g there."""
    tie_break = 0.5 if np.isinf(statistic) else 0.5 * statistic / (1.0 + abs(statistic))
    return tie_break - float(exceeds(null, statistic).sum())


class _Rank(Function):
    """The score as a function of the weights."""

    n_cases = 1
    n_members = 0

    def __init__(self, objective: Objective, starts: Floats, loop: Loop, budget: int) -> None:
        self.n_members = objective.n_members
        self._objective, self._starts, self._loop = objective, starts, loop
        self._budget, self._calls = budget, 0

    def starts(self) -> Floats:
        return self._starts

    def null(self, weights: Floats) -> tuple[float, Floats]:
        """g of the data, and of labels drawn from the combination."""
        draw = self._objective.drawing_labels(weights, self._loop.key)
        size = self._objective.together(1)
        parts = [draw(*ends).at(weights) for ends in blocks(0, self._loop.n_resamples, size)]
        return float(self._objective.at(weights)[0]), np.concatenate(parts)

    def values(self, weights: Floats, cases: NDArray[np.int64]) -> Floats:
        values = []
        for point in weights:
            values.append(_score(*self.null(point)))
            self._report()
        return np.array(values)

    def _report(self) -> None:
        """Work is counted in combinations here, but told in resamples, whenever one more is done."""
        progress, total = self._loop.progress, self._loop.n_resamples
        before = self._calls * total // self._budget
        self._calls += 1
        done = self._calls * total // self._budget
        if progress is not None and before < done < total:
            progress(done, total)
