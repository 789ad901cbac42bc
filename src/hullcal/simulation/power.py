"""How many rows does the test need to detect a miscalibration of these members? A study of it."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal import simplex
from hullcal._validation import (
    check_fraction,
    check_integer,
    check_jobs,
    check_positive,
    check_seed,
    check_weights,
    refusal,
    takes_rng,
    unknown,
)
from hullcal.algorithm import check_level
from hullcal.notes import Note
from hullcal.results import Result
from hullcal.sets import ClassifierSet
from hullcal.simulation.grid import Source, Test, several
from hullcal.simulation.scenarios import draw_labels, tempered
from hullcal.simulation.study import run_tests, wilson
from hullcal.words import in_html

Floats = NDArray[np.float64]

#: The kinds of miscalibration, each with the amount taken when none is given.
AMOUNTS = {"temperature": 1.5, "corner": 0.2, "closest": 0.2}


@takes_rng
def power(
    probs: ArrayLike | ClassifierSet,
    *,
    miscalibration: str = "temperature",
    amount: float | None = None,
    n_samples: int | Iterable[int] | None = None,
    test: str | Test = "calibrated",
    weights: str | ArrayLike = "mean",
    n_datasets: int = 100,
    n_resamples: int = 99,
    alpha: float = 0.05,
    target: float = 0.8,
    from_logits: bool = False,
    from_log: bool = False,
    normalize: bool = False,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    progress: bool | Callable[[int, int], None] = False,
) -> Power:
    """Chance that the test detects a miscalibration of these members, by number of rows.

    Rows are drawn from the given predictions, and labels from a truth that is off the combination
    p_w by a stated amount; no labels are needed. A test asks about *any* combination: an error
    that other weights repair is never detected.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes)
        Predictions of the members, with `from_logits`, `from_log` and `normalize` as for
        `calibration_test`. Rows repeat in a data set only where there are too few.
    miscalibration : {"temperature", "corner", "closest"}
        What the truth is: proportional to p_w ** (1 / amount); or (1 - amount) p_w + amount times the
        corner of a random class of each row (as in S3), or of its most probable class (as in S2).
    amount : float, optional
        A temperature above 1 makes the members overconfident, one below 1 underconfident. Shares of
        the way to a corner lie in [0, 1]. Left out: temperature 1.5, or a share of 0.2.
    n_samples : int or sequence of int, optional
        Left out: 1/8, 1/4, 1/2, 1 and 2 times the rows given, of which at most 2000 are counted.
    test : str or Test
        As in "truth" or "calibrated:ece_conf:5:stacked"; see `Test`.
    weights : "mean" or array-like of shape (n_members,)
        w, the combination that would be calibrated.
    n_datasets : int
        R, data sets for each number of rows.
    n_resamples, alpha
        As for `calibration_test`.
    target : float
        The power that is wanted, above `alpha`.
    rng : int, numpy.random.Generator or None
        Seed; the one used is kept in the result. Data set r of N rows depends on (seed, N, r) alone.
    n_jobs, progress
        As for `run`.

    Examples
    --------
    >>> import numpy as np
    >>> members = np.random.default_rng(0).dirichlet([1, 1, 1], size=(60, 2))
    >>> found = power(members, amount=3.0, n_samples=[30, 60], n_datasets=5, n_resamples=19, rng=0)
    >>> found.n_samples, found.power.shape
    (array([30, 60]), (2,))
    """
    classifiers = ClassifierSet.of(
        probs, from_logits=from_logits, from_log=from_log, normalize=normalize
    )
    n_rows, n_members, n_classes = classifiers.probs.shape
    amount = _check_amount(miscalibration, amount)
    asked = Test.named(test)
    if n_samples is None:
        counted = min(n_rows, 2000)
        n_samples = [max(20, round(share * counted)) for share in (0.125, 0.25, 0.5, 1, 2)]
    given = several(n_samples, "n_samples")
    sizes = sorted({check_integer(value, "n_samples", 1) for value in given})
    mean = isinstance(weights, str) and weights == "mean"
    w = simplex.uniform(n_members) if mean else check_weights(weights, n_members)
    mixed = classifiers.mix(w)
    sources = [
        Source(
            name=f"{size} rows",
            key=str(size),
            stream=(size,),
            sizes=(size, n_members, n_classes),
            draw=partial(draw, classifiers.probs, mixed, miscalibration, amount, size),
        )
        # The largest first, so that no worker is left with one in the end.
        for size in reversed(sizes)
    ]
    asked.check(sources[-1])
    n_datasets = check_integer(n_datasets, "n_datasets", 1)
    n_resamples = check_integer(n_resamples, "n_resamples", 1)
    alpha = check_level(alpha, n_resamples)
    target = check_fraction(target, "target")
    if target <= alpha:
        rule = f"must be above `alpha`, {alpha:g}, which a test reaches without any miscalibration"
        raise refusal("target", rule, f"{target:g}", "Pass for example `target=0.8`.")
    seed = check_seed(rng)
    values = run_tests(
        sources,
        [asked],
        n_datasets=n_datasets,
        n_resamples=n_resamples,
        seed=seed,
        n_jobs=check_jobs(n_jobs),
        progress=progress,
    )
    rejections = np.count_nonzero(values[0, ::-1, 0] <= alpha, axis=1).tolist()
    rates = [(count / n_datasets, *wilson(count, n_datasets)) for count in rejections]
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
        weights=w,
        test=str(asked),
        alpha=alpha,
        n_datasets=n_datasets,
        n_resamples=n_resamples,
        n_rows=n_rows,
        seed=seed,
        notes=classifiers.notes,
    )


def _check_amount(miscalibration: Any, amount: Any) -> float:
    """A size of miscalibration, checked; the usual one for None."""
    if not isinstance(miscalibration, str) or miscalibration not in AMOUNTS:
        raise unknown("miscalibration", miscalibration, AMOUNTS)
    if amount is None:
        return AMOUNTS[miscalibration]
    if miscalibration == "temperature":
        return check_positive(amount, "amount")
    real = isinstance(amount, numbers.Real) and not isinstance(amount, bool)
    if not (real and 0 <= amount <= 1):
        rule = f"must lie in [0, 1] for {miscalibration}, being the share of the way to the corner"
        raise refusal("amount", rule, f"{amount!r:.80}", "Pass for example `amount=0.2`.")
    return float(amount)


def draw(
    probs: NDArray[Any],
    mixed: Floats,
    miscalibration: str,
    amount: float,
    n_samples: int,
    rng: np.random.Generator,
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Rows of the predictions, and labels off p_w, here `mixed`; rows repeat where there are too few."""
    rows = rng.choice(len(mixed), size=n_samples, replace=n_samples > len(mixed))
    return probs[rows], draw_labels(truth(mixed[rows], miscalibration, amount, rng), rng)


def truth(mixed: Floats, miscalibration: str, amount: float, rng: np.random.Generator) -> Floats:
    """What labels follow in place of these rows of p_w."""
    followed: Floats
    if miscalibration == "temperature":
        return tempered(mixed, amount)
    n_rows, n_classes = mixed.shape
    closest = miscalibration == "closest"
    classes = mixed.argmax(axis=1) if closest else rng.integers(n_classes, size=n_rows)
    followed = (1.0 - amount) * mixed + amount * np.eye(n_classes)[classes]
    return followed


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Power(Result):
    """The chance to detect a miscalibration, by number of rows.

    Attributes
    ----------
    n_samples, power, lower, upper : ndarray
        Numbers of rows tried; the share of data sets that were rejected; Wilson's 95 % intervals.
    n_needed : int or None
        Rows that give the power `target`; None if that is not between the numbers tried.
    n_needed_interval : tuple of two ints or None
        Where `n_needed` lies by the intervals of the rates, None for an end beyond the numbers tried.
        It knows of the chance in the simulation, not of how well these rows stand for others.
    weights : ndarray of shape (n_members,)
        The combination from which labels are off.
    n_rows : int
        Rows of the given predictions; data sets of more rows repeat some.
    """

    n_samples: NDArray[np.int64]
    power: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    target: float
    n_needed: int | None
    n_needed_interval: tuple[int | None, int | None]
    miscalibration: str
    amount: float
    weights: NDArray[np.float64]
    test: str
    alpha: float
    n_datasets: int
    n_resamples: int
    n_rows: int
    seed: int
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        # Lists, as JSON has them, become what they were; another number of ends is an error.
        object.__setattr__(self, "n_samples", np.asarray(self.n_samples, dtype=np.int64))
        low, high = self.n_needed_interval
        object.__setattr__(self, "n_needed_interval", (low, high))
        super().__post_init__()

    def sentence(self) -> str:
        """How many rows are needed, in words."""
        what = f"{self.miscalibration} {self.amount:g}"
        if self.amount == (1.0 if self.miscalibration == "temperature" else 0.0):
            return f"{what.capitalize()} is no miscalibration: the rates are the level of the test."
        first, last = int(self.n_samples[0]), int(self.n_samples[-1])
        detect = f"detect {what} with power {self.target:g} ({self.test})"
        if self.n_needed is not None:
            low, high = self.n_needed_interval
            between = f"{low or f'less than {first}'} to {high or f'more than {last}'}"
            return f"About {self.n_needed} rows (95 % interval {between}) {detect}."
        if _rising(self.power)[0] >= self.target:
            return f"The fewest rows tried, {first}, {detect}; fewer may be enough."
        return f"More than {last} rows, the most tried, are needed to {detect}."

    def __repr__(self) -> str:
        return f"<Power: {self.sentence()}>"

    def _repr_html_(self) -> str:
        columns = zip(self.n_samples, self.power, self.lower, self.upper, strict=True)
        facts = {
            f"{n} rows": f"{rate:.3f} (95 % interval {low:.3f} to {high:.3f})"
            for n, rate, low, high in columns
        }
        return in_html(self.sentence(), facts)

    def __str__(self) -> str:
        width = max(6, len(str(self.n_samples[-1])))
        columns = (self.n_samples, self.power, self.lower, self.upper)
        lines = [
            f"Test {self.test}, alpha {self.alpha:g}; {self.n_datasets} data sets for each N, "
            f"{self.n_resamples} resamples, seed {self.seed}",
            f"{'N':>{width}}  power  95 % interval",
            *(
                f"{n:{width}d}  {rate:5.3f}  {low:.3f} to {high:.3f}"
                for n, rate, low, high in zip(*columns, strict=True)
            ),
            self.sentence(),
        ]
        if len(self.weights) > 1:
            lines.append("An error that other weights repair is never detected by this question.")
        if self.n_samples[-1] > self.n_rows:
            lines.append(f"Beyond N = {self.n_rows}, rows are drawn with replacement.")
        return "\n".join(lines + [f"Note: {note}" for note in self.notes])


def needed(
    n_samples: Sequence[int],
    rates: Sequence[tuple[float, float, float]],
    n_datasets: int,
    target: float,
) -> tuple[int | None, tuple[int | None, int | None]]:
    """Rows that give the target, and their interval; None beyond the numbers tried, which ascend."""
    # The upper ends of the rates say how few rows might do, the lower ones how many might be needed.
    middle, lower, upper = (
        _crossing(n_samples, curve, n_datasets, target) for curve in zip(*rates, strict=True)
    )
    first, last = n_samples[0], n_samples[-1]
    low = None if upper == 0.0 else math.floor(min(upper, last))
    high = None if math.isinf(lower) else math.ceil(max(lower, first))
    return None if middle == 0.0 or math.isinf(middle) else math.ceil(middle), (low, high)


def _crossing(
    n_samples: Sequence[int], curve: Sequence[float], n_datasets: int, target: float
) -> float:
    """Where a curve reaches the target; 0 if before the first number, infinite if after the last."""
    from scipy.special import ndtri

    # Between two numbers of rows the normal quantile of the power is taken to be linear in the square
    # root of N, as it is for a statistic that is near normal.
    rising = _rising(curve)
    if rising[0] >= target:
        return 0.0
    if rising[-1] < target:
        return math.inf
    after = int(np.argmax(rising >= target))
    # A rate of 0 or 1 has no quantile; half a data set more or less gives it one.
    half = 0.5 / (n_datasets + 1)
    around = slice(after - 1, after + 1)
    ends = ndtri(np.clip(rising[around], half, 1.0 - half))
    root = np.interp(ndtri(target), ends, np.sqrt(n_samples[around]))
    # Rounding must not lead beyond what was tried.
    return min(float(root) ** 2, float(n_samples[after]))


def _rising(curve: ArrayLike) -> Floats:
    """The nearest curve that never falls."""
    from scipy.optimize import isotonic_regression

    rising: Floats = isotonic_regression(np.asarray(curve, dtype=np.float64)).x
    return rising
