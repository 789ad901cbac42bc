"""Does the hull contain the truth? A likelihood ratio with its p-value, and an e-value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

import hullcal
from hullcal import measures, minimizers
from hullcal._validation import check_integer, takes_rng
from hullcal.algorithm import algorithm_1, check_level, check_loop
from hullcal.alternatives import (
    POOL,
    RIDGES,
    TEMPERATURE,
    at_combination,
    average_ratios,
    fit_alternative,
    temperature_of,
)
from hullcal.evidence import log_evalue
from hullcal.likelihood import Mixture, fit_mixture
from hullcal.measures import Measure
from hullcal.minimizers import Minima, Minimizer
from hullcal.notes import Note
from hullcal.nulls import ONE_CALIBRATED, TRUTH, Null
from hullcal.objectives.base import READ_AT_ONCE, Draw, Floats, Objective
from hullcal.objectives.chunked import Cases, range_size
from hullcal.objectives.opening import LabelledSet, open_set
from hullcal.resampling import Loop, Progress
from hullcal.results import CalibrationTestResult, TruthTestResult
from hullcal.sets import ClassifierSet

if TYPE_CHECKING:
    from distributed import Client


#: Rows that a result shows as its surprises.
_SURPRISES = 10
#: Replicates fitted together: a pass over the rows serves them all.
_TOGETHER = 64


@takes_rng
def truth_test(
    probs: ArrayLike | ClassifierSet,
    labels: ArrayLike | None,
    *,
    measure: str | Measure | Callable[..., float] | None = None,
    minimizer: str | Minimizer = "steepest",
    n_resamples: int = 999,
    n_orders: int = 1,
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
) -> TruthTestResult | CalibrationTestResult:
    r"""Test whether the convex hull of classifiers contains the truth (H0').

    The hypothesis says that labels follow some combination :math:`p_\lambda(x)` of the members. It
    implies that this combination is calibrated, so it is stronger than that of `calibration_test`.

    The statistic is the logarithm of the likelihood ratio of alternatives to the likeliest combination,
    averaged over families of them: another temperature, other trust in the members, classes that are
    too likely or too unlikely. It rests on one concave fit, so there is no search and no order of rows
    or members. Its distribution under the hypothesis comes from labels drawn from the likeliest
    combination (parametric bootstrap). The e-value needs no resampling and is valid for any
    number of rows.

    Parameters
    ----------
    probs, labels, classes, from_logits, from_log, normalize, engine
        As for `calibration_test`.
    measure : str, Measure or callable, optional
        Test by the smallest value of a calibration measure over the hull instead of by likelihood,
        with labels drawn in the same way. The result is then a `CalibrationTestResult`.
    minimizer : str or Minimizer
        The search over the simplex, with a measure only.
    n_resamples : int
        Number of resamples behind the p-value. 0 computes the e-value alone, with the p-value
        min(1, 1/e).
    n_orders : int
        Orders of the rows over which the e-value is averaged, by likelihood only. More of them make it
        depend less on the seed, at the cost of one e-value each.
    alpha : float
        Level of the decision.
    stop_after, journal, rng, n_jobs, progress
        As for `calibration_test`.

    Returns
    -------
    TruthTestResult, or CalibrationTestResult with a measure

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> members = rng.dirichlet([1, 1, 1], size=(200, 4))
    >>> labels = [rng.choice(3, p=p.mean(axis=0)) for p in members]
    >>> truth_test(members, labels, n_resamples=99, rng=1).rejected
    False
    """
    g = None if measure is None else measures.resolve(measure)
    n_orders = check_integer(n_orders, "n_orders", 1)
    search = minimizers.resolve(minimizer)
    least = 0 if g is None else 1
    loop = check_loop(
        None, n_resamples, rng, n_jobs, stop_after=stop_after, journal=journal, least=least
    )
    alpha = check_level(alpha, loop.n_resamples)
    given = {"from_logits": from_logits, "from_log": from_log, "normalize": normalize}
    with open_set(probs, labels, engine=engine, classes=classes, **given) as data:
        if g is not None:
            return algorithm_1(data, g, Refit(), search, loop, alpha=alpha, progress=progress)
        return likelihood_test(data, loop, alpha=alpha, progress=progress, n_orders=n_orders)


@dataclass(frozen=True, kw_only=True)
class Refit(Null):
    """A parametric bootstrap for "the hull contains the truth", by a calibration measure.

    Rows stay fixed; labels come from the combination of greatest likelihood; every replicate is
    minimised as the data were. The level holds asymptotically. A set that is calibrated without
    containing the truth is rejected.
    """

    name: ClassVar[str] = "refit"
    hypothesis: ClassVar[str] = TRUTH

    def replicates(self, objective: Objective, best: Minima, loop: Loop) -> Draw:
        return objective.drawing_labels(objective.maximum_likelihood(), loop.key)


def likelihood_test(
    data: LabelledSet,
    loop: Loop,
    *,
    alpha: float,
    progress: bool | Progress,
    n_orders: int = 1,
) -> TruthTestResult:
    """The test by likelihood, on data that are open, with options that were checked."""
    passes = data.passes(loop.n_jobs)
    best = fit_mixture(passes, Cases.data())
    observed = passes, Cases.data(), best.weights
    at_best = at_combination(*observed, POOL)
    pool, temperature = (
        fit_alternative(*observed, kind, RIDGES[kind], at_best)[0] for kind in (POOL, TEMPERATURE)
    )
    statistic = evalue = np.inf
    log_likelihood, notes = -np.inf, tuple[Note, ...]()
    n_impossible = data.n_samples - round(float(best.n_rows[0]))
    if n_impossible:
        notes = (Note("impossible", {"n_rows": n_impossible, "refutes": True}),)
    else:
        log_likelihood = float(best.log_likelihoods[0])
        statistic = float(average_ratios(*observed, at_best)[0])
    settings: dict[str, Any] = {"ridges": list(RIDGES)}
    if loop.stop_after is not None:
        settings |= {"stop_after": loop.stop_after, "n_resamples": loop.n_resamples}
    sizes: dict[str, Any] = {"n_samples": data.n_samples, "n_classes": data.n_classes}
    configuration = {
        "version": hullcal.__version__,
        "test": "truth",
        "settings": settings,
        "seed": loop.seed,
        "D": loop.n_resamples,
        "M": data.n_members,
        **sizes,
    }
    null_values = np.zeros(0)
    if loop.n_resamples:
        with loop.opened(configuration, progress) as running:
            running.check_data(best.log_likelihoods[0], passes.fingerprint)
            null_values = _null_values(data, best, statistic, running)
    if not n_impossible:
        evalue = log_evalue(data, passes, best.upper_bounds[0], loop.seed, n_orders)
    return TruthTestResult(
        statistic=statistic,
        null_distribution=null_values,
        log_evalue=evalue,
        alpha=alpha,
        hypothesis=TRUTH if data.n_members > 1 else ONE_CALIBRATED,
        weights=data.distinct.share(best.weights[0]),
        log_likelihood=log_likelihood,
        gap=float(best.gaps[0]),
        temperature=temperature_of(temperature[0]),
        pool=np.append(pool[0], data.distinct.share(pool[1:])),
        **_unlikely_rows(data, best),
        settings=settings | ({"n_orders": n_orders} if n_orders > 1 else {}),
        seed=loop.seed,
        members=data.members,
        notes=data.notes + notes + loop.notes(len(null_values)),
        **sizes,
    )


def _null_values(data: LabelledSet, best: Mixture, statistic: float, loop: Loop) -> Floats:
    """The statistic of labels from the likeliest combination: rows fixed, the combination refitted."""
    # Few rows: threads share the replicates. Many: they share the rows.
    few = data.n_samples <= range_size(data.n_samples)
    passes = data.passes(1 if few else loop.n_jobs)

    def block(first: int, last: int) -> Floats:
        cases = Cases.labels(best.weights[0], loop.key, first, last)
        ratios = average_ratios(passes, cases, fit_mixture(passes, cases).weights)
        return np.column_stack([ratios, np.zeros(len(cases))])

    work = data.n_samples * data.n_members * data.n_classes * 10
    together = max(4, min(_TOGETHER, READ_AT_ONCE // work))
    n_jobs = loop.n_jobs if few else 1
    return loop.run(block, statistic, together=together, n_jobs=n_jobs)[:, 0]


def _unlikely_rows(data: LabelledSet, best: Mixture) -> dict[str, Any]:
    """Rows whose labels the likeliest combination finds least likely, and those it finds impossible."""
    if data.classifiers is None or data.labels is None:
        return {"surprises": (), "surprise_probabilities": np.zeros(0), "impossible": ()}
    positions, size = data.distinct.positions, range_size(0)
    chance, largest = np.empty(data.n_samples), np.empty(data.n_samples)
    for first in range(0, data.n_samples, size):
        here = slice(first, first + size)
        labels = data.labels[here, np.newaxis]
        rows = np.arange(len(labels))[:, np.newaxis]
        chances = data.classifiers.probs[here][rows, positions, labels]
        chance[here] = chances.astype(np.float64) @ best.weights[0]
        largest[here] = chances.max(axis=1)
    order = np.argsort(chance, kind="stable")[:_SURPRISES]
    impossible = np.flatnonzero(largest == 0.0)
    return {
        "surprises": tuple(order.tolist()),
        "surprise_probabilities": chance[order],
        "impossible": tuple(impossible.tolist()),
    }
