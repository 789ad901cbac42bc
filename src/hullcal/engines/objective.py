"""g as a function of the weights: what a search is given, and all it may ask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from hullcal.measures import Measure
from hullcal.simplex import moved

Floats = NDArray[np.float64]

#: EM steps behind the label-dependent start of a search; a start need not be at the maximum.
START_ITERATIONS = 12
EM_ITERATIONS = 500
EM_TOLERANCE = 1e-9
#: Probabilities that may be read before the next look at the clock and the keyboard.
READ_AT_ONCE = 50_000_000


class Objective(ABC):
    """g as a function of the weights, for one set of predictions and one or more *cases*.

    A case is a labelling and a weighting of the rows: the data are one case, replicates are others.
    Members are the distinct ones, in an order that does not depend on the user's.
    """

    __slots__ = ()
    measure: Measure

    @property
    @abstractmethod
    def n_members(self) -> int:
        """Distinct members."""

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """K."""

    @property
    @abstractmethod
    def n_samples(self) -> int:
        """N."""

    @property
    @abstractmethod
    def n_cases(self) -> int:
        """Labellings and weightings."""

    @abstractmethod
    def values(self, weights: Floats, cases: NDArray[np.int64]) -> Floats:
        """g at each row of `weights`, for the case named beside it."""

    def moves(self, bases: Floats, cases: NDArray[np.int64], amounts: Floats) -> Floats:
        """g after every move from every base, (n_bases, 2 * n_members); +inf where there is none.

        Column c of `amounts` is a move to (1 - a) * base + a * e_m with m = c // 2: towards a member,
        or away from it if a < 0; none if a = 0. Each base stands for the case named beside it.
        """
        values = np.full(amounts.shape, np.inf)
        rows, columns = np.nonzero(amounts)
        points = moved(bases[rows], columns // 2, amounts[rows, columns])
        values[rows, columns] = self.values(points, cases[rows])
        return values

    @abstractmethod
    def at(self, weights: Floats) -> Floats:
        """g at the same weights for all cases."""

    @abstractmethod
    def only(self, cases: NDArray[np.int64]) -> Objective:
        """The objective of some of the cases."""

    @abstractmethod
    def starts(self) -> Floats:
        """Where a search of each case begins: the mean and a few steps towards maximum likelihood.

        The shape is (n_cases, 2, n_members).
        """

    @abstractmethod
    def maximum_likelihood(self) -> Floats:
        """EM weights of the first case."""

    @abstractmethod
    def recentered(self, weights: Floats) -> Objective:
        """The objective whose residual vector has the first case's at `weights` subtracted."""

    @abstractmethod
    def drawing_labels(self, weights: Floats, key: NDArray[np.uint64]) -> Draw:
        """The same rows, with labels drawn from the combination at these weights."""

    @abstractmethod
    def drawing_rows(self, key: NDArray[np.uint64]) -> Draw:
        """The data with rows drawn with replacement, their labels with them."""

    @abstractmethod
    def impossible(self) -> int:
        """Rows whose label has probability 0 by every member."""

    @abstractmethod
    def fingerprint(self) -> Floats:
        """A few numbers that other data, or the same in another order, would hardly have."""

    @abstractmethod
    def together(self, n_evaluations: int) -> int:
        """How many cases to search at a time: steady progress, prompt interruption, modest memory."""

    @abstractmethod
    def threads(self, wanted: int) -> int:
        """On how many threads replicates are to be searched."""

    def parts(self, *, starts: bool = True) -> Iterator[Objective]:
        """Objectives to be searched in the place of this one: all its cases, in order."""
        yield self


#: draw(first, last) is the objective of replicates first to last - 1, one case each.
Draw = Callable[[int, int], Objective]
