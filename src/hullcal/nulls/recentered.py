"""Rows resampled with their labels, around the best combination made exactly calibrated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hullcal.engines.engine import Problem
from hullcal.engines.objective import Objective
from hullcal.minimizers import Minimizer
from hullcal.nulls._base import CALIBRATED, Floats, Null, Outcome, Replicates, Resampling
from hullcal.pvalues import DOUBT


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

    Where few rows share an entry of the residual vector, as in `ece_cwise` with many classes, row
    counts vary less than labels would, all null values are too small, and a calibrated set is rejected.
    The result has a note where 40 replicates at the minimiser show it.
    """

    name: ClassVar[str] = "recentered"
    hypothesis: ClassVar[str] = CALIBRATED
    needs_residual: ClassVar[bool] = True
    can_stop: ClassVar[bool] = True
    draws_rows: ClassVar[bool] = True

    def run(self, problem: Problem, minimizer: Minimizer, resampling: Resampling) -> Outcome:
        objective = problem.objective
        replicates = Replicates(minimizer, resampling)
        observed = replicates.observed(objective)
        best, statistic = observed.weights[0], float(observed.means[0])
        notes: tuple[str, ...] = ()
        if objective.n_members == 1:
            distribution = replicates.of_labels(objective, best, statistic)
        elif np.isinf(statistic):
            likeliest = objective.maximum_likelihood()
            distribution = replicates.of_labels(objective, likeliest, statistic)
            notes = (_REDRAWN,)
        else:
            centered = objective.recentered(best)
            rows = centered.drawing_rows(resampling.key)
            distribution = replicates.of_draws(rows, centered, statistic)
            notes = _too_small(objective, centered, best, resampling)
        return Outcome(
            statistic=statistic,
            minimum=float(observed.values[0]),
            weights=best,
            distribution=distribution,
            n_evaluations=replicates.n_evaluations,
            converged=bool(observed.converged[0]),
            notes=notes,
        )


#: What a result says where the residual vector could not be subtracted.
_REDRAWN = (
    "the statistic is infinite, so null recentered drew labels from the maximum-likelihood combination "
    "instead of rows"
)

#: Replicates that show how large the noise of a combination is, so many at a time, and by how many of
#: their standard deviations that of the bootstrap may fall short.
_LOOKED_AT, _AT_A_TIME, _SHORT = 40, 8, 1.5


def _too_small(
    objective: Objective, centered: Objective, best: Floats, resampling: Resampling
) -> tuple[str, ...]:
    """A note if row counts make less noise than labels drawn from the best combination itself."""
    rows = centered.drawing_rows(resampling.key)
    labels = objective.drawing_labels(best, resampling.key)
    by_rows: list[float] = []
    by_labels: list[float] = []
    for first in range(0, _LOOKED_AT, _AT_A_TIME):
        by_rows.extend(rows(first, first + _AT_A_TIME).at(best))
        by_labels.extend(labels(first, first + _AT_A_TIME).at(best))
    noise = np.mean(by_labels)
    # Of a signed measure, or of labels that are certain, there may be no noise to compare with.
    if noise <= 0 or noise - np.mean(by_rows) <= _SHORT * np.std(by_labels):
        return ()
    share = max(0.0, np.mean(by_rows) / noise)
    return (
        f"{DOUBT}: resampled rows make {share:.2f} of the noise that labels would, so that the "
        'p-value of null "recentered" may be too small; null="stacked" asks the same',
    )
