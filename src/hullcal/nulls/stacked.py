"""Labels redrawn from worlds in which some combination is calibrated, and the search run again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hullcal.engines.engine import Problem
from hullcal.engines.local import Progress
from hullcal.engines.objective import Draw
from hullcal.engines.packed import Packed
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.nulls._base import CALIBRATED, Floats, Null, Outcome, Replicates, Resampling
from hullcal.nulls._pool import pooled
from hullcal.nulls._worlds import World
from hullcal.pvalues import monte_carlo


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
    can_stop: ClassVar[bool] = True

    def needs_predictions(self, measure: Measure) -> bool:
        return True  # the pool of members is fitted to them

    def run(self, problem: Problem, minimizer: Minimizer, resampling: Resampling) -> Outcome:
        objective = problem.packed
        replicates = Replicates(minimizer, resampling)
        observed = replicates.observed(objective)
        statistic, best = float(observed.means[0]), observed.weights[0]
        if objective.n_members == 1:
            distribution = replicates.of_labels(objective, best, statistic)
        else:
            likeliest = objective.maximum_likelihood()
            model = pooled(objective.members, objective.labels[0], objective.mixed(likeliest))
            centres = _centres(objective, best, likeliest)
            distribution = max(
                _distributions(centres, model, objective, statistic, replicates, resampling),
                key=lambda values: monte_carlo(statistic, values),
            )
        return Outcome(
            statistic=statistic,
            minimum=float(observed.values[0]),
            weights=best,
            distribution=distribution,
            n_evaluations=replicates.n_evaluations,
            converged=bool(observed.converged[0]),
        )


def _centres(objective: Packed, best: Floats, likeliest: Floats) -> list[Floats]:
    """Weights of the combinations that may be the calibrated one, each once."""
    vertices = np.eye(objective.n_members)
    values = objective.values(vertices, np.zeros(len(vertices), dtype=np.int64))
    mean = np.full(len(vertices), 1.0 / len(vertices))
    tried = [best, likeliest, mean, vertices[np.argmin(values)]]
    return [own for i, own in enumerate(tried) if not any((own == one).all() for one in tried[:i])]


def _distributions(
    centres: list[Floats],
    model: Floats,
    objective: Packed,
    statistic: float,
    replicates: Replicates,
    resampling: Resampling,
) -> list[Floats]:
    """The null values of each world."""
    found = []
    for i, weights in enumerate(centres):
        draw = _drawing(objective, weights, World.of(objective.mixed(weights), model), resampling)
        told = _share_of(resampling.progress, i, len(centres))
        part = f"world {i}"
        found.append(replicates.of_draws(draw, objective, statistic, progress=told, part=part))
    return found


def _drawing(objective: Packed, weights: Floats, world: World, resampling: Resampling) -> Draw:
    """The same rows, with labels of a world."""
    of_combination = objective.drawing_labels(weights, resampling.key)

    def draw(first: int, last: int) -> Packed:
        replicate = of_combination(first, last)
        assert isinstance(replicate, Packed)
        world.turn(replicate.labels, resampling.key, first)
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
