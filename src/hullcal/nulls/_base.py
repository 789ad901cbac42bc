"""What a null is: a hypothesis, and a way to make the distribution of the statistic under it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError
from hullcal.measures import Measure
from hullcal.minimizers import Minima, Minimizer
from hullcal.objectives.base import Draw, Objective
from hullcal.resampling import Loop, Progress

Floats = NDArray[np.float64]

#: H0 and H0' of the definitions, in words.
CALIBRATED = "the convex hull of the members contains a calibrated classifier"
TRUTH = "the convex hull of the members contains the truth"
#: Both, for a set of one: labels drawn from its predictions are all that calibration asks for.
ONE_CALIBRATED = "the classifier is calibrated"


@dataclass(frozen=True, kw_only=True)
class Null:
    """Lines 1 to 5 of Algorithm 1, or a better answer to the same need.

    A null says what replicates of the data are (`replicates`) and what is compared of them
    (`statistic`); the loop over them is the same for all, unless `distribution` is overridden.
    """

    name: ClassVar[str]
    hypothesis: ClassVar[str]
    #: Whether the distribution is made by subtracting a residual vector.
    needs_residual: ClassVar[bool] = False
    #: Whether replicates are searched as the data are, so that ends of searches are compared.
    searches_replicates: ClassVar[bool] = True
    #: Whether null values come one by one, so that resampling can stop early and be resumed.
    one_by_one: ClassVar[bool] = True

    @classmethod
    def defaults(cls) -> tuple[Null, ...]:
        """The values that plain names stand for."""
        return (cls(),)

    def check(self, measure: Measure, minimizer: Minimizer) -> None:
        """Refuse a measure or a search that this null cannot take, naming both and what would do."""
        if self.needs_residual and not measure.has_residual:
            raise InvalidInputError(
                f"null `{self.name}` needs a residual vector, and measure `{measure.name}` has none; "
                'use null="stacked", "refit", "maximized" or "paper".'
            )

    def needs_predictions(self, measure: Measure) -> bool:
        """Whether predictions have to be in memory, since sums over rows are not enough."""
        return False

    def settings(self) -> dict[str, Any]:
        """The fields of this null."""
        return asdict(self)

    def replicates(self, objective: Objective, best: Minima, loop: Loop) -> Draw:
        """Lines 2 to 4: what draws the replicates first to last - 1 of the data."""
        raise NotImplementedError

    def statistic(self, replicates: Objective, minimizer: Minimizer, loop: Loop) -> Floats:
        """Line 5 for some replicates: each is searched as the data were. Values, and evaluations."""
        minima = minimizer.minimize(replicates, loop.key)
        return np.column_stack([minima.means, minima.n_evaluations])

    def distribution(
        self, objective: Objective, best: Minima, minimizer: Minimizer, loop: Loop
    ) -> dict[str, Any]:
        """Lines 1 to 5: those fields of the result that replicates decide."""
        draw = self.replicates(objective, best, loop)
        found = self._loop(draw, objective, best, minimizer, loop)
        return {"null_distribution": found[:, 0], "n_evaluations": int(found[:, 1].sum())}

    def _loop(
        self,
        draw: Draw,
        objective: Objective,
        best: Minima,
        minimizer: Minimizer,
        loop: Loop,
        *,
        progress: Progress | None = None,
        part: str = "",
    ) -> Floats:
        """Line 1: for d = 1, ..., D."""
        return loop.run(
            lambda first, last: self.statistic(draw(first, last), minimizer, loop),
            float(best.means[0]),
            together=objective.together(minimizer.evaluations(objective.n_members)),
            n_jobs=objective.threads(loop.n_jobs),
            progress=progress,
            part=part,
        )
