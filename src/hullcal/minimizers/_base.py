"""What a search is: a frozen value that finds weights of small g for every case of an objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError, check_integer
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

    @classmethod
    def joined(cls, parts: Sequence[Minima]) -> Minima:
        """The answers of several objectives, one after the other."""
        if len(parts) == 1:
            return parts[0]
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


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
    #: Evaluations of g when `max_evaluations` is left open: by itself, and inside a test.
    default_budget: ClassVar[int] = 10_000
    test_budget: ClassVar[int] = 1_000
    #: The same inside a test of a measure that is easily searched; None where it makes no difference.
    easy_test_budget: ClassVar[int | None] = None
    #: Whether any function of the weights will do, and not only a measure of packed predictions.
    any_function: ClassVar[bool] = True
    #: Whether the objective may be one over a few entries of the predictions.
    over_entries: ClassVar[bool] = True
    #: Whether predictions have to be in memory.
    needs_predictions: ClassVar[bool] = False
    max_evaluations: int | None = None

    def __post_init__(self) -> None:
        if self.max_evaluations is not None:
            budget = check_integer(self.max_evaluations, "max_evaluations", 1)
            object.__setattr__(self, "max_evaluations", budget)

    @classmethod
    def defaults(cls) -> tuple[Minimizer, ...]:
        """The values that plain names stand for."""
        return (cls(),)

    def budgeted(self, *, in_test: bool, easy: bool = False) -> Self:
        """This search with its budget settled; `easy` says what kind of function it will meet."""
        if self.max_evaluations is not None:
            return self
        budget = self.test_budget if in_test else self.default_budget
        if in_test and easy and self.easy_test_budget is not None:
            budget = self.easy_test_budget
        return replace(self, max_evaluations=budget)

    def evaluations(self, n_members: int) -> int:
        """About how many evaluations of g a search takes, once its budget is settled."""
        return self.max_evaluations or 1

    def check(self, measure: Measure, n_members: int) -> None:
        """Refuse a measure or a set this search cannot take, naming both."""

    def minimize(self, objective: Function, key: NDArray[np.uint64]) -> Minima:
        """The best weights found, for every case; a set of one member needs no search."""
        search = self.search if objective.n_members > 1 else _of_one
        if not self.over_entries:
            return search(objective, key)
        return Minima.joined([search(part, key) for part in objective.parts()])

    def best(self, objective: Function, key: NDArray[np.uint64]) -> Minima:
        """Line 7 for the data, which are searched once, and so perhaps for longer than replicates."""
        return self.minimize(objective, key)

    def observed(self, objective: Function, key: NDArray[np.uint64]) -> Minima:
        """The same with `means` as they are found for replicates."""
        return self.minimize(objective, key)

    def search(self, objective: Function, key: NDArray[np.uint64]) -> Minima:
        """Search the simplex for every case."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """The fields of this search."""
        return asdict(self)

    def _refuse(self, what: str, instead: str) -> InvalidInputError:
        return InvalidInputError(f"minimizer `{self.name}` cannot take {what}; {instead}.")
