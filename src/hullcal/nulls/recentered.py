"""Rows resampled with their labels, around the best combination made exactly calibrated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hullcal._compiled.mixing import cumulate, draw_counts, draw_labels
from hullcal.engines.local import Problem
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

    def run(self, problem: Problem, minimizer: Minimizer, resampling: Resampling) -> Outcome:
        objective = problem.objective
        replicates = Replicates(minimizer, resampling)
        observed = replicates.minimize(objective)
        best, statistic = observed.weights[0], float(observed.values[0])
        notes: tuple[str, ...] = ()
        if objective.n_members == 1:
            distribution = replicates.of_labels(objective, best, statistic)
        elif np.isinf(statistic):
            likeliest = objective.maximum_likelihood()
            distribution = replicates.of_labels(objective, likeliest, statistic)
        else:
            centered = objective.recentered(best)

            def block(first: int, last: int) -> Floats:
                counts = np.zeros((last - first, objective.n_samples))
                draw_counts(resampling.key, first, objective.measure.rows_per_unit, counts)
                return replicates.minimize(centered.with_row_weights(counts)).values

            distribution = replicates.run(block, objective, statistic=statistic)
            notes = _too_small(objective, centered, best, resampling)
        return Outcome(
            statistic=statistic,
            weights=best,
            distribution=distribution,
            n_evaluations=replicates.n_evaluations,
            converged=bool(observed.converged[0]),
            notes=notes,
        )


#: Replicates that show how large the noise of a combination is, so many at a time, and by how many of
#: their standard deviations that of the bootstrap may fall short.
_LOOKED_AT, _AT_A_TIME, _SHORT = 40, 8, 1.5


def _too_small(
    objective: Objective, centered: Objective, best: Floats, resampling: Resampling
) -> tuple[str, ...]:
    """A note if row counts make less noise than labels drawn from the best combination itself."""
    size = (_AT_A_TIME, objective.n_samples)
    cumulative = np.empty(objective.members.shape[1:])
    cumulate(objective.mixed(best), cumulative)
    by_rows: list[float] = []
    by_labels: list[float] = []
    for first in range(0, _LOOKED_AT, _AT_A_TIME):
        counts, labels = np.zeros(size), np.empty(size, dtype=np.int32)
        draw_counts(resampling.key, first, objective.measure.rows_per_unit, counts)
        draw_labels(cumulative, resampling.key, first, labels)
        by_rows.extend(centered.with_row_weights(counts).at(best))
        by_labels.extend(objective.with_labels(labels).at(best))
    if np.mean(by_labels) - np.mean(by_rows) <= _SHORT * np.std(by_labels):
        return ()
    share = np.mean(by_rows) / np.mean(by_labels)
    return (
        f"{DOUBT}: resampled rows make {share:.2f} of the noise that labels would, so that the "
        'p-value of null "recentered" may be too small; null="stacked" asks the same',
    )
