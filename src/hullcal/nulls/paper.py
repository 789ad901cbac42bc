"""Lines 1 to 5 of Algorithm 1, to the letter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from hullcal._compiled.jit import compiled
from hullcal._compiled.streams import uniform_weights
from hullcal._validation import InvalidInputError
from hullcal.measures import Measure
from hullcal.minimizers import Minima, Minimizer
from hullcal.nulls._base import CALIBRATED, Null
from hullcal.objectives.base import Floats, Objective
from hullcal.resampling import Loop


@dataclass(frozen=True, kw_only=True)
class Paper(Null):
    """The null of Mortier et al. (2023).

    A replicate draws rows with replacement (line 2), weights uniformly from the simplex (line 3) and
    labels from that combination (line 4), and evaluates g there without a search (line 5). Since
    line 7 minimises and line 5 does not, the test is very conservative, the more so the better the
    search; nothing is proven about its level. It is broken where cells are many beside the rows, as
    in `ece_cwise` with 100 classes and 100 rows: copies of a row share their cells, so that replicates
    have smaller statistics than the data.

    With ``rows="permuted"`` line 2 only permutes the rows, as the authors' scripts do.
    """

    name: ClassVar[str] = "paper"
    hypothesis: ClassVar[str] = CALIBRATED
    rows: Literal["resampled", "permuted"] = "resampled"

    def __post_init__(self) -> None:
        if self.rows not in ("resampled", "permuted"):
            raise InvalidInputError(
                f'`rows` must be "resampled" or "permuted"; got {self.rows!r:.80}. Pass one of them.'
            )

    def needs_predictions(self, measure: Measure) -> bool:
        # Neighbours in the sample come from anywhere in the data.
        return "ordered" in measure.traits

    def line_7(self, objective: Objective, minimizer: Minimizer, loop: Loop) -> Minima:
        found = super().line_7(objective, minimizer, loop)
        return replace(found, means=found.values)  # null values are of single points, too

    def observed(self, objective: Objective, minimizer: Minimizer, loop: Loop) -> Floats:
        return self.line_7(objective, minimizer, loop).means

    def replicates(
        self, objective: Objective, best: Minima, loop: Loop
    ) -> Callable[[int, int], Floats]:
        """Lines 2 to 5: rows are drawn, labelled and evaluated in one pass."""
        permuted = self.rows == "permuted"

        def values(first: int, last: int) -> Floats:
            replicates = np.arange(first, last)
            weights = np.empty((len(replicates), objective.n_members))
            _line_3(loop.key, replicates, objective.copies, weights)
            return objective.resampled(loop.key, replicates, weights, permuted=permuted)

        return values

    def together(self, objective: Objective, minimizer: Minimizer) -> int:
        return objective.together(None)

    def statistic(self, replicates: Floats, minimizer: Minimizer, loop: Loop) -> Floats:
        return np.column_stack([replicates, np.ones(len(replicates))])


@compiled
def _line_3(key, replicates, copies, out):  # type: ignore[no-untyped-def]
    """Uniform weights of each replicate. The simplex is that of all members; identical ones add up."""
    simplex = np.empty(copies.sum())
    for r in range(replicates.shape[0]):
        uniform_weights(key, replicates[r], simplex)
        m = 0
        for distinct in range(copies.shape[0]):
            out[r, distinct] = 0.0
            for _ in range(copies[distinct]):
                out[r, distinct] += simplex[m]
                m += 1
