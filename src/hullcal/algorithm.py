"""Algorithm 1 from input to result: `calibration_test`, and its line 7 alone, `minimize`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

import hullcal
from hullcal import measures, minimizers, nulls, pvalues
from hullcal._compiled.streams import key_of
from hullcal._validation import (
    InvalidInputError,
    check_fraction,
    check_integer,
    check_jobs,
    check_seed,
    warn,
)
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.notes import Note
from hullcal.nulls import ONE_CALIBRATED, Null
from hullcal.objectives.base import Objective
from hullcal.objectives.opening import LabelledSet, open_set
from hullcal.resampling import Loop, Progress, kept_seed
from hullcal.results import CalibrationTestResult, MinimizeResult
from hullcal.sets import ClassifierSet

if TYPE_CHECKING:
    from distributed import Client


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
    engine: str | Client | None = None,
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
    engine : {None, "local", "dask"} or distributed.Client
        Backend: this machine, or the workers of a Dask cluster: those of a client, and with "dask"
        those of the current client or else processes on this machine, which a script must start below
        ``if __name__ == "__main__":``. None is Dask for a dask array and this machine for all else.
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
    g, search = measures.resolve(measure), minimizers.resolve(minimizer)
    reference = None if null is None else nulls.resolve(null)
    loop = check_loop(
        reference,
        n_resamples=n_resamples,
        stop_after=stop_after,
        journal=journal,
        rng=rng,
        n_jobs=n_jobs,
    )
    alpha = check_level(alpha, loop.n_resamples)
    given: dict[str, Any] = {"classes": classes, "from_logits": from_logits, "from_log": from_log}
    with open_set(probs, labels, engine=engine, **given) as data:
        return algorithm_1(data, g, reference, search, loop, alpha=alpha, progress=progress)


def algorithm_1(
    data: LabelledSet,
    measure: Measure,
    null: Null | None,
    minimizer: Minimizer,
    loop: Loop,
    *,
    alpha: float,
    progress: bool | Progress,
) -> CalibrationTestResult:
    """Algorithm 1 on data that are open, with options that were checked."""
    reference, search = settled(data, measure, null, minimizer)
    in_memory = _in_memory(measure, reference, search)
    objective = data.objective(measure, in_memory=in_memory, n_jobs=loop.n_jobs)  # λ ↦ g(p_λ, D)
    settings: dict[str, Any] = {
        "measure": objective.measure.settings(),
        "minimizer": search.settings(),
        "null": reference.settings(),
    }
    if loop.stop_after is not None:
        # D too, as such a run may leave fewer null values.
        settings |= {"stop_after": loop.stop_after, "n_resamples": loop.n_resamples}
    names: dict[str, Any] = {
        "measure": measure.name,
        "null": reference.name,
        "minimizer": search.name,
    }
    sizes: dict[str, Any] = {"n_samples": data.n_samples, "n_classes": data.n_classes}
    configuration = {
        "version": hullcal.__version__,
        "settings": settings,
        "seed": loop.seed,
        "D": loop.n_resamples,
        "M": data.n_members,
        **names,
        **sizes,
    }
    with loop.opened(configuration, progress) as running:
        line_7 = search.observed if reference.searches_replicates else search.best
        best = line_7(objective, running.key)
        running.check_data(float(best.values[0]), objective)
        replicates = reference.distribution(objective, best, search, running)  # lines 1 to 5
    found = {
        "statistic": float(best.means[0]),
        "minimum": float(best.values[0]),
        "weights": best.weights[0],
        "converged": bool(best.converged[0]),
        "notes": (),
        **replicates,
    }
    found["weights"] = data.distinct.share(found["weights"])
    found["n_evaluations"] += int(best.n_evaluations[0])
    found["notes"] = (*data.notes, *_impossible(objective), *found["notes"])
    if null is None and reference.name != nulls.USUAL:
        beyond = Note("beyond_memory", {"null": reference.name, "usual": nulls.USUAL})
        found["notes"] += (beyond,)
    found["notes"] += loop.notes(len(found["null_distribution"]))
    # Lines 6 and 8 are properties of the result: its critical value, and whether it is rejected.
    return CalibrationTestResult(
        **found,
        **names,
        **sizes,
        alpha=alpha,
        hypothesis=reference.hypothesis if data.n_members > 1 else ONE_CALIBRATED,
        settings=settings,
        seed=loop.seed,
        members=data.members,
    )


def check_loop(
    null: Null | None,
    *,
    n_resamples: int,
    stop_after: int | None,
    journal: str | Path | None,
    rng: int | np.random.Generator | None,
    n_jobs: int,
) -> Loop:
    """How replicates are to be run, checked before data are looked at."""
    if null is not None and not null.one_by_one:
        for name, value in (("stop_after", stop_after), ("journal", journal)):
            if value is not None:
                raise InvalidInputError(
                    f"`{name}` must be None with null `{null.name}`, whose resamples are run together; "
                    f'got {str(value)!r}. Leave it out, or use null="stacked".'
                )
    return Loop(
        n_resamples=check_integer(n_resamples, "n_resamples", 1),
        seed=check_seed(rng if rng is not None or journal is None else kept_seed(journal)),
        n_jobs=check_jobs(n_jobs),
        stop_after=None if stop_after is None else check_integer(stop_after, "stop_after", 2),
        folder=journal,
    )


def check_level(alpha: float, n_resamples: int) -> float:
    """The level, checked; a warning if so many resamples cannot reject at it."""
    alpha = check_fraction(alpha, "alpha")
    if pvalues.rejections_allowed(n_resamples, alpha) == 0:
        warn(
            f"no p-value of {n_resamples} resamples can be {alpha:g} or less, so nothing can be "
            f"rejected; the smallest `n_resamples` that could is "
            f"{pvalues.smallest_n_resamples(alpha)}."
        )
    return alpha


def settled(
    data: LabelledSet, measure: Measure, null: Null | None, minimizer: Minimizer
) -> tuple[Null, Minimizer]:
    """The null for these data and the search with its budget; refused if these data have no answer."""
    usual = nulls.USUAL if data.fits_memory else nulls.BEYOND_MEMORY
    reference = nulls.resolve(usual if null is None else null)
    # A null that searches but once, whatever it does with replicates, can search for longer.
    in_test = reference.one_by_one
    search = minimizer.budgeted(in_test=in_test, easy=in_test and measure.easily_searched)
    measure.check(data.n_samples)
    search.check(measure, data.n_members)
    reference.check(measure, search)
    data.check(measure, in_memory=_in_memory(measure, reference, search))
    return reference, search


def _in_memory(measure: Measure, null: Null, minimizer: Minimizer) -> bool:
    return null.needs_predictions(measure) or minimizer.needs_predictions


def _impossible(objective: Objective) -> tuple[Note, ...]:
    n_rows = objective.impossible()
    return (Note("impossible", {"n_rows": n_rows}),) if n_rows > 0 else ()


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
    with open_set(probs, labels, **options) as data:
        g.check(data.n_samples)
        search.check(g, data.n_members)
        data.check(g, in_memory=search.needs_predictions)
        objective = data.objective(g, in_memory=search.needs_predictions, n_jobs=1)
        minima = search.best(objective, key_of(seed))
        notes = data.notes + _impossible(objective)
    return MinimizeResult(
        weights=data.distinct.share(minima.weights[0]),
        value=float(minima.values[0]),
        n_evaluations=int(minima.n_evaluations[0]),
        converged=bool(minima.converged[0]),
        measure=g.name,
        minimizer=search.name,
        settings={
            "measure": objective.measure.settings(),
            "minimizer": search.settings(),
        },
        seed=seed,
        members=data.members,
        notes=notes,
    )
