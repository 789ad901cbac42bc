"""Labels redrawn from the maximum-likelihood combination, and the search run again on each draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hullcal.minimizers import Minima
from hullcal.nulls._base import TRUTH, Null
from hullcal.objectives.base import Draw, Objective
from hullcal.resampling import Loop


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

    def replicates(self, objective: Objective, best: Minima, loop: Loop) -> Draw:
        return objective.drawing_labels(objective.maximum_likelihood(), loop.key)
