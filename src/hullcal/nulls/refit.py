"""Labels redrawn from the maximum-likelihood combination, and the search run again on each draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hullcal.engines.engine import Problem
from hullcal.minimizers import Minimizer
from hullcal.nulls._base import TRUTH, Null, Outcome, Replicates, Resampling


@dataclass(frozen=True, kw_only=True)
class Refit(Null):
    """A parametric bootstrap for "the hull contains the truth".

    Rows stay fixed; labels come from the combination of greatest likelihood (EM on the mixture
    likelihood); every replicate is minimised as the data were. Its level holds asymptotically when
    labels follow some combination given x. A set that is calibrated without containing the truth is
    rejected, and rightly so.
    """

    name: ClassVar[str] = "refit"
    hypothesis: ClassVar[str] = TRUTH
    can_stop: ClassVar[bool] = True

    def run(self, problem: Problem, minimizer: Minimizer, resampling: Resampling) -> Outcome:
        objective = problem.objective
        replicates = Replicates(minimizer, resampling)
        observed = replicates.observed(objective)
        statistic = float(observed.means[0])
        likeliest = objective.maximum_likelihood()
        distribution = replicates.of_labels(objective, likeliest, statistic)
        return Outcome(
            statistic=statistic,
            minimum=float(observed.values[0]),
            weights=observed.weights[0],
            distribution=distribution,
            n_evaluations=replicates.n_evaluations,
            converged=bool(observed.converged[0]),
        )
