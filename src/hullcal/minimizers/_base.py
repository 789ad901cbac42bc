"""What a search is: a frozen value that finds weights of small g for every case of an objective."""

from __future__ import annotations

import reprlib
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError, check_integer, refusal
from hullcal.measures import Measure
from hullcal.objectives.base import Function


@dataclass(frozen=True, slots=True)
class Minima:
    """What a search found, one entry for each case of the objective.

    `means` are what tests compare that search their replicates: a mean over points where the search
    ended, which is the value itself for a search that ends at one.
    """

    weights: NDArray[np.float64]
    values: NDArray[np.float64]
    means: NDArray[np.float64]
    n_evaluations: NDArray[np.int64]
    converged: NDArray[np.bool_]

    @classmethod
    def empty(cls, n_cases: int, n_members: int) -> Self:
        """Room for the answers of a search that ends at one point."""
        return cls(
            np.zeros((n_cases, n_members)),
            values := np.zeros(n_cases),
            values,
            np.zeros(n_cases, dtype=np.int64),
            np.zeros(n_cases, dtype=np.bool_),
        )


def _of_one(objective: Function, key: NDArray[np.uint64]) -> Minima:
    """The one point of the simplex, where there is but one member."""
    minima = Minima.empty(objective.n_cases, 1)
    minima.weights[:] = 1.0
    minima.values[:] = objective.values(minima.weights, np.arange(objective.n_cases))
    minima.n_evaluations[:] = 1
    minima.converged[:] = True
    return minima


@dataclass(frozen=True, kw_only=True)
class Minimizer:
    """Line 7 of Algorithm 1.

    A subclass implements `search` for an objective of two or more distinct members. Its random
    choices come from `key` alone, so all cases of all objectives are searched by the same draws.
    """

    name: ClassVar[str]
    #: Beyond values of any function of the weights: "measure" (no other function), "predictions" (in
    #: memory), "classes" (all of them, not a few entries).
    needs: ClassVar[frozenset[str]] = frozenset()
    #: Evaluations of g when `max_evaluations` is left open: by itself, and inside a test.
    budgets: ClassVar[tuple[int, int]] = (10_000, 1_000)
    max_evaluations: int | None = None

    def __post_init__(self) -> None:
        if self.max_evaluations is not None:
            budget = check_integer(self.max_evaluations, "max_evaluations", 1)
            object.__setattr__(self, "max_evaluations", budget)

    @classmethod
    def defaults(cls) -> tuple[Minimizer, ...]:
        """The values that plain names stand for."""
        return (cls(),)

    def budgeted(self, *, in_test: bool) -> Self:
        """This search with its budget settled."""
        if self.max_evaluations is not None:
            return self
        return replace(self, max_evaluations=self.budgets[in_test])

    def evaluations(self, n_members: int) -> int:
        """About how many evaluations of g a search takes, once its budget is settled."""
        return self.max_evaluations or 1

    def alone(self) -> Self:
        """This search for a function that is searched but once."""
        return self

    def check(self, measure: Measure, n_members: int) -> None:
        """Refuse a measure or a set this search cannot take, naming both."""

    def minimize(
        self, objective: Function, key: NDArray[np.uint64], *, of_data: bool = False
    ) -> Minima:
        """The best weights found, for every case; a set of one member needs no search.

        `of_data` asks for line 7, by `search_data`.
        """
        search = self.search_data if of_data else self.search
        if objective.n_members == 1:
            search = _of_one
        parts = [objective] if "classes" in self.needs else objective.parts()
        each = [astuple(search(part, key)) for part in parts]
        found = Minima(*map(np.concatenate, zip(*each, strict=True)))
        # A search may be a user's own, and NaN compares with null values as if it were the largest.
        wrong = np.isnan([found.values, found.means]).any() or not (found.values > -np.inf).all()
        weights = found.weights
        shape = objective.n_cases, objective.n_members
        wrong |= weights.shape != shape or not (weights >= 0).all()
        if wrong or not np.allclose(weights.sum(axis=1), 1, rtol=0, atol=1e-8):
            rule = f"must find points of the simplex, of shape {shape}, and their values"
            came = (
                f"weights {reprlib.repr(weights.tolist())} and values {reprlib.repr(found.values)}"
            )
            raise refusal("minimizer", rule, came, f"Mend the search `{self.name}`.")
        return found

    def search(self, objective: Function, key: NDArray[np.uint64]) -> Minima:
        """Search the simplex for every case."""
        raise NotImplementedError

    def search_data(self, objective: Function, key: NDArray[np.uint64]) -> Minima:
        """The same for the data, which are searched but once, and so perhaps for longer.

        The `means` are those that `search` would find.
        """
        return self.search(objective, key)

    def settings(self) -> dict[str, Any]:
        """The fields of this search."""
        return asdict(self)

    def _refuse(self, what: str, instead: str) -> InvalidInputError:
        return InvalidInputError(f"minimizer `{self.name}` cannot take {what}; {instead}.")
