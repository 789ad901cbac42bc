"""What is asked of a test: every option, checked before data are seen and then beside them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

import hullcal
from hullcal import measures, minimizers, nulls, pvalues
from hullcal._compiled.streams import key_of
from hullcal._validation import (
    HullcalWarning,
    InvalidInputError,
    check_fraction,
    check_integer,
    check_jobs,
    check_seed,
)
from hullcal.engines import Data
from hullcal.engines.engine import Problem
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.nulls import Null, Resampling, kept_seed

#: From a warning about options, and from one about data, to whoever called `calibration_test`.
_CALLER, _CALLER_OF_RUN = 4, 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A test without its data: the options of `calibration_test`, checked and resolved."""

    measure: Measure
    null: Null
    #: Whether the null was left to hullcal.
    usual_null: bool
    search: Minimizer
    n_resamples: int
    alpha: float
    stop_after: int | None
    seed: int
    n_jobs: int

    @classmethod
    def of(
        cls,
        *,
        measure: str | Measure | Callable[..., float],
        null: str | Null | None,
        minimizer: str | Minimizer,
        n_resamples: int,
        alpha: float,
        stop_after: int | None,
        journal: str | Path | None,
        rng: int | np.random.Generator | None,
        n_jobs: int,
    ) -> Self:
        """Options as users write them; without a seed, that of the journal is taken."""
        g, reference = measures.resolve(measure), nulls.resolve(null)
        easy = g.easily_searched and reference.searches_measure
        # Where replicates are not searched, the search is as long as one outside a test.
        alone = not reference.searches_measure
        search = minimizers.resolve(minimizer).budgeted(in_test=not alone, easy=easy)
        alpha, n_resamples = check_level(alpha, n_resamples, stacklevel=_CALLER)
        stop_after = _check_stop(stop_after, reference)
        _check_keeping(journal, reference)
        return cls(
            measure=g,
            null=reference,
            usual_null=null is None,
            search=search,
            n_resamples=n_resamples,
            alpha=alpha,
            stop_after=stop_after,
            n_jobs=check_jobs(n_jobs),
            seed=check_seed(rng if rng is not None or journal is None else kept_seed(journal)),
        )

    def beside(self, data: Data) -> Plan:
        """The plan for these data: another null where they are too large for the usual one."""
        if not self.usual_null or data.fits_memory:
            return self
        return replace(self, null=nulls.resolve(nulls.BEYOND_MEMORY))

    def check(self, data: Data) -> bool:
        """Refuse what these data cannot be asked for; whether predictions have to be in memory."""
        self.measure.check(data.n_samples, stacklevel=_CALLER_OF_RUN)
        self.search.check(self.measure, data.n_members)
        self.null.check(self.measure, self.search)
        in_memory = self.null.needs_predictions(self.measure) or self.search.needs_predictions
        data.check(self.measure, in_memory=in_memory, draws_rows=self.null.draws_rows)
        return in_memory

    def problem(self, data: Data) -> Problem:
        """What is to be minimised; refused before any work if these data cannot be asked for it."""
        in_memory = self.check(data)
        return data.problem(self.measure, in_memory=in_memory, n_jobs=self.n_jobs)

    def settings(self, problem: Problem) -> dict[str, Any]:
        """Settings of measure, search and null, and what makes the run less than a full one."""
        settings: dict[str, Any] = {
            "measure": problem.objective.measure.settings(),
            "minimizer": self.search.settings(),
            "null": self.null.settings(),
        }
        if self.stop_after is not None:
            # D too, as such a run may leave fewer null values.
            settings |= {"stop_after": self.stop_after, "n_resamples": self.n_resamples}
        return settings

    def configuration(self, data: Data, problem: Problem) -> dict[str, Any]:
        """All that a journal's numbers depend on, but the data themselves."""
        return {
            "version": hullcal.__version__,
            "names": (self.measure.name, self.search.name, self.null.name),
            "settings": self.settings(problem),
            "seed": self.seed,
            "D": self.n_resamples,
            "sizes": (data.n_samples, data.n_members, data.n_classes),
        }

    def resampling(self, progress: Any, journal: Any) -> Resampling:
        """How the replicates are run."""
        key = key_of(self.seed)
        return Resampling(self.n_resamples, key, self.n_jobs, progress, self.stop_after, journal)

    def notes(self, n_kept: int) -> tuple[str, ...]:
        """What to know about a run that left so many null values."""
        instead: tuple[str, ...] = ()
        if self.usual_null and self.null.name == nulls.BEYOND_MEMORY:
            instead = (
                f"predictions do not fit into memory, so null {nulls.BEYOND_MEMORY} was used "
                f"instead of {nulls.USUAL}; it needs many rows in every bin",
            )
        if self.stop_after is not None and n_kept < self.n_resamples:
            return (
                *instead,
                f"stopped at resample {n_kept + 1} of {self.n_resamples}, the number "
                f"{self.stop_after} to reach the statistic",
            )
        return instead


def check_level(alpha: float, n_resamples: int, *, stacklevel: int = 3) -> tuple[float, int]:
    """Both, checked; a warning if they cannot reject together."""
    alpha = check_fraction(alpha, "alpha")
    n_resamples = check_integer(n_resamples, "n_resamples", 1)
    if pvalues.rejections_allowed(n_resamples, alpha) == 0:
        warnings.warn(
            f"no p-value of {n_resamples} resamples can be {alpha:g} or less, so nothing can be "
            f"rejected; the smallest `n_resamples` that could is "
            f"{pvalues.smallest_n_resamples(alpha)}.",
            HullcalWarning,
            stacklevel=stacklevel,
        )
    return alpha, n_resamples


def check_adjusted(n_resamples: int, alpha: float, n_measures: int) -> None:
    """Warn where p-values could reject, but not once they are adjusted for several measures."""
    share = alpha / n_measures
    if n_measures > 1 and 1 / (n_resamples + 1) <= alpha and 1 / (n_resamples + 1) > share:
        warnings.warn(
            f"adjusted for {n_measures} measures, no p-value of {n_resamples} resamples can be "
            f"{alpha:g} or less, so nothing can be rejected; the smallest `n_resamples` that could is "
            f"{pvalues.smallest_n_resamples(share)}.",
            HullcalWarning,
            stacklevel=3,
        )


def _check_stop(stop_after: int | None, reference: Null) -> int | None:
    """The number of exceedances, checked; refused for a null that cannot stop early."""
    if stop_after is None:
        return None
    if not reference.can_stop:
        raise InvalidInputError(
            f"`stop_after` must be None with null `{reference.name}`, whose resamples are run together; "
            f'got {stop_after!r}. Leave it out, or use null="stacked".'
        )
    return check_integer(stop_after, "stop_after", 2)


def _check_keeping(journal: object, reference: Null) -> None:
    """Refuse a journal for a null whose resamples are never finished one by one."""
    if journal is not None and not reference.can_keep:
        raise InvalidInputError(
            f"`journal` must be None with null `{reference.name}`, which has no finished resamples to "
            f'keep; got {str(journal)!r}. Leave it out, or use null="stacked".'
        )
