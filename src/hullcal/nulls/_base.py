"""What a null is: a hypothesis, and a way to make the distribution of the statistic under it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError
from hullcal.engines.engine import Problem
from hullcal.engines.local import Progress, run_replicates
from hullcal.engines.objective import Draw, Objective
from hullcal.measures import Measure
from hullcal.minimizers import Minima, Minimizer
from hullcal.nulls._journal import ResamplingJournal
from hullcal.pvalues import exceeds

Floats = NDArray[np.float64]

#: H0 and H0' of the definitions, in words.
CALIBRATED = "the convex hull of the members contains a calibrated classifier"
TRUTH = "the convex hull of the members contains the truth"
#: Resamples run before the next look, in units of the exceedances that are enough.
_WAVE = 2
#: Both, for a set of one: labels drawn from its predictions are all that calibration asks for.
ONE_CALIBRATED = "the classifier is calibrated"


@dataclass(frozen=True, slots=True)
class Resampling:
    """How the replicates are run: how many, from which stream, on how many threads."""

    n_resamples: int
    key: NDArray[np.uint64]
    n_jobs: int = 1
    progress: Progress | None = None
    #: Exceedances that are enough, if not all resamples have to be run.
    stop_after: int | None = None
    #: Where finished blocks are kept, if they are.
    journal: ResamplingJournal | None = None

    def enough(self, statistic: float) -> Callable[[Floats], int | None]:
        """How many null values to keep once enough of them have reached the statistic.

        Besag and Clifford (1991) stop at the l-th value, the h-th to reach the statistic, with the
        p-value h / l. Without that last value the usual formula says the same of the others:
        (1 + (h - 1)) / (1 + (l - 1)).
        """

        def kept(values: Floats) -> int | None:
            assert self.stop_after is not None
            reached = np.flatnonzero(exceeds(values, statistic))
            return int(reached[self.stop_after - 1]) if len(reached) >= self.stop_after else None

        return kept


@dataclass(frozen=True, slots=True)
class Outcome:
    """The statistic and the minimum with its weights (of distinct members), and the null values."""

    statistic: float
    minimum: float
    weights: Floats
    distribution: Floats
    n_evaluations: int
    converged: bool
    #: What a user should hear about this distribution.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Null:
    """Lines 1 to 5 of Algorithm 1, or a better answer to the same need."""

    name: ClassVar[str]
    hypothesis: ClassVar[str]
    #: Whether the distribution is made by subtracting a residual vector.
    needs_residual: ClassVar[bool] = False
    #: Whether what is searched is the measure itself.
    searches_measure: ClassVar[bool] = True
    #: Whether resampling can stop early: null values are independent and come one after the other.
    can_stop: ClassVar[bool] = False
    #: Whether finished resamples can be kept, and a run continued.
    can_keep: ClassVar[bool] = True
    #: Whether replicates draw rows, and not only labels.
    draws_rows: ClassVar[bool] = False

    @classmethod
    def defaults(cls) -> tuple[Null, ...]:
        """The values that plain names stand for."""
        return (cls(),)

    def check(self, measure: Measure, minimizer: Minimizer) -> None:
        """Refuse a measure that this null cannot take, naming both and what would do."""
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

    def run(self, problem: Problem, minimizer: Minimizer, resampling: Resampling) -> Outcome:
        """Statistic and reference distribution."""
        raise NotImplementedError


#: Null values of some replicates, and the evaluations of g that each took: (n_replicates, 2).
Found = Floats
Block = Callable[[int, int], Found]


def found(values: Floats, n_evaluations: Any = 1) -> Found:
    """What a block gives back."""
    out = np.empty((len(values), 2))
    out[:, 0], out[:, 1] = values, n_evaluations
    return out


class Replicates:
    """Minima of replicates of the data, each searched as the data were."""

    def __init__(self, minimizer: Minimizer, resampling: Resampling) -> None:
        self._minimizer = minimizer
        self._resampling = resampling
        self.n_evaluations = 0

    def observed(self, objective: Objective) -> Minima:
        """Line 7 for the data, its evaluations counted."""
        minima = self._minimizer.observed(objective, self._resampling.key)
        self.n_evaluations += int(minima.n_evaluations.sum())
        if self._resampling.journal is not None:
            statistic = float(minima.values[0])
            self._resampling.journal.check_data(statistic, objective.fingerprint())
        return minima

    def minimize(self, objective: Objective) -> Found:
        """Line 7 for replicates."""
        minima = self._minimizer.minimize(objective, self._resampling.key)
        return found(minima.means, minima.n_evaluations)

    def of_labels(
        self, objective: Objective, weights: Floats, statistic: float | None = None
    ) -> Floats:
        """Rows fixed, labels drawn from p_weights, minimised again."""
        draw = objective.drawing_labels(weights, self._resampling.key)
        return self.of_draws(draw, objective, statistic)

    def of_draws(
        self, draw: Draw, objective: Objective, statistic: float | None = None, **how: Any
    ) -> Floats:
        """Minima of the replicates that `draw` makes of the objective's data; see `run` for the rest."""

        def block(first: int, last: int) -> Found:
            return self.minimize(draw(first, last))

        return self.run(block, objective, statistic=statistic, **how)

    def run(
        self,
        block: Block,
        objective: Objective,
        *,
        statistic: float | None = None,
        together: int | None = None,
        progress: Progress | None = None,
        part: str = "",
    ) -> Floats:
        """Replicates, block by block: all of them, each a search, unless said otherwise.

        A block has at most `together` replicates. With the `statistic` known the run may stop early,
        if that is wished. A null that has several runs names them as `part` of the journal.
        """
        own = self._resampling
        stopping: dict[str, Any] = {}
        if own.stop_after is not None and statistic is not None:
            stopping = {"wave": _WAVE * own.stop_after, "enough": own.enough(statistic)}
        if together is None:
            together = objective.together(self._minimizer.evaluations(objective.n_members))
        if own.journal is not None:
            block = own.journal.keeping(part, block)
        out = run_replicates(
            block,
            own.n_resamples,
            together,
            n_jobs=objective.threads(own.n_jobs),
            progress=own.progress if progress is None else progress,
            **stopping,
        )
        self.n_evaluations += int(out[:, 1].sum())
        return np.ascontiguousarray(out[:, 0])
