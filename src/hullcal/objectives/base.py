"""g as a function of the weights: what a search may ask, and what a null may."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal.measures import Measure
from hullcal.simplex import moved

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: EM steps behind the label-dependent start of a search; a start need not be at the maximum.
START_ITERATIONS = 12
EM_ITERATIONS = 500
EM_TOLERANCE = 1e-9
#: Probabilities that may be read before the next look at the clock and the keyboard.
READ_AT_ONCE = 50_000_000


class Function(ABC):
    """A function of the weights for one or more *cases*: all that a search may ask."""

    #: Distinct members.
    n_members: int
    n_cases: int

    @abstractmethod
    def values(self, weights: Floats, cases: Integers) -> Floats:
        """The function at each row of `weights`, for the case named beside it."""

    def moves(self, bases: Floats, cases: Integers, amounts: Floats) -> Floats:
        """The function after every move from every base; +inf where there is no move.

        Column c of `amounts`, (n_bases, 2 * n_members), is a move to (1 - a) * base + a * e_m with
        m = c // 2: towards a member, or away from it if a < 0; none if a = 0.
        """
        values = np.full(amounts.shape, np.inf)
        rows, columns = np.nonzero(amounts)
        points = moved(bases[rows], columns // 2, amounts[rows, columns])
        values[rows, columns] = self.values(points, cases[rows])
        return values

    def starts(self) -> Floats:
        """Where a search of each case begins, (n_cases, n_starts, n_members).

        That is the mean, to which a search may add its own; more are settled.
        """
        return np.full((self.n_cases, 1, self.n_members), 1.0 / self.n_members)

    @abstractmethod
    def likeliest(self) -> Floats:
        """Weights of nearly maximum likelihood, a further start, (n_cases, 1, n_members)."""

    def parts(self) -> Sequence[Function]:
        """Functions to be searched in the place of this one: all its cases, in order."""
        return [self]


class Objective(Function):
    """g(p_λ, D), for one set of predictions and one or more cases.

    A case is a labelling and a weighting of the rows: the data are one case, replicates are others.
    Members are the distinct ones, in an order that does not depend on the user's.
    """

    n_classes: int
    n_samples: int
    measure: Measure
    #: How often each distinct member was given by the user.
    copies: Integers

    def values(self, weights: Floats, cases: Integers) -> Floats:
        # Moves without a column are the bases themselves.
        return self.moves(np.ascontiguousarray(weights), cases, np.zeros((len(weights), 0)))[:, 0]

    @abstractmethod
    def at(self, weights: Floats) -> Floats:
        """g at the same weights for all cases."""

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
    def resampled(
        self, key: NDArray[np.uint64], replicates: Integers, weights: Floats, *, permuted: bool
    ) -> Floats:
        """Lines 2, 4 and 5 of Algorithm 1: g of replicates, each at weights of its own.

        Rows are drawn with replacement, or only `permuted`, and labels from the combination.
        """

    @abstractmethod
    def together(self, n_evaluations: int | None) -> int:
        """How many cases to search at a time: steady progress, prompt interruption, modest memory.

        None asks how many replicates to have `resampled` at a time.
        """

    @abstractmethod
    def threads(self, wanted: int) -> int:
        """On how many threads replicates are to be searched."""

    @abstractmethod
    def impossible(self) -> int:
        """Rows whose label has probability 0 by every member."""

    @abstractmethod
    def fingerprint(self) -> Floats:
        """A few numbers that other data, or the same in another order, would hardly have."""


#: draw(first, last) is the objective of replicates first to last - 1, one case each.
Draw = Callable[[int, int], Objective]

#: 2^64 over the golden ratio: its multiples, modulo 2^64, lie evenly and in no simple order.
_STRIDE = np.uint64(0x9E3779B97F4A7C15)


def fingerprint_of(probs: NDArray[Any], labels: NDArray[np.int32], first: int) -> Floats:
    """Sums over rows, (3, n_members): of label probabilities, plain and by place, and of all by place.

    `probs`, (n_rows, n_members, n_classes), and `labels` are of consecutive rows, the first of them being
    row `first`. Draws belong to row numbers, so the same rows in another order are other data.
    """
    n_rows, n_members, n_classes = probs.shape
    chances = probs[np.arange(n_rows), :, labels].astype(np.float64)
    rows = np.arange(first, first + n_rows, dtype=np.uint64)
    sums = np.zeros((3, n_members))
    sums[0], sums[1] = chances.sum(axis=0), (rows * _STRIDE / 2.0**64) @ chances
    for k in range(n_classes):
        places = (rows * np.uint64(n_classes) + np.uint64(k)) * _STRIDE
        sums[2] += (places / 2.0**64) @ probs[:, :, k].astype(np.float64)
    return sums
