"""Algorithm 1 from input to result: `calibration_test`, and its line 7 alone, `minimize`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import hullcal
from hullcal import engines, measures, minimizers, nulls, pvalues
from hullcal._compiled.streams import key_of
from hullcal._validation import (
    HullcalWarning,
    InvalidInputError,
    check_flag,
    check_fraction,
    check_integer,
    check_jobs,
    check_seed,
)
from hullcal.engines import Engine
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.nulls import ONE_CALIBRATED, Null, Resampling, kept_in, kept_seed
from hullcal.progress import reporting
from hullcal.results import CalibrationTestResult, MinimizeResult
from hullcal.sets import ClassifierSet

#: What a result says whose replicates were searched only as far as its p-value asks.
_BOUNDS = ("searches ended below the statistic, so that null values there are bounds from above",)


def calibration_test(
    probs: ArrayLike | ClassifierSet,
    labels: ArrayLike | None,
    *,
    measure: str | Measure | Callable[..., float] = "ece_conf",
    null: str | Null = "recentered",
    minimizer: str | Minimizer = "pairwise",
    n_resamples: int = 999,
    alpha: float = 0.05,
    classes: ArrayLike | None = None,
    from_logits: bool = False,
    from_log: bool = False,
    engine: str | Engine | None = None,
    stop_after: int | None = None,
    pvalue_only: bool = False,
    journal: str | Path | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    progress: bool | Callable[[int, int], None] = False,
) -> CalibrationTestResult:
    """Test whether the convex hull of classifiers contains a calibrated one (Algorithm 1).

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes)
        Predictions of the members; (n_samples, n_classes) is one classifier; a list of M arrays
        (n_samples, n_classes), a ClassifierSet and a dask array will do as well. With
        ``engine="dask"`` also the path of a store, and then `labels` can be None if it has them.
    labels : array-like of shape (n_samples,)
        Class indices; one-hot rows, or names with `classes`.
    measure : str, Measure or callable
        The calibration measure g; see `hullcal.measures.available()`. A callable g(probs, labels)
        is evaluated as Python.
    null : str or Null
        How the reference distribution is made, and so what is tested: "recentered", "stacked",
        "maximized" and "paper" test "contains a calibrated classifier"; "refit" tests "contains the
        truth".
    minimizer : str or Minimizer
        The search over the simplex; data and replicates get the same budget.
    n_resamples : int
        D, the number of null values.
    alpha : float
        Level of the decision; any other level can be had from the result.
    classes : sequence, optional
        Names of the classes in the order of the last axis.
    from_logits, from_log : bool
        Whether `probs` holds logits or log-probabilities.
    engine : {None, "local", "dask"} or Engine
        Who evaluates: this machine, or the workers of a Dask cluster (`hullcal.engines.Dask` names
        one). None is Dask for a dask array and this machine for all else.
    stop_after : int, optional
        Stop resampling once so many null values have reached the statistic (Besag and Clifford 1991):
        a clearly calibrated set is done after a few resamples, and the p-value is as valid as that
        of all of them. 10 is usual. For the nulls "paper", "recentered" and "refit".
    pvalue_only : bool
        End the search of a replicate once a combination is below the statistic (minimizer "pairwise";
        others go on). The p-value is the same, and a set that is clearly rejected takes a fraction of
        the time; null values below the statistic are then bounds from above, and so is the critical
        value of a set that is rejected.
    journal : path, optional
        A folder in which finished resamples are kept: the same call goes on where the last one was
        stopped, with the same result.
    rng : int, numpy.random.Generator or None
        Seed; the one used is kept in the result. None takes that of the journal, if there is one.
    n_jobs : int
        Threads; -1 for all cores. Their number never changes a result.
    progress : bool or callable
        True shows a bar on stderr; a callable gets (done, total).

    Returns
    -------
    CalibrationTestResult

    Examples
    --------
    >>> import numpy as np
    >>> members = np.random.default_rng(0).dirichlet([1, 1, 1], size=(200, 4))
    >>> labels = [np.random.default_rng(i).choice(3, p=p[0]) for i, p in enumerate(members)]
    >>> calibration_test(members, labels, n_resamples=99, rng=1).rejected
    False
    """
    g = measures.resolve(measure)
    reference = nulls.resolve(null)
    easy = g.easily_searched and reference.searches_measure
    search = minimizers.resolve(minimizer).budgeted(in_test=True, easy=easy)
    alpha, n_resamples = check_level(alpha, n_resamples)
    stop_after = check_stop(stop_after, reference)
    check_keeping(journal, reference)
    n_jobs = check_jobs(n_jobs)
    check_flag(pvalue_only, "pvalue_only")
    seed = check_seed(rng if rng is not None or journal is None else kept_seed(journal))
    options: dict[str, Any] = {"classes": classes, "from_logits": from_logits, "from_log": from_log}
    with engines.resolve(engine, probs).open(probs, labels, **options) as data:
        g.check(data.n_samples)
        search.check(g, data.n_members)
        reference.check(g, search)
        in_memory = reference.needs_predictions(g) or search.needs_predictions
        data.check(g, in_memory=in_memory, draws_rows=reference.draws_rows)
        problem = data.problem(g, in_memory=in_memory, n_jobs=n_jobs)
        # Of one member nothing is searched, nor by other nulls in a replicate; other searches go on.
        searched = reference.minimizes_replicates and problem.objective.n_members > 1
        pvalue_only = pvalue_only and searched and search.ends_early
        settings = {
            "measure": problem.objective.measure.settings(),
            "minimizer": search.settings(),
            "null": reference.settings(),
            **_shortcuts(stop_after, n_resamples, pvalue_only),
        }
        sizes = (data.n_samples, data.n_members, data.n_classes)
        names = (g.name, search.name, reference.name)
        kept = {
            "version": hullcal.__version__,
            "names": names,
            "settings": settings,
            "seed": seed,
            "D": n_resamples,
            "sizes": sizes,
        }
        with reporting(progress) as report, kept_in(journal, kept) as finished:
            resampling = Resampling(
                n_resamples, key_of(seed), n_jobs, report, stop_after, finished, pvalue_only
            )
            # Lines 1 to 5 and line 7; lines 6 and 8 follow from what they leave behind.
            outcome = reference.run(problem, search, resampling)
        exactness = problem.objective.notes_at(outcome.weights)
        notes = (*data.notes, *problem.notes(), *exactness, *outcome.notes)
    return CalibrationTestResult(
        statistic=outcome.statistic,
        weights=problem.distinct.share(outcome.weights),
        null_distribution=outcome.distribution,
        alpha=alpha,
        hypothesis=reference.hypothesis if data.n_members > 1 else ONE_CALIBRATED,
        measure=g.name,
        null=reference.name,
        minimizer=search.name,
        settings=settings,
        n_evaluations=outcome.n_evaluations,
        converged=outcome.converged,
        seed=seed,
        n_samples=data.n_samples,
        n_classes=data.n_classes,
        members=data.members,
        notes=(
            *notes,
            *_stopped(len(outcome.distribution), n_resamples, stop_after),
            *(_BOUNDS if pvalue_only else ()),
        ),
    )


def minimize(
    probs: ArrayLike | ClassifierSet,
    labels: ArrayLike,
    *,
    measure: str | Measure | Callable[..., float] = "ece_conf",
    minimizer: str | Minimizer = "pairwise",
    classes: ArrayLike | None = None,
    from_logits: bool = False,
    from_log: bool = False,
    rng: int | np.random.Generator | None = None,
) -> MinimizeResult:
    """Find the weights of the best calibrated combination (line 7 of Algorithm 1).

    Parameters are those of `calibration_test`; a search left to its default may spend more here
    than inside a test.

    Returns
    -------
    MinimizeResult

    Examples
    --------
    >>> minimize([[[1.0, 0.0], [0.5, 0.5]]] * 20, [0, 1] * 10, rng=0).weights
    array([0., 1.])
    """
    g = measures.resolve(measure)
    search = minimizers.resolve(minimizer).budgeted(in_test=False)
    seed = check_seed(rng)
    options: dict[str, Any] = {"classes": classes, "from_logits": from_logits, "from_log": from_log}
    with engines.resolve(None, probs).open(probs, labels, **options) as data:
        g.check(data.n_samples)
        search.check(g, data.n_members)
        problem = data.problem(g, in_memory=search.needs_predictions, n_jobs=1)
        minima = search.minimize(problem.objective, key_of(seed))
        exactness = problem.objective.notes_at(minima.weights[0])
        notes = data.notes + problem.notes() + exactness
    return MinimizeResult(
        weights=problem.distinct.share(minima.weights[0]),
        value=float(minima.values[0]),
        n_evaluations=int(minima.n_evaluations[0]),
        converged=bool(minima.converged[0]),
        measure=g.name,
        minimizer=search.name,
        settings={
            "measure": problem.objective.measure.settings(),
            "minimizer": search.settings(),
        },
        seed=seed,
        members=data.members,
        notes=notes,
    )


def check_level(alpha: float, n_resamples: int) -> tuple[float, int]:
    """Both, checked; a warning if they cannot reject together."""
    alpha = check_fraction(alpha, "alpha")
    n_resamples = check_integer(n_resamples, "n_resamples", 1)
    if pvalues.rejections_allowed(n_resamples, alpha) == 0:
        warnings.warn(
            f"no p-value of {n_resamples} resamples can be {alpha:g} or less, so nothing can be "
            f"rejected; the smallest `n_resamples` that could is "
            f"{pvalues.smallest_n_resamples(alpha)}.",
            HullcalWarning,
            stacklevel=3,
        )
    return alpha, n_resamples


def check_stop(stop_after: int | None, reference: Null) -> int | None:
    """The number of exceedances, checked; refused for a null that cannot stop early."""
    if stop_after is None:
        return None
    if not reference.can_stop:
        raise InvalidInputError(
            f"`stop_after` must be None with null `{reference.name}`, whose p-value is the largest of "
            f'several; got {stop_after!r}. Leave it out, or use null="recentered" or "refit".'
        )
    return check_integer(stop_after, "stop_after", 2)


def check_keeping(journal: object, reference: Null) -> None:
    """Refuse a journal for a null whose resamples are never finished one by one."""
    if journal is not None and not reference.can_keep:
        raise InvalidInputError(
            f"`journal` must be None with null `{reference.name}`, which has no finished resamples to "
            f'keep; got {str(journal)!r}. Leave it out, or use null="recentered" or "refit".'
        )


def _shortcuts(stop_after: int | None, n_resamples: int, pvalue_only: bool) -> dict[str, Any]:
    """Settings of a run that need not go all the way; D, as such a run may leave fewer null values."""
    taken: dict[str, Any] = {}
    if stop_after is not None:
        taken |= {"stop_after": stop_after, "n_resamples": n_resamples}
    if pvalue_only:
        taken["pvalue_only"] = True
    return taken


def _stopped(n_kept: int, n_resamples: int, stop_after: int | None) -> tuple[str, ...]:
    if stop_after is None or n_kept == n_resamples:
        return ()
    return (
        f"stopped at resample {n_kept + 1} of {n_resamples}, the number {stop_after} to reach the "
        "statistic",
    )
