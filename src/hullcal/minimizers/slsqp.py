"""SLSQP: sequential quadratic programming for measures with derivatives."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal.measures import Measure
from hullcal.minimizers._base import Minima, Minimizer
from hullcal.objectives.base import Floats, Function
from hullcal.simplex import normalise, project

#: Step of the forward differences along the edges of the simplex.
_DIFFERENCE = 1e-6


class _BudgetSpent(Exception):
    """Ends scipy's search, which limits its iterations and not what they evaluate."""


@dataclass(frozen=True, kw_only=True)
class Slsqp(Minimizer):
    """scipy's SLSQP from the mean and from maximum-likelihood weights; the better end wins.

    Only for differentiable measures (SKCE). The gradient is taken by differences towards each member,
    which stay inside the simplex. Each start has half of the budget; a gradient that was begun is
    finished, so the whole may be exceeded by some 2 M evaluations.
    """

    name: ClassVar[str] = "slsqp"
    needs: ClassVar[frozenset[str]] = frozenset({"measure"})

    def check(self, measure: Measure, n_members: int) -> None:
        if "derivatives" not in measure.traits:
            raise self._refuse(
                f"measure `{measure.name}`, which has no derivative",
                'use minimizer="steepest", or a SKCE measure',
            )

    def search(self, objective: Function, key: NDArray[np.uint64]) -> Minima:
        minima = Minima.empty(objective.n_cases, objective.n_members)
        starts = np.concatenate([objective.starts(), objective.likeliest()], axis=1)
        assert self.max_evaluations is not None
        for case in range(objective.n_cases):
            minima.values[case] = np.inf
            for start in starts[case]:
                share = self.max_evaluations // len(starts[case])
                self._descend(objective, case, start, share, minima)
        return minima

    def _descend(
        self, objective: Function, case: int, start: Floats, share: int, minima: Minima
    ) -> None:
        from scipy.optimize import Bounds, LinearConstraint, minimize

        n_members = objective.n_members
        corners = np.eye(n_members)
        spent, lowest, end = 0, np.inf, start

        def g_and_slope(point: Floats) -> tuple[float, Floats]:
            nonlocal spent, lowest, end
            here = project(point)
            if spent >= share:
                raise _BudgetSpent
            towards = (1.0 - _DIFFERENCE) * here + _DIFFERENCE * corners
            points = np.vstack([here, towards])
            values = objective.values(points, np.full(len(points), case))
            spent += len(points)
            if values[0] < lowest:
                lowest, end = float(values[0]), here
            return float(values[0]), (values[1:] - values[0]) / _DIFFERENCE

        converged = False
        with contextlib.suppress(_BudgetSpent):
            found = minimize(
                g_and_slope,
                start,
                jac=True,
                method="SLSQP",
                bounds=Bounds(0.0, 1.0),
                constraints=LinearConstraint(np.ones((1, n_members)), 1.0, 1.0),
                options={"maxiter": share, "ftol": 1e-10},
            )
            end, converged = normalise(found.x), bool(found.success)
        value = objective.values(end[np.newaxis], np.array([case]))[0]
        minima.n_evaluations[case] += spent + 1
        if value < minima.values[case]:
            minima.values[case] = value
            minima.weights[case] = end
            minima.converged[case] = converged
