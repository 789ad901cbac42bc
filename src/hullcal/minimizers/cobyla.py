"""COBYLA from the uniform weights: the paper's search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal.engines.local import Objective
from hullcal.minimizers._base import Minima, Minimizer
from hullcal.simplex import normalise, uniform


@dataclass(frozen=True, kw_only=True)
class Cobyla(Minimizer):
    """scipy's COBYLA with the simplex as constraints, one start, scipy's own settings.

    COBYLA may step a little outside the simplex; g is evaluated at the point scaled back onto it.
    The value of the point returned is one evaluation more than the budget.
    """

    name: ClassVar[str] = "cobyla"
    default_budget: ClassVar[int] = 1_000

    def search(self, objective: Objective, key: NDArray[np.uint64]) -> Minima:
        from scipy.optimize import LinearConstraint, minimize

        assert self.max_evaluations is not None
        n_members = objective.n_members
        minima = Minima.empty(objective.n_cases, n_members)
        simplex = (
            LinearConstraint(np.ones((1, n_members)), 1.0, 1.0),
            LinearConstraint(np.eye(n_members), 0.0, np.inf),
        )
        for case in range(objective.n_cases):
            cases = np.array([case])

            def g(point: NDArray[np.float64], cases: NDArray[np.int64] = cases) -> float:
                # COBYLA models g by planes, and a plane cannot pass through infinity.
                value = objective.values(normalise(point)[np.newaxis], cases)[0]
                return float(min(value, 1e100))

            found = minimize(
                g,
                uniform(n_members),
                method="COBYLA",
                constraints=simplex,
                # COBYLA needs one evaluation more than a simplex has corners to begin at all.
                options={"maxiter": max(self.max_evaluations, n_members + 2)},
            )
            minima.weights[case] = normalise(found.x)
            minima.values[case] = objective.values(minima.weights[case : case + 1], cases)[0]
            minima.n_evaluations[case] = found.nfev + 1
            minima.converged[case] = bool(found.success)
        return minima
