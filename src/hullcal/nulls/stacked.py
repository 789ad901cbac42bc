"""Labels redrawn from worlds in which some combination is calibrated, and the search run again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hullcal.measures import Measure
from hullcal.minimizers import Minima, Minimizer
from hullcal.nulls._base import CALIBRATED, Floats, Null
from hullcal.nulls._pool import pooled
from hullcal.nulls._worlds import World
from hullcal.objectives.base import Draw, Objective
from hullcal.objectives.memory import InMemory
from hullcal.pvalues import monte_carlo
from hullcal.resampling import Loop, Progress


@dataclass(frozen=True, kw_only=True)
class Stacked(Null):
    r"""A parametric bootstrap for "the hull contains a calibrated classifier".

    1. A log-linear pool of all members is fitted to the labels: a model of them, which need not follow
       any combination given x.
    2. For a combination that may be the calibrated one the model is bent so that it is: labels follow
       p_λ plus what the model says beyond p_λ, less its regression on p_λ.
    3. Rows stay fixed, labels are drawn, and every replicate is searched as the data were.
    4. Which combination is calibrated is not known. Four are tried: the one with the smallest g, the
       likeliest, the mean, and the member with the smallest g. The largest p-value counts.

    Level: asymptotic, if the pool can follow the labels and the calibrated combination is near one of
    those tried. Any measure works, as no residual vector is needed.
    """

    name: ClassVar[str] = "stacked"
    hypothesis: ClassVar[str] = CALIBRATED

    def needs_predictions(self, measure: Measure) -> bool:
        return True  # the pool of members is fitted to them

    def replicates(self, objective: Objective, best: Minima, loop: Loop) -> Draw:
        # For a set of one: it is the combination that may be calibrated.
        return objective.drawing_labels(best.weights[0], loop.key)

    def distribution(
        self, objective: Objective, best: Minima, minimizer: Minimizer, loop: Loop
    ) -> dict[str, Any]:
        if objective.n_members == 1:
            return super().distribution(objective, best, minimizer, loop)
        assert isinstance(objective, InMemory)
        likeliest = objective.maximum_likelihood()
        model = pooled(objective.members, objective.labels[0], objective.mixed(likeliest))
        centres = _centres(objective, best.weights[0], likeliest)
        worlds = []
        for i, weights in enumerate(centres):
            draw = _drawing(objective, weights, World.of(objective.mixed(weights), model), loop)
            told = _share_of(loop.progress, i, len(centres))
            part = f"world {i}"
            found = self._loop(draw, objective, best, minimizer, loop, progress=told, part=part)
            worlds.append(found)
        statistic = float(best.means[0])
        largest = max(worlds, key=lambda found: monte_carlo(statistic, found[:, 0]))
        n_evaluations = sum(int(found[:, 1].sum()) for found in worlds)
        return {"null_distribution": largest[:, 0], "n_evaluations": n_evaluations}


def _centres(objective: InMemory, best: Floats, likeliest: Floats) -> list[Floats]:
    """Weights of the combinations that may be the calibrated one, each once."""
    vertices = np.eye(objective.n_members)
    values = objective.values(vertices, np.zeros(len(vertices), dtype=np.int64))
    mean = np.full(len(vertices), 1.0 / len(vertices))
    tried = [best, likeliest, mean, vertices[np.argmin(values)]]
    return [own for i, own in enumerate(tried) if not any((own == one).all() for one in tried[:i])]


def _drawing(objective: InMemory, weights: Floats, world: World, loop: Loop) -> Draw:
    """The same rows, with labels of a world."""
    of_combination = objective.drawing_labels(weights, loop.key)

    def draw(first: int, last: int) -> InMemory:
        replicate = of_combination(first, last)
        assert isinstance(replicate, InMemory)
        world.turn(replicate.labels, loop.key, first)
        return replicate

    return draw


def _share_of(progress: Progress | None, place: int, n_worlds: int) -> Progress | None:
    """Progress of one world, told in resamples of all of them whenever one more is done."""
    if progress is None:
        return None
    told = 0

    def report(done: int, total: int) -> None:
        nonlocal told
        told = max(told, place * total // n_worlds)
        share = (place * total + done) // n_worlds
        if share > told:
            told = share
            progress(share, total)

    return report
