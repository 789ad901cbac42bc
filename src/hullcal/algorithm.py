"""Algorithm 1 from input to result: `calibration_test`, and its line 7 alone, `minimize`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hullcal import engines, measures, minimizers
from hullcal._compiled.streams import key_of
from hullcal._validation import check_seed
from hullcal.engines import Data, Engine
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.nulls import ONE_CALIBRATED, Null, kept_in
from hullcal.planning import Plan
from hullcal.progress import reporting
from hullcal.results import CalibrationTestResult, MinimizeResult
from hullcal.sets import ClassifierSet


def calibration_test(
    probs: ArrayLike | ClassifierSet,
    labels: ArrayLike | None,
    *,
    measure: str | Measure | Callable[..., float] = "ece_conf",
    null: str | Null | None = None,
    minimizer: str | Minimizer = "steepest",
    n_resamples: int = 999,
    alpha: float = 0.05,
    classes: ArrayLike | None = None,
    from_logits: bool = False,
    from_log: bool = False,
    engine: str | Engine | None = None,
    stop_after: int | None = None,
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
    null : str or Null, optional
        How the reference distribution is made, and so what is tested: "stacked", "recentered",
        "maximized" and "paper" test "contains a calibrated classifier"; "refit" tests "contains the
        truth". Left out: "stacked", or "recentered" with a note for predictions that do not fit into
        memory.
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
        of all of them. 10 is usual. Not for "maximized".
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
    >>> rng = np.random.default_rng(0)
    >>> members = rng.dirichlet([1, 1, 1], size=(200, 4))
    >>> labels = [rng.choice(3, p=p.mean(axis=0)) for p in members]
    >>> calibration_test(members, labels, n_resamples=99, rng=1).rejected
    False
    """
    plan = Plan.of(
        measure=measure,
        null=null,
        minimizer=minimizer,
        n_resamples=n_resamples,
        alpha=alpha,
        stop_after=stop_after,
        journal=journal,
        rng=rng,
        n_jobs=n_jobs,
    )
    options: dict[str, Any] = {"classes": classes, "from_logits": from_logits, "from_log": from_log}
    with engines.resolve(engine, probs).open(probs, labels, **options) as data:
        return run(plan, data, journal=journal, progress=progress)


def run(
    plan: Plan,
    data: Data,
    *,
    journal: str | Path | None,
    progress: bool | Callable[[int, int], None],
) -> CalibrationTestResult:
    """Algorithm 1, as planned, on data that are open."""
    plan = plan.beside(data)
    problem = plan.problem(data)
    kept = plan.configuration(data, problem)
    with reporting(progress) as report, kept_in(journal, kept) as finished:
        # Lines 1 to 5 and line 7; lines 6 and 8 follow from what they leave behind.
        outcome = plan.null.run(problem, plan.search, plan.resampling(report, finished))
    notes = (*data.notes, *problem.notes())
    return CalibrationTestResult(
        statistic=outcome.statistic,
        minimum=outcome.minimum,
        weights=problem.distinct.share(outcome.weights),
        null_distribution=outcome.distribution,
        alpha=plan.alpha,
        hypothesis=plan.null.hypothesis if data.n_members > 1 else ONE_CALIBRATED,
        measure=plan.measure.name,
        null=plan.null.name,
        minimizer=plan.search.name,
        settings=plan.settings(problem),
        n_evaluations=outcome.n_evaluations,
        converged=outcome.converged,
        seed=plan.seed,
        n_samples=data.n_samples,
        n_classes=data.n_classes,
        members=data.members,
        notes=(*notes, *outcome.notes, *plan.notes(len(outcome.distribution))),
    )


def minimize(
    probs: ArrayLike | ClassifierSet,
    labels: ArrayLike,
    *,
    measure: str | Measure | Callable[..., float] = "ece_conf",
    minimizer: str | Minimizer = "steepest",
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
        data.check(g, in_memory=search.needs_predictions, draws_rows=False)
        problem = data.problem(g, in_memory=search.needs_predictions, n_jobs=1)
        minima = search.observed(problem.objective, key_of(seed))
        notes = data.notes + problem.notes()
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
