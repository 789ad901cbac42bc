"""What a null is: a hypothesis, and a way to make the distribution of the statistic under it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from hullcal._validation import InvalidInputError
from hullcal.measures import Measure
from hullcal.minimizers import Minima, Minimizer
from hullcal.notes import Note
from hullcal.objectives.base import Floats, Objective
from hullcal.resampling import Loop
from hullcal.words import CALIBRATED as CALIBRATED
from hullcal.words import ONE_CALIBRATED as ONE_CALIBRATED
from hullcal.words import TRUTH as TRUTH


@dataclass(frozen=True, kw_only=True)
class Null:
    """What `hullcal.algorithm.algorithm_1` has to know of lines 2 to 5.

    A null says what replicates of the data are (`replicates`) and what is compared of them
    (`statistic`); the loop over them is the same for all.
    """

    name: ClassVar[str]
    hypothesis: ClassVar[str]
    #: Whether the distribution is made by subtracting a residual vector.
    needs_residual: ClassVar[bool] = False
    #: Whether null values come one by one, so that resampling can stop early and be resumed.
    one_by_one: ClassVar[bool] = True

    @classmethod
    def defaults(cls) -> tuple[Null, ...]:
        """The values that plain names stand for."""
        return (cls(),)

    def check(self, measure: Measure, minimizer: Minimizer) -> None:
        """Refuse a measure or a search that this null cannot take, naming both and what would do."""
        if self.needs_residual and "residual" not in measure.traits:
            raise InvalidInputError(
                f"null `{self.name}` needs a residual vector, and measure `{measure.name}` has none; "
                'use null="stacked", "maximized" or "paper".'
            )

    def needs_predictions(self, measure: Measure) -> bool:
        """Whether predictions have to be in memory, since sums over rows are not enough."""
        return False

    def settings(self) -> dict[str, Any]:
        """The fields of this null."""
        return asdict(self)

    def line_7(self, objective: Objective, minimizer: Minimizer, loop: Loop) -> Minima:
        """The best combination of the data, and in `means` what is compared with null values."""
        return minimizer.minimize(objective, loop.key, of_data=True)

    def observed(self, objective: Objective, minimizer: Minimizer, loop: Loop) -> Floats:
        """What is compared of each case, were it the data."""
        return minimizer.minimize(objective, loop.key).means

    def worlds(self, objective: Objective, best: Minima, loop: Loop) -> Sequence[Any]:
        """What may be true of the data, each for `replicates`; the largest p-value counts."""
        return [best]

    def replicates(self, objective: Objective, best: Any, loop: Loop) -> Callable[[int, int], Any]:
        """Lines 2 to 4: what draws the replicates first to last - 1 of the data."""
        raise NotImplementedError

    def together(self, objective: Objective, minimizer: Minimizer) -> int:
        """How many replicates to draw at a time."""
        return objective.together(minimizer.evaluations(objective.n_members))

    def statistic(self, replicates: Any, minimizer: Minimizer, loop: Loop) -> Floats:
        """Line 5 for some replicates: each is searched as the data were. Values, and evaluations."""
        minima = minimizer.minimize(replicates, loop.key)
        return np.column_stack([minima.means, minima.n_evaluations])

    def notes(self, objective: Objective, best: Minima, loop: Loop) -> tuple[Note, ...]:
        """What to know of this null on these data."""
        return ()
