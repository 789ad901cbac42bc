"""COBYLA from the uniform weights: the paper's search."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError, warn
from hullcal.measures import Measure
from hullcal.minimizers._base import Minima, Minimizer
from hullcal.objectives.base import Floats, Function
from hullcal.simplex import normalise, uniform

Found = tuple[Floats, int, bool]
#: Members from which on a search takes long, and its seconds by the cube of their number.
_MANY, _SECONDS = 30, 2e-5


@dataclass(frozen=True, kw_only=True)
class Cobyla(Minimizer):
    """COBYLA with the simplex as constraints, one start, scipy's own settings.

    COBYLA may step a little outside the simplex; g is evaluated at the point scaled back onto it.
    The value of the point returned is one evaluation more than the budget. `library` is "scipy", or
    "nlopt" for the C translation of Powell's program: another path of the same method, and faster
    than scipy's, which is written in Python.
    """

    name: ClassVar[str] = "cobyla"
    budgets: ClassVar[tuple[int, int]] = (1_000, 1_000)
    library: Literal["scipy", "nlopt"] = "scipy"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.library not in _LIBRARIES:
            raise InvalidInputError(
                f'`library` must be "scipy" or "nlopt"; got {self.library!r:.80}. Pass one of them.'
            )
        if importlib.util.find_spec(self.library) is None:
            raise InvalidInputError(
                f'`library` "{self.library}" is not installed; `pip install {self.library}`.'
            )

    def check(self, measure: Measure, n_members: int) -> None:
        if n_members >= _MANY:
            seconds = _SECONDS * n_members**3
            warn(
                f"minimizer `cobyla` takes about {seconds:.1g} s for a search over {n_members} members, "
                'and a test searches once for every resample; minimizer="steepest" is far quicker.'
            )

    def search(self, objective: Function, key: NDArray[np.uint64]) -> Minima:
        assert self.max_evaluations is not None
        n_members = objective.n_members
        minima = Minima.empty(objective.n_cases, n_members)
        for case in range(objective.n_cases):
            cases = np.array([case])

            def g(point: Floats, cases: NDArray[np.int64] = cases) -> float:
                # COBYLA models g by planes, and a plane cannot pass through infinity. Where squares of
                # its slopes vanish, the C program would turn in circles for ever.
                value = float(objective.values(normalise(point)[np.newaxis], cases)[0])
                return min(value, 1e100) if abs(value) > 1e-100 else 0.0

            # COBYLA needs one evaluation more than a simplex has corners to begin at all.
            budget = max(self.max_evaluations, n_members + 2)
            point, n_evaluations, ended = _LIBRARIES[self.library](g, n_members, budget)
            minima.weights[case] = normalise(point)
            minima.values[case] = objective.values(minima.weights[case : case + 1], cases)[0]
            minima.n_evaluations[case] = n_evaluations + 1
            minima.converged[case] = ended
        return minima


def _scipy(g: Callable[[Floats], float], n_members: int, budget: int) -> Found:
    from scipy.optimize import LinearConstraint, minimize

    found = minimize(
        g,
        uniform(n_members),
        method="COBYLA",
        constraints=(
            LinearConstraint(np.ones((1, n_members)), 1.0, 1.0),
            LinearConstraint(np.eye(n_members), 0.0, np.inf),
        ),
        options={"maxiter": budget},
    )
    return found.x, int(found.nfev), bool(found.success)


#: scipy's settings: the first and the last size of the region in which planes are trusted.
_FIRST_RADIUS, _LAST_RADIUS = 1.0, 1e-4


def _nlopt(g: Callable[[Floats], float], n_members: int, budget: int) -> Found:
    import nlopt

    seen: list[tuple[float, Floats]] = []

    def kept(point: Floats, gradient: Floats) -> float:
        seen.append((g(point), point.copy()))
        return seen[-1][0]

    def bounds(result: Floats, point: Floats, gradient: Floats) -> None:
        # Bounds of its own nlopt would keep strictly, and so walk another path.
        result[:n_members] = -point
        result[n_members:] = point.sum() - 1.0, 1.0 - point.sum()

    search = nlopt.opt(nlopt.LN_COBYLA, n_members)
    search.set_min_objective(kept)
    search.add_inequality_mconstraint(bounds, np.zeros(n_members + 2))
    search.set_initial_step(_FIRST_RADIUS)
    search.set_xtol_abs(_LAST_RADIUS)
    search.set_maxeval(budget)
    try:
        point = search.optimize(uniform(n_members))
    except nlopt.RoundoffLimited:
        # The planes cannot be told apart any more, and the answer is lost with the exception.
        return min(seen, key=lambda one: one[0])[1], len(seen), False
    return point, len(seen), search.last_optimize_result() != nlopt.MAXEVAL_REACHED


_LIBRARIES = {"scipy": _scipy, "nlopt": _nlopt}
