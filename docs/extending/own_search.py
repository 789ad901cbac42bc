"""The best pair: is there a good combination of no more than two members?"""

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from hullcal.minimizers import Minima, Minimizer


@dataclass(frozen=True, kw_only=True)
class BestPair(Minimizer):
    """Every pair of members at evenly spaced shares, the members themselves among them.

    No random choices. It has *converged* if the budget was enough for all pairs.
    """

    name: ClassVar[str] = "best_pair"
    n_shares: int = 11

    def search(self, objective, key):
        """Ask for all points at once, case by case; `key` would seed random choices."""
        n_members = objective.n_members
        points = []
        for first, second in combinations(range(n_members), 2):
            for share in np.linspace(0.0, 1.0, self.n_shares):
                point = np.zeros(n_members)
                point[first], point[second] = share, 1.0 - share
                points.append(point)
        asked = np.array(points[: self.max_evaluations])
        minima = Minima.empty(objective.n_cases, n_members)
        minima.n_evaluations[:] = len(asked)
        minima.converged[:] = len(asked) == len(points)
        for case in range(objective.n_cases):
            values = objective.values(asked, np.full(len(asked), case))
            best = values.argmin()
            minima.values[case] = values[best]
            minima.weights[case] = asked[best]
        return minima
