"""Labels redrawn from worlds in which some combination is calibrated, and the search run again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hullcal.engines.engine import Problem
from hullcal.engines.local import Progress
from hullcal.engines.packed import Packed
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.nulls._base import CALIBRATED, Floats, Found, Null, Outcome, Replicates, Resampling
from hullcal.nulls._pool import pooled
from hullcal.nulls._single import of_combination
from hullcal.nulls._worlds import World
from hullcal.pvalues import exceeds, monte_carlo

#: A combination stays in play unless the exact test of its own calibration says this or less.
_IMPLAUSIBLE, _TRIALS = 0.01, 199
#: Its labels are those of replicates that no null distribution reaches.
_ELSEWHERE = 2**31
#: Single members that may be the calibrated one: those with the smallest g.
_VERTICES = 5
#: Replicates, at least, after which this many worlds are left.
_PILOT, _FINALISTS = 49, 2


@dataclass(frozen=True, kw_only=True)
class Stacked(Null):
    r"""A parametric bootstrap for "the hull contains a calibrated classifier".

    Under that hypothesis labels need not follow any combination given x, so a model of them is
    fitted first, a log-linear pool of all members. For a combination that may be the calibrated one
    the model is bent so that it is: labels follow p_λ plus what the model says beyond p_λ, less its
    regression on p_λ. Rows stay fixed, and every replicate is minimised as the data were. Which
    combination is calibrated is not known: the best one, the likeliest, the mean and the best
    members, as far as their own calibration is not refuted, are tried on the first replicates. The two
    with the most exceedances go on, and the larger p-value counts.

    Level: asymptotic, if the pool can follow the labels and the calibrated combination is near one of
    those tried. Any measure will do, as no residual vector is needed.
    """

    name: ClassVar[str] = "stacked"
    hypothesis: ClassVar[str] = CALIBRATED
    minimizes_replicates: ClassVar[bool] = True

    def needs_predictions(self, measure: Measure) -> bool:
        return True  # the pool of members is fitted to them

    def run(self, problem: Problem, minimizer: Minimizer, resampling: Resampling) -> Outcome:
        objective = problem.packed
        replicates = Replicates(minimizer, resampling)
        observed = replicates.observed(objective)
        statistic, best = float(observed.values[0]), observed.weights[0]
        screening = 0
        if objective.n_members == 1:
            distribution = replicates.of_labels(objective, best)
        else:
            likeliest = objective.maximum_likelihood()
            model = pooled(objective, objective.mixed(likeliest))
            centres = plausible(objective, best, likeliest, resampling)
            screening = objective.n_members + (2 + min(_VERTICES, objective.n_members)) * (
                _TRIALS + 1
            )
            worlds = [World.of(mixed, model) for mixed in centres]
            distribution = _largest(worlds, statistic, objective, replicates, resampling)
        return Outcome(
            statistic=statistic,
            weights=best,
            distribution=distribution,
            n_evaluations=replicates.n_evaluations + screening,
            converged=bool(observed.converged[0]),
            other_searches=replicates.elsewhere(objective),
        )


def plausible(
    objective: Packed, best: Floats, likeliest: Floats, resampling: Resampling
) -> list[Floats]:
    """Predictions of the combinations that may be the calibrated one; the best always may."""
    n_members = objective.n_members
    vertices = np.eye(n_members)
    values = objective.values(vertices, np.zeros(n_members, dtype=np.int64))
    members = vertices[np.argsort(values, kind="stable")[:_VERTICES]]
    others = [likeliest, np.full(n_members, 1.0 / n_members), *members]
    plausible = [objective.mixed(best)]
    for weights in others:
        mixed = objective.mixed(weights)
        alone = of_combination(objective, mixed, resampling.key, _TRIALS, first=_ELSEWHERE)
        if monte_carlo(*alone) > _IMPLAUSIBLE:
            plausible.append(mixed)
    return plausible


def _largest(
    worlds: list[World],
    statistic: float,
    objective: Packed,
    replicates: Replicates,
    resampling: Resampling,
) -> Floats:
    """The null values of the world with the largest p-value among those that reach the final."""
    total = resampling.n_resamples
    pilot = min(total, max(_PILOT, total // 10))
    n_finalists = min(_FINALISTS, len(worlds))
    n_runs = pilot * len(worlds) + n_finalists * (total - pilot)

    def null(i: int, first: int, last: int, before: int) -> Floats:
        def block(start: int, end: int) -> Found:
            labels = worlds[i].labels(resampling.key, first + start, first + end)
            return replicates.minimize(objective.with_labels(labels))

        told = _share_of(resampling.progress, before, n_runs, total)
        part = f"world {i} from {first}"
        return replicates.run(block, objective, n_resamples=last - first, progress=told, part=part)

    firsts = [null(i, 0, pilot, pilot * i) for i in range(len(worlds))]
    counts = np.array([exceeds(values, statistic).sum() for values in firsts])
    finals = []
    for place, i in enumerate(np.argsort(-counts, kind="stable")[:n_finalists]):
        before = pilot * len(worlds) + place * (total - pilot)
        finals.append(np.concatenate([firsts[i], null(i, pilot, total, before)]))
    return max(finals, key=lambda values: int(exceeds(values, statistic).sum()))


def _share_of(progress: Progress | None, before: int, n_runs: int, total: int) -> Progress | None:
    """Progress of one part of the work, told in resamples of the whole whenever one more is done."""
    if progress is None:
        return None
    told = before * total // n_runs

    def report(done: int, _: int) -> None:
        nonlocal told
        share = (before + done) * total // n_runs
        if share > told:
            told = share
            progress(share, total)

    return report
