"""Rows resampled with their labels, around the best combination made exactly calibrated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hullcal.minimizers import Minima
from hullcal.notes import Note
from hullcal.nulls._base import CALIBRATED, Null
from hullcal.objectives.base import Draw, Floats, Objective
from hullcal.resampling import Loop


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

    def replicates(self, objective: Objective, best: Minima, loop: Loop) -> Draw:
        if objective.n_members == 1:
            return objective.drawing_labels(best.weights[0], loop.key)
        if np.isinf(best.means[0]):
            return objective.drawing_labels(objective.maximum_likelihood(), loop.key)
        return objective.recentered(best.weights[0]).drawing_rows(loop.key)

    def notes(self, objective: Objective, best: Minima, loop: Loop) -> tuple[Note, ...]:
        if objective.n_members == 1:
            return ()
        if np.isinf(best.means[0]):
            return (Note("labels_redrawn"),)
        return _too_small(objective, best.weights[0], loop)


#: Replicates that show how large the noise of a combination is, so many at a time, and by how many of
#: their standard deviations that of the bootstrap may fall short.
_LOOKED_AT, _AT_A_TIME, _SHORT = 40, 8, 1.5


def _too_small(objective: Objective, best: Floats, loop: Loop) -> tuple[Note, ...]:
    """A note if row counts make less noise than labels drawn from the best combination itself."""
    rows = objective.recentered(best).drawing_rows(loop.key)
    labels = objective.drawing_labels(best, loop.key)
    by_rows: list[float] = []
    by_labels: list[float] = []
    for first in range(0, _LOOKED_AT, _AT_A_TIME):
        by_rows.extend(rows(first, first + _AT_A_TIME).at(best))
        by_labels.extend(labels(first, first + _AT_A_TIME).at(best))
    noise = np.mean(by_labels)
    # Of a signed measure, or of labels that are certain, there may be no noise to compare with.
    if noise <= 0 or noise - np.mean(by_rows) <= _SHORT * np.std(by_labels):
        return ()
    share = max(0.0, float(np.mean(by_rows) / noise))
    return (Note("too_few_rows", {"share": share}),)
