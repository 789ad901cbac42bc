"""Rows resampled with their labels, around the best combination made exactly calibrated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hullcal._compiled.mixing import draw_counts
from hullcal.engines.local import Problem
from hullcal.minimizers import Minimizer
from hullcal.nulls._base import CALIBRATED, Floats, Null, Outcome, Replicates, Resampling


@dataclass(frozen=True, kw_only=True)
class Recentered(Null):
    r"""The bootstrap of the over-identification test (Hall & Horowitz 1996).

    g is the norm of a residual vector :math:`R(\lambda)`. A replicate draws rows with their labels,
    with replacement, and minimises the norm of :math:`R^*(\lambda) - R(\hat\lambda)`: in that world
    :math:`\hat\lambda` is exactly calibrated. The level holds asymptotically, and only calibration
    is assumed, not that labels follow a combination given x.

    For one member there is nothing to search and labels are redrawn from its predictions instead.
    They are redrawn too, from the maximum-likelihood combination, where the statistic is infinite
    because no combination could have produced the labels: an infinite residual cannot be subtracted.
    """

    name: ClassVar[str] = "recentered"
    hypothesis: ClassVar[str] = CALIBRATED
    needs_residual: ClassVar[bool] = True

    def run(self, problem: Problem, minimizer: Minimizer, resampling: Resampling) -> Outcome:
        objective = problem.objective
        replicates = Replicates(minimizer, resampling)
        observed = replicates.minimize(objective)
        best = observed.weights[0]
        if objective.n_members == 1:
            distribution = replicates.of_labels(objective, best)
        elif np.isinf(observed.values[0]):
            distribution = replicates.of_labels(objective, objective.maximum_likelihood())
        else:
            centered = objective.recentered(best)

            def block(first: int, last: int) -> Floats:
                counts = np.zeros((last - first, objective.n_samples))
                draw_counts(resampling.key, first, objective.measure.rows_per_unit, counts)
                return replicates.minimize(centered.with_row_weights(counts)).values

            distribution = replicates.run(block, objective)
        return Outcome(
            statistic=float(observed.values[0]),
            weights=best,
            distribution=distribution,
            n_evaluations=replicates.n_evaluations,
            converged=bool(observed.converged[0]),
        )
