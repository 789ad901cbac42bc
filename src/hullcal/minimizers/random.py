"""Random search: the best of uniform draws from the simplex, the yardstick of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal.minimizers._base import Minima, Minimizer
from hullcal.objectives.base import Function
from hullcal.simplex import dirichlet, uniform

_BATCH = 1_000


@dataclass(frozen=True, kw_only=True)
class Random(Minimizer):
    """The mean, the members themselves, and uniform draws, until the budget is spent.

    It never claims to have converged.
    """

    name: ClassVar[str] = "random"
    budgets: ClassVar[tuple[int, int]] = (10_000, 300)

    def search(self, objective: Function, key: NDArray[np.uint64]) -> Minima:
        assert self.max_evaluations is not None
        n_members = objective.n_members
        minima = Minima.empty(objective.n_cases, n_members)
        minima.values[:] = np.inf
        minima.weights[:] = uniform(n_members)
        minima.n_evaluations[:] = self.max_evaluations
        rng = np.random.default_rng(key)
        points = np.vstack([uniform(n_members), np.eye(n_members)])[: self.max_evaluations]
        left = self.max_evaluations
        while left > 0:
            for case in range(objective.n_cases):
                values = objective.values(points, np.full(len(points), case))
                best = int(values.argmin())
                if values[best] < minima.values[case]:
                    minima.values[case] = values[best]
                    minima.weights[case] = points[best]
            left -= len(points)
            points = dirichlet(n_members, min(left, _BATCH), rng=rng)
        return minima
