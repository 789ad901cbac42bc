"""SLSQP: sequential quadratic programming for measures with derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal.engines.objective import Objective
from hullcal.measures import Measure
from hullcal.minimizers._base import Minima, Minimizer
from hullcal.simplex import normalise, project

#: Step of the forward differences along the edges of the simplex.
_DIFFERENCE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Slsqp(Minimizer):
    """scipy's SLSQP from the mean and from maximum-likelihood weights; the better end wins.

    Only for smooth measures (SKCE). The gradient is taken by differences towards each member, which
    stay inside the simplex. A gradient that was begun is finished, so the budget may be exceeded by
    a few times M evaluations.
    """

    name: ClassVar[str] = "slsqp"
    any_function: ClassVar[bool] = False

    def check(self, measure: Measure, n_members: int) -> None:
        if not measure.smooth:
            raise self._refuse(
                f"measure `{measure.name}`, which has no derivative",
                'use minimizer="pairwise", or a SKCE measure',
            )

    def search(self, objective: Objective, key: NDArray[np.uint64]) -> Minima:
        minima = Minima.empty(objective.n_cases, objective.n_members)
        starts = objective.starts()
        for case in range(objective.n_cases):
            minima.values[case] = np.inf
            for start in starts[case]:
                self._descend(objective, case, start, minima)
        return minima

    def _descend(
        self, objective: Objective, case: int, start: NDArray[np.float64], minima: Minima
    ) -> None:
        from scipy.optimize import Bounds, LinearConstraint, minimize

        assert self.max_evaluations is not None
        n_members = objective.n_members
        corners = np.eye(n_members)

        def g_and_slope(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            here = project(point)
            towards = (1.0 - _DIFFERENCE) * here + _DIFFERENCE * corners
            points = np.vstack([here, towards])
            values = objective.values(points, np.full(len(points), case))
            minima.n_evaluations[case] += len(points)
            return float(values[0]), (values[1:] - values[0]) / _DIFFERENCE

        found = minimize(
            g_and_slope,
            start,
            jac=True,
            method="SLSQP",
            bounds=Bounds(0.0, 1.0),
            constraints=LinearConstraint(np.ones((1, n_members)), 1.0, 1.0),
            options={
                "maxiter": max(1, self.max_evaluations // (2 * (n_members + 1))),
                "ftol": 1e-10,
            },
        )
        weights = normalise(found.x)
        value = objective.values(weights[np.newaxis], np.array([case]))[0]
        minima.n_evaluations[case] += 1
        if value < minima.values[case]:
            minima.values[case] = value
            minima.weights[case] = weights
            minima.converged[case] = bool(found.success)
