"""How many rows does the test need to detect a miscalibration of these members?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal import nulls
from hullcal._validation import (
    InvalidInputError,
    check_fraction,
    check_integer,
    check_jobs,
    check_seed,
    check_weights,
    refusal,
)
from hullcal.measures import Measure
from hullcal.minimizers import Minimizer
from hullcal.nulls import Null
from hullcal.planning import check_level
from hullcal.progress import reporting
from hullcal.sets import ClassifierSet
from hullcal.simulation.miscalibration import Alternative, check_amount, distance
from hullcal.simulation.needed import Power, needed
from hullcal.simulation.rates import wilson
from hullcal.simulation.specs import MeasureSpec, measure_of, minimizer_of
from hullcal.simulation.trials import Trials, run_trials
from hullcal.simulation.workers import check_pickles

__all__ = ["Power", "power"]

#: The stream of the distance; those of data sets begin with a number of rows.
_DISTANCE = (0,)
#: Numbers of rows tried by default, as shares of those given, of which no more than this are counted.
_SHARES, _MOST_ROWS, _FEWEST_ROWS = (0.125, 0.25, 0.5, 1.0, 2.0), 2000, 20


def power(
    probs: ArrayLike | ClassifierSet,
    *,
    miscalibration: str = "temperature",
    amount: float | None = None,
    n_samples: int | Iterable[int] | None = None,
    measure: str | Measure | Callable[..., float] = "ece_conf",
    null: str | Null = "stacked",
    minimizer: str | Minimizer = "steepest",
    weights: str | ArrayLike = "mean",
    n_datasets: int = 100,
    n_resamples: int = 99,
    alpha: float = 0.05,
    target: float = 0.8,
    classes: ArrayLike | None = None,
    from_logits: bool = False,
    from_log: bool = False,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    progress: bool | Callable[[int, int], None] = False,
) -> Power:
    """Chance that the test detects a miscalibration of these members, by number of rows.

    Rows are drawn from the given predictions, and labels from a truth that is off the combination
    p_w by a stated amount; no labels are needed. The test asks whether *any* combination is
    calibrated, and a large hull holds many: mixing members may repair part of the miscalibration, or
    all of it, and then there is little or nothing to detect. So the result also says how far the
    alternative is from the hypothesis (`distance`): the measure at p_w beside its minimum over the
    hull. (Null "refit" asks whether the hull contains the truth, and may reject where that
    minimum is small.)

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes)
        Predictions of the members, as for `calibration_test`. Rows are drawn without replacement, and
        with replacement for more rows than there are.
    miscalibration : {"temperature", "corner", "closest"}
        What the truth is: proportional to p_w ** (1 / amount); or (1 - amount) p_w + amount times the
        corner of a random class of each row, which on average adds the uniform distribution (as in
        S3); or the same with the corner of the most probable class (as in S2).
    amount : float, optional
        A temperature above 1 makes the members overconfident, one below 1 underconfident, and 1 is no
        miscalibration, so that the rates are the level of the test. Shares of the way to a corner lie
        in [0, 1], and 0 is none. Left out: temperature 1.5, or a share of 0.2.
    n_samples : int or sequence of int, optional
        Numbers of rows to try. Left out: 1/8, 1/4, 1/2, 1 and 2 times the rows given, of which at
        most 2000 are counted.
    measure, null, minimizer
        The test, as for `calibration_test`; "ece_conf:5" has five bins.
    weights : "mean" or array-like of shape (n_members,)
        w, the combination that would be calibrated.
    n_datasets : int
        R, data sets for each number of rows.
    n_resamples : int
        D, null values of each test.
    alpha : float
        Level of the test.
    target : float
        The power that is wanted, above `alpha`.
    classes, from_logits, from_log
        As for `calibration_test`.
    rng : int, numpy.random.Generator or None
        Seed; the one used is kept in the result. Data set r of N rows depends on (seed, N, r) alone.
    n_jobs : int
        Processes; -1 for one a core. Their number never changes a result.
    progress : bool or callable
        True shows a bar on stderr; a callable gets (done, total) in tests.

    Returns
    -------
    Power

    Raises
    ------
    StudyError
        If a test fails; it names the data set.
    WorkerDied
        If a worker process is lost.

    Examples
    --------
    >>> import numpy as np
    >>> members = np.random.default_rng(0).dirichlet([1, 1, 1], size=(60, 2))
    >>> found = power(members, amount=3.0, n_samples=[30, 60], n_datasets=5, n_resamples=19, rng=0)
    >>> found.n_samples, found.power.shape
    (array([30, 60]), (2,))
    """
    classifiers = ClassifierSet.of(
        probs, classes=classes, from_logits=from_logits, from_log=from_log
    )
    amount = check_amount(miscalibration, amount)
    g, reference = measure_of(measure).measure, nulls.resolve(null)
    chosen = minimizer_of(minimizer).minimizer
    easy = g.easily_searched and reference.searches_measure
    search = chosen.budgeted(in_test=True, easy=easy)
    search.check(g, classifiers.n_members)
    reference.check(g, search)
    sizes = _sizes(n_samples, classifiers.n_samples, g)
    g.check(sizes[0], stacklevel=3)
    w = _weights(weights, classifiers.n_members)
    n_datasets = check_integer(n_datasets, "n_datasets", 1)
    alpha, n_resamples = check_level(alpha, n_resamples)
    target = _target(target, alpha)
    jobs, seed = check_jobs(n_jobs), check_seed(rng)
    alternative = Alternative(
        probs=classifiers.probs,
        mixed=classifiers.mix(w),
        miscalibration=miscalibration,
        amount=amount,
    )
    trials = Trials(alternative, g, reference, search, n_resamples, alpha, seed)
    if jobs > 1:
        check_pickles(measure=g, null=reference, minimizer=search)
    with reporting(progress, "tests") as report:
        if report is not None:
            report(0, len(sizes) * n_datasets)
        stream = np.random.SeedSequence(seed, spawn_key=_DISTANCE)
        far = distance(
            alternative, g, chosen.budgeted(in_test=True), np.random.default_rng(stream), seed
        )
        rejections = dict.fromkeys(sizes, 0)
        done = 0
        with closing(run_trials(trials, sizes, n_datasets, jobs)) as results:
            for (size, first, last), count in results:
                rejections[size] += count
                done += last - first
                if report is not None:
                    report(done, len(sizes) * n_datasets)
    rates = [(count / n_datasets, *wilson(count, n_datasets)) for count in rejections.values()]
    rows, interval = needed(sizes, rates, n_datasets, target)
    shares, lower, upper = np.array(rates).T
    return Power(
        n_samples=np.array(sizes),
        power=shares,
        lower=lower,
        upper=upper,
        target=target,
        n_needed=rows,
        n_needed_interval=interval,
        miscalibration=miscalibration,
        amount=amount,
        distance=far,
        weights=w,
        measure=MeasureSpec(g).name,
        null=reference.name,
        minimizer=search.name,
        alpha=alpha,
        n_datasets=n_datasets,
        n_resamples=n_resamples,
        n_rows=classifiers.n_samples,
        settings={
            "measure": g.settings(),
            "minimizer": search.settings(),
            "null": reference.settings(),
        },
        seed=seed,
        notes=classifiers.notes,
    )


def _sizes(n_samples: Any, n_rows: int, measure: Measure) -> list[int]:
    """Numbers of rows to try, ascending, none twice."""
    if n_samples is None:
        counted = min(n_rows, _MOST_ROWS)
        fewest = max(_FEWEST_ROWS, measure.min_samples)
        return sorted({max(fewest, round(share * counted)) for share in _SHARES})
    several = isinstance(n_samples, Iterable) and not isinstance(n_samples, str)
    single = not several or getattr(n_samples, "ndim", 1) == 0
    values = [n_samples] if single else list(n_samples)
    if not values:
        raise InvalidInputError(
            "`n_samples` must have at least one value; got none. Leave it out for the usual ones."
        )
    return sorted({check_integer(value, "n_samples", 1) for value in values})


def _weights(weights: Any, n_members: int) -> NDArray[np.float64]:
    if isinstance(weights, str):
        if weights != "mean":
            rule = 'must be "mean" or one weight per member'
            raise refusal("weights", rule, repr(weights), 'Pass for example `weights="mean"`.')
        return np.full(n_members, 1.0 / n_members)
    return check_weights(weights, n_members)


def _target(target: Any, alpha: float) -> float:
    wanted = check_fraction(target, "target")
    if wanted <= alpha:
        rule = f"must be above `alpha`, {alpha:g}, which a test reaches without any miscalibration"
        raise refusal("target", rule, f"{wanted:g}", "Pass for example `target=0.8`.")
    return wanted
