"""Other nulls for "contains a calibrated classifier" that were tried and lost to `stacked`.

They are here so that their figures can be printed again, not to be used. All are asymptotic and search
every replicate as the data were.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hullcal._compiled.mixing import cumulate, draw_labels
from hullcal._compiled.resampling import draw_counts
from hullcal._compiled.streams import key_of
from hullcal.engines.engine import Problem
from hullcal.engines.packed import Packed
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.nulls import CALIBRATED, Null, Outcome, Resampling
from hullcal.nulls._base import Floats, Replicates
from hullcal.nulls._pool import pooled
from hullcal.nulls._worlds import World
from hullcal.nulls.stacked import _centres, _drawing
from hullcal.pvalues import exceeds

#: Label draws whose residual vectors are averaged to an expectation.
_DRAWS = 300


@dataclass(frozen=True, kw_only=True)
class Candidate(Null):
    """A null whose subclass makes the null values."""

    hypothesis: ClassVar[str] = CALIBRATED

    def needs_predictions(self, measure: Measure) -> bool:
        """Each looks at the predictions themselves."""
        return True

    def run(self, problem: Problem, minimizer: Minimizer, resampling: Resampling) -> Outcome:
        """Search the data, then leave the rest to `values`."""
        objective = problem.packed
        replicates = Replicates(minimizer, resampling)
        found = replicates.observed(objective)
        statistic, best = float(found.means[0]), found.weights[0]
        return Outcome(
            statistic=statistic,
            minimum=float(found.values[0]),
            weights=best,
            distribution=self.values(objective, best, statistic, replicates, resampling),
            n_evaluations=replicates.n_evaluations,
            converged=bool(found.converged[0]),
        )

    def values(
        self,
        objective: Packed,
        best: Floats,
        statistic: float,
        replicates: Replicates,
        resampling: Resampling,
    ) -> Floats:
        """Null values."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class AtTheMinimum(Candidate):
    """`refit` with labels from the best calibrated combination in place of the likeliest."""

    name: ClassVar[str] = "labels of the minimiser"

    def values(self, objective, best, statistic, replicates, resampling):  # type: ignore[no-untyped-def]
        return replicates.of_labels(objective, best)


@dataclass(frozen=True, kw_only=True)
class SeveralCentres(Candidate):
    """`recentered` around every combination that `stacked` tries; the largest p-value counts."""

    name: ClassVar[str] = "recentered, several centres"

    def values(self, objective, best, statistic, replicates, resampling):  # type: ignore[no-untyped-def]
        counts = np.zeros((resampling.n_resamples, objective.n_samples))
        draw_counts(resampling.key, 0, objective.measure.rows_per_unit, counts)
        nulls = []
        for weights in _centres(objective, best, objective.maximum_likelihood()):
            mixed = objective.mixed(weights)
            offset = objective.measure.offset_at(mixed, objective.labels[0], objective.parameters)
            centred = replace(objective, offset=offset).with_row_weights(counts)
            nulls.append(replicates.minimize(centred)[:, 0])
        return _largest(nulls, statistic)


@dataclass(frozen=True, kw_only=True)
class ShiftedPool(Candidate):
    """Labels from the pool, rows fixed; the pool's residual at the minimiser is subtracted."""

    name: ClassVar[str] = "pool, residual subtracted"

    def values(self, objective, best, statistic, replicates, resampling):  # type: ignore[no-untyped-def]
        pool, offset = _pool_and_residual(objective, best)
        labels = _labels(pool, resampling.key, resampling.n_resamples)
        return replicates.minimize(replace(objective, offset=offset).with_labels(labels))[:, 0]


@dataclass(frozen=True, kw_only=True)
class ResampledPool(Candidate):
    """The same with rows drawn with replacement, every copy with a label of its own."""

    name: ClassVar[str] = "pool, rows resampled"

    def values(self, objective, best, statistic, replicates, resampling):  # type: ignore[no-untyped-def]
        pool, offset = _pool_and_residual(objective, best)
        rng = np.random.default_rng(resampling.key)
        unit = objective.measure.rows_per_unit
        n_units = objective.n_samples // unit
        out = np.empty(resampling.n_resamples)
        for d in range(len(out)):
            units = rng.integers(n_units, size=n_units)
            rows = (unit * units[:, None] + np.arange(unit)).ravel()
            labels = _labels(
                np.ascontiguousarray(pool[:, rows]), key_of(int(rng.integers(2**62))), 1
            )
            drawn = replace(
                objective,
                members=np.ascontiguousarray(objective.members[:, :, rows]),
                labels=labels,
                row_weights=np.ones(labels.shape),
                offset=offset,
            )
            out[d] = replicates.minimize(drawn)[0, 0]
        return out


@dataclass(frozen=True, kw_only=True)
class OneWorld(Candidate):
    """`stacked` with the minimiser as the only combination that may be calibrated."""

    name: ClassVar[str] = "stacked, one centre"

    def values(self, objective, best, statistic, replicates, resampling):  # type: ignore[no-untyped-def]
        world = World.of(objective.mixed(best), _pool(objective))
        draw = _drawing(objective, best, world, resampling)
        return replicates.minimize(draw(0, resampling.n_resamples))[:, 0]


CANDIDATES: tuple[str | Candidate, ...] = (
    *("recentered", SeveralCentres(), AtTheMinimum(), ShiftedPool(), ResampledPool()),
    *(OneWorld(), "stacked", "refit"),
)


def _pool(objective: Packed) -> Floats:
    likeliest = objective.mixed(objective.maximum_likelihood())
    return pooled(objective.members, objective.labels[0], likeliest)


def _largest(nulls: list[Floats], statistic: float) -> Floats:
    return max(nulls, key=lambda values: int(exceeds(values, statistic).sum()))


def _labels(law: Floats, key: np.ndarray, number: int) -> np.ndarray:
    cumulative = np.empty(law.shape)
    cumulate(law, cumulative)
    labels = np.empty((number, law.shape[1]), dtype=np.int32)
    draw_labels(cumulative, key, 0, labels)
    return labels


def _pool_and_residual(objective: Packed, weights: Floats) -> tuple[Floats, Floats]:
    pool, mixed = _pool(objective), objective.mixed(weights)
    residual: Callable[..., Floats] = objective.measure.offset_at
    draws = _labels(pool, key_of(1), _DRAWS)
    return pool, sum(residual(mixed, y, objective.parameters) for y in draws) / _DRAWS
