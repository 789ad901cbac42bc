"""The largest Monte Carlo p-value over all combinations (Dufour 2006)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError
from hullcal.engines.engine import Problem
from hullcal.engines.objective import Objective
from hullcal.engines.packed import Packed
from hullcal.engines.streamed import Streamed
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
    proof of a global maximum. In memory it runs on one thread.
    """

    name: ClassVar[str] = "maximized"
    hypothesis: ClassVar[str] = CALIBRATED
    searches_measure: ClassVar[bool] = False
    can_keep: ClassVar[bool] = False

    def check(self, measure: Measure, minimizer: Minimizer) -> None:
        super().check(measure, minimizer)
        if not minimizer.any_function:
            raise InvalidInputError(
                f"null `{self.name}` maximises a step function of the weights, which minimizer "
                f'`{minimizer.name}` cannot take; use minimizer="steepest".'
            )

    def run(self, problem: Problem, minimizer: Minimizer, resampling: Resampling) -> Outcome:
        objective = problem.objective
        # Most searches converge before that; progress is told in these terms.
        budget = min(minimizer.max_evaluations or 1, _USUAL * objective.n_members)
        # Where g is smallest the p-value is often large: one more start.
        smallest = minimizer.observed(objective, resampling.key)
        starts = np.concatenate([objective.starts(), smallest.weights[:, np.newaxis]], axis=1)
        ranked: _Rank | _RankOverRows
        searched: Objective
        if isinstance(objective, Streamed):
            ranked = searched = _RankOverRows.over(objective, starts, resampling, budget)
        else:
            packed = problem.packed
            ranked = _Rank(objective=packed, resampling=resampling, budget=budget)
            searched = replace(packed, measure=ranked, entries=None, settled_starts=starts)
        found = minimizer.minimize(searched, resampling.key)
        if resampling.progress is not None:
            resampling.progress(resampling.n_resamples, resampling.n_resamples)
        # A search that chooses its own starts may have passed that one by.
        weights = min(
            (found.weights[0], smallest.weights[0]),
            key=lambda weights: _score(*ranked.at_weights(weights)),
        )
        statistic, distribution = ranked.at_weights(weights)
        n_evaluations = int(found.n_evaluations[0]) * (resampling.n_resamples + 1)
        if objective.n_members > 1:
            n_evaluations += int(smallest.n_evaluations[0])
        return Outcome(
            statistic=statistic,
            minimum=statistic,
            weights=weights,
            distribution=distribution,
            n_evaluations=n_evaluations,
            converged=bool(found.converged[0]),
            notes=("null maximized: weights and statistic are where the p-value is largest",),
        )


#: Combinations looked at, for each member, before a search converges.
_USUAL = 50


def _score(statistic: float, null: Floats) -> float:
    """What the search minimises: minus the number of exceedances at λ, ties broken by g there."""
    tie_break = 0.5 if np.isinf(statistic) else 0.5 * statistic / (1.0 + abs(statistic))
    return tie_break - float(exceeds(null, statistic).sum())


def _report(resampling: Resampling, calls: int, budget: int) -> None:
    """Work is counted in combinations here, but told in resamples, whenever one more is done."""
    progress, total = resampling.progress, resampling.n_resamples
    done = calls * total // budget
    if progress is not None and (calls - 1) * total // budget < done < total:
        progress(done, total)


@dataclass(frozen=True, kw_only=True)
class _Rank(Measure):
    """The score as a measure of predictions in memory."""

    name: ClassVar[str] = "rank"
    easily_searched: ClassVar[bool] = True  # a combination costs as much as all resamples
    objective: Packed
    resampling: Resampling
    budget: int
    calls: count[int] = field(default_factory=lambda: count(1))

    @property
    def value(self) -> Callable[..., float]:  # type: ignore[override]
        """The score of mixed predictions; it ranks by exceedances, then by g."""

        def score(mixed: Floats, *_: NDArray[np.generic]) -> float:
            found = _score(*self.at(mixed))
            _report(self.resampling, next(self.calls), self.budget)
            return found

        return score

    def at(self, mixed: Floats) -> tuple[float, Floats]:
        """g of the data, and of labels drawn from the mixed predictions."""
        key, n_resamples = self.resampling.key, self.resampling.n_resamples
        return of_combination(self.objective, mixed, key, n_resamples)

    def at_weights(self, weights: Floats) -> tuple[float, Floats]:
        """The same for a combination."""
        return self.at(self.objective.mixed(weights))

    def state_size(self, n_classes: int) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class _RankOverRows(Streamed):
    """The score as an objective over rows: every combination takes two passes."""

    begins: Floats = field(kw_only=True)
    resampling: Resampling = field(kw_only=True)
    budget: int = field(kw_only=True)
    calls: count[int] = field(default_factory=lambda: count(1))

    @classmethod
    def over(
        cls, objective: Streamed, starts: Floats, resampling: Resampling, budget: int
    ) -> _RankOverRows:
        """The score of what this objective measures."""
        own = (objective.measure, objective.passes, objective.parameters, objective.offset)
        return cls(*own, begins=starts, resampling=resampling, budget=budget)

    def starts(self) -> Floats:
        return self.begins

    def at_weights(self, weights: Floats) -> tuple[float, Floats]:
        """g of the data, and of labels drawn from the combination."""
        g = Streamed(self.measure, self.passes, self.parameters, self.offset)
        labels = g.drawing_labels(weights, self.resampling.key)(0, self.resampling.n_resamples)
        return float(g.at(weights)[0]), labels.at(weights)

    def values(self, weights: Floats, cases: NDArray[np.int64]) -> Floats:
        values = []
        for point in weights:
            values.append(_score(*self.at_weights(point)))
            _report(self.resampling, next(self.calls), self.budget)
        return np.array(values)

    moves = Objective.moves
