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
    takes_rng,
    warn,
)
from hullcal.measures import Measure
from hullcal.minimizers import Minima, Minimizer
from hullcal.notes import Note
from hullcal.nulls import CALIBRATED, ONE_CALIBRATED, TRUTH, Null
from hullcal.objectives.base import Floats, Objective
from hullcal.objectives.opening import LabelledSet, open_set
from hullcal.resampling import Loop, Progress, kept_seed
from hullcal.results import CalibrationTestResult, MinimizeResult
from hullcal.sets import ClassifierSet

if TYPE_CHECKING:
    from distributed import Client


@takes_rng
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
    normalize: bool = False,
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
        (n_samples, n_classes) or a dict of them by name, a data frame in wide form, a ClassifierSet
        or a dask array. With ``engine="dask"`` also the path of a store. `labels` can
        be None if a store or a frame has them.
    labels : array-like of shape (n_samples,)
        Class indices; one-hot rows, or names with `classes`.
    measure : str, Measure or callable
        The calibration measure g; see `hullcal.measures.available()`. A callable g(probs, labels)
        is evaluated as Python.
    null : str or Null, optional
        How the reference distribution is made: "stacked", "recentered", "maximized" or "paper".
        Left out: "stacked", or "recentered" with a note for predictions that do not fit into memory.
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
    normalize : bool
        Whether rows of `probs` are divided by their sums, as for rounded probabilities or votes.
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
    loop = check_loop(reference, n_resamples, rng, n_jobs, stop_after=stop_after, journal=journal)
    alpha = check_level(alpha, loop.n_resamples)
    given = {"from_logits": from_logits, "from_log": from_log, "normalize": normalize}
    with open_set(probs, labels, engine=engine, classes=classes, **given) as data:
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
    reference, search, in_memory = settled(data, measure, null, minimizer)
    objective = data.objective(measure, in_memory=in_memory, n_jobs=loop.n_jobs)  # λ ↦ g(p_λ, D)
    described = _described(data, objective, reference, search, loop)
    hypothesis = reference.hypothesis if data.n_members > 1 else ONE_CALIBRATED
    kept = {"version": hullcal.__version__, "D": loop.n_resamples, "M": data.n_members}
    with loop.opened(kept | described, progress) as running:
        best = reference.line_7(objective, search, running)  # line 7: t, the smallest g(p_λ, D)
        running.check_data(float(best.values[0]), objective.fingerprint)
        null_values, n_evaluations = lines_1_to_5(objective, best, reference, search, running)
        notes = _impossible(objective, hypothesis)
        notes += reference.notes(objective, best, running)
    if null is None and reference.name != nulls.USUAL:
        notes += (Note("beyond_memory", {"null": reference.name, "usual": nulls.USUAL}),)
    return CalibrationTestResult(  # its critical_value is line 6, its rejected line 8
        statistic=float(best.means[0]),
        minimum=float(best.values[0]),
        weights=data.distinct.share(best.weights[0]),
        null_distribution=null_values,
        n_evaluations=int(best.n_evaluations[0]) + n_evaluations,
        converged=bool(best.converged[0]),
        alpha=alpha,
        hypothesis=hypothesis,
        members=data.members,
        notes=data.notes + notes + loop.notes(len(null_values)),
        **described,
    )


def lines_1_to_5(
    objective: Objective, best: Minima, null: Null, minimizer: Minimizer, loop: Loop
) -> tuple[Floats, int]:
    """The null values, those of the largest p-value if there are several worlds; all evaluations."""
    statistic, largest, n_evaluations = float(best.means[0]), -1.0, 0
    together, n_jobs = null.together(objective, minimizer), objective.threads(loop.n_jobs)
    worlds = null.worlds(objective, best, loop)
    for part, world in enumerate(worlds):
        # Only "paper" draws rows (line 2) and λ0 (line 3); the others keep rows or take λ from the data.
        draw = null.replicates(objective, world, loop)  # lines 2 to 4: D_d

        def line_5(first: int, last: int, draw: Callable[..., Any] = draw) -> Floats:
            return null.statistic(draw(first, last), minimizer, loop)  # line 5: t_0,d

        how = {"together": together, "n_jobs": n_jobs, "part": part, "of_parts": len(worlds)}
        found = loop.run(line_5, statistic, **how)  # line 1: for d = 1, ..., D
        n_evaluations += int(found[:, 1].sum())
        p = pvalues.monte_carlo(statistic, found[:, 0])
        if p > largest:
            largest, values = p, found[:, 0]
    return values, n_evaluations


def _described(
    data: LabelledSet, objective: Objective, null: Null, minimizer: Minimizer, loop: Loop
) -> dict[str, Any]:
    """What is asked of which data: fields of the result, and what a journal must agree in."""
    tools: dict[str, Any] = {"measure": objective.measure, "minimizer": minimizer, "null": null}
    settings: dict[str, Any] = {name: tool.settings() for name, tool in tools.items()}
    if loop.stop_after is not None:
        # D too, as such a run may leave fewer null values.
        settings |= {"stop_after": loop.stop_after, "n_resamples": loop.n_resamples}
    return {
        **{name: tool.name for name, tool in tools.items()},
        "settings": settings,
        "seed": loop.seed,
        "n_samples": data.n_samples,
        "n_classes": data.n_classes,
    }


def check_loop(
    null: Null | None,
    n_resamples: int,
    rng: int | np.random.Generator | None,
    n_jobs: int,
    *,
    stop_after: int | None,
    journal: str | Path | None,
    least: int = 1,
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
        n_resamples=check_integer(n_resamples, "n_resamples", least),
        seed=check_seed(rng if rng is not None or journal is None else kept_seed(journal)),
        n_jobs=check_jobs(n_jobs),
        stop_after=None if stop_after is None else check_integer(stop_after, "stop_after", 2),
        folder=journal,
    )


def check_level(alpha: float, n_resamples: int) -> float:
    """The level, checked; a warning if so many resamples cannot reject at it."""
    alpha = check_fraction(alpha, "alpha")
    if n_resamples and 1 / (n_resamples + 1) > alpha:
        warn(
            f"no p-value of {n_resamples} resamples can be {alpha:g} or less, so nothing can be "
            f"rejected; the smallest `n_resamples` that could is "
            f"{pvalues.smallest_n_resamples(alpha)}."
        )
    return alpha


def settled(
    data: LabelledSet, measure: Measure, null: Null | None, minimizer: Minimizer
) -> tuple[Null, Minimizer, bool]:
    """The null for these data, the search with its budget, and whether they need predictions.

    Refused if these data have no answer.
    """
    usual = nulls.USUAL if data.fits_memory else nulls.BEYOND_MEMORY
    reference = nulls.resolve(usual) if null is None else null
    # A null that searches but once, whatever it does with replicates, can search for longer.
    in_test = reference.one_by_one
    search = minimizer.budgeted(in_test=in_test)
    in_memory = reference.needs_predictions(measure) or "predictions" in search.needs
    measure.check(data.n_samples)
    search.check(measure, data.n_members)
    reference.check(measure, search)
    data.check(measure, in_memory=in_memory)
    return reference, search, in_memory


def _impossible(objective: Objective, hypothesis: str) -> tuple[Note, ...]:
    """Labels with probability 0 under every member; calibrated confidence claims nothing of them."""
    n_rows = objective.impossible()
    refutes = hypothesis == TRUTH or objective.measure.notion in ("classwise", "strong")
    return (Note("impossible", {"n_rows": n_rows, "refutes": refutes}),) if n_rows > 0 else ()


@takes_rng
def minimize(
    probs: ArrayLike | ClassifierSet,
    labels: ArrayLike,
    *,
    measure: str | Measure | Callable[..., float] = "ece_conf",
    minimizer: str | Minimizer = "steepest",
    classes: ArrayLike | None = None,
    from_logits: bool = False,
    from_log: bool = False,
    normalize: bool = False,
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
    given = {"from_logits": from_logits, "from_log": from_log, "normalize": normalize}
    with open_set(probs, labels, engine=None, classes=classes, **given) as data:
        g.check(data.n_samples)
        search.check(g, data.n_members)
        in_memory = "predictions" in search.needs
        data.check(g, in_memory=in_memory)
        objective = data.objective(g, in_memory=in_memory, n_jobs=1)
        minima = search.minimize(objective, key_of(seed), of_data=True)
        notes = data.notes + _impossible(objective, CALIBRATED)
    return MinimizeResult(
        weights=data.distinct.share(minima.weights[0]),
        value=float(minima.values[0]),
        n_evaluations=int(minima.n_evaluations[0]),
        converged=bool(minima.converged[0]),
        measure=g.name,
        minimizer=search.name,
        settings={"measure": objective.measure.settings(), "minimizer": search.settings()},
        seed=seed,
        members=data.members,
        notes=notes,
    )
