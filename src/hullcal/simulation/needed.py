"""What was found about power: rates by number of rows, and the number that a target needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal.notes import Note
from hullcal.results import Result

__all__ = ["Power", "needed"]

Floats = NDArray[np.float64]
Interval = tuple[int | None, int | None]

_ARRAYS = {
    "n_samples": np.int64,
    **dict.fromkeys(("power", "lower", "upper", "weights"), np.float64),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Power(Result):
    """The chance to detect a miscalibration, by number of rows.

    Attributes
    ----------
    n_samples : ndarray of int
        The numbers of rows that were tried, ascending.
    power : ndarray
        Share of the simulated data sets in which the hypothesis was rejected.
    lower, upper : ndarray
        Wilson's 95 % interval of each.
    target : float
        The power that is wanted.
    n_needed : int or None
        Rows that give it; None if that is not between the numbers tried.
    n_needed_interval : tuple of two ints or None
        Where `n_needed` lies by the intervals of the rates. None for a lower end below the fewest
        rows tried and for an upper end above the most; an end beyond the other side is that number.
        It knows of the chance in the simulation, not of how well these rows stand for others.
    miscalibration : str
    amount : float
    distance : dict
        The measure `at_weights`, its `minimum` over all combinations, and this minimum `by_chance`,
        for labels without miscalibration, all on `n_samples` simulated rows.
    weights : ndarray of shape (n_members,)
        The combination from which labels are off.
    measure, null, minimizer : str
    alpha : float
    n_datasets, n_resamples : int
    n_rows : int
        Rows of the given predictions; data sets of more rows repeat some.
    settings : dict
        Settings of measure, minimizer and null.
    seed : int
        Gives the same result again as `rng`.
    notes : tuple of Note
        What was done to the input.
    """

    n_samples: NDArray[np.int64]
    power: Floats
    lower: Floats
    upper: Floats
    target: float
    n_needed: int | None
    n_needed_interval: Interval
    miscalibration: str
    amount: float
    distance: dict[str, float]
    weights: Floats
    measure: str
    null: str
    minimizer: str
    alpha: float
    n_datasets: int
    n_resamples: int
    n_rows: int
    settings: dict[str, Any]
    seed: int
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        # Lists, as JSON has them, become what they were.
        for name, kind in _ARRAYS.items():
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=kind))
        low, high = self.n_needed_interval
        object.__setattr__(self, "n_needed_interval", (low, high))
        super().__post_init__()

    @property
    def nothing_to_detect(self) -> bool:
        """Whether the amount is that of no miscalibration, so that the rates are the level."""
        return self.amount == (1.0 if self.miscalibration == "temperature" else 0.0)

    def sentence(self) -> str:
        """How many rows are needed, in words."""
        what = f"{self.miscalibration} {self.amount:g}"
        if self.nothing_to_detect:
            return (
                f"{what.capitalize()} is no miscalibration: the rates are the level of the test, and "
                "no number of rows is enough."
            )
        percent = f"{100.0 * self.target:g}"
        article = "an" if percent[0] == "8" or percent.split(".")[0] in ("11", "18") else "a"
        chance = f"{article} {percent} % chance to detect {what} by {self.measure}"
        if self.n_needed is not None:
            return f"About {self.n_needed} rows ({self._interval_in_words()}) give {chance}."
        if _rising(self.power)[0] >= self.target:
            few = int(self.n_samples[0])
            return f"The fewest rows tried, {few}, give {chance} or more; fewer may do."
        return f"More than {int(self.n_samples[-1])} rows, the most tried, are needed for {chance}."

    def _interval_in_words(self) -> str:
        low, high = self.n_needed_interval
        first, last = int(self.n_samples[0]), int(self.n_samples[-1])
        return (
            f"95 % interval {f'less than {first}' if low is None else low} to "
            f"{f'more than {last}' if high is None else high}"
        )

    def __str__(self) -> str:
        far = self.distance
        width = max(6, len(str(self.n_samples[-1])))
        columns = (self.n_samples, self.power, self.lower, self.upper)
        lines = [
            f"Null {self.null}, alpha {self.alpha:g}; {self.n_datasets} data sets for each N, "
            f"{self.n_resamples} resamples, seed {self.seed}",
            f"{'N':>{width}}  power  95 % interval",
            *(
                f"{n:{width}d}  {rate:5.3f}  {low:.3f} to {high:.3f}"
                for n, rate, low, high in zip(*columns, strict=True)
            ),
            self.sentence(),
            f"On {far['n_samples']} simulated rows {self.measure} is {far['at_weights']:.3g} at the "
            f"given weights, {far['minimum']:.3g} at the best ones, {far['by_chance']:.3g} by chance.",
        ]
        if len(self.weights) > 1:
            lines.append(
                "What mixing members repairs, a test for a calibrated combination cannot detect."
            )
        if self.n_samples[-1] > self.n_rows:
            lines.append(f"Beyond N = {self.n_rows}, rows are drawn with replacement.")
        return "\n".join(lines + [f"Note: {note}" for note in self.notes])


def needed(
    n_samples: Sequence[int],
    rates: Sequence[tuple[float, float, float]],
    n_datasets: int,
    target: float,
) -> tuple[int | None, Interval]:
    """Rows that give the target, and their interval.

    Rates are first made to rise with N (isotonic regression). Between two numbers of rows the normal
    quantile of the power is taken to be linear in the square root of N, as it is for a statistic that
    is near normal. Wilson's intervals are read in the same way: the upper ends say how few rows might
    do, the lower ones how many might be needed.

    Parameters
    ----------
    n_samples : sequence of int
        Ascending.
    rates : sequence of (power, lower, upper)
    n_datasets : int
    target : float

    Returns
    -------
    (int or None, (int or None, int or None))
        None where the answer is not between the numbers tried.

    Examples
    --------
    >>> needed([100, 400], [(0.5, 0.4, 0.6), (0.9, 0.85, 0.95)], 100, 0.8)
    (275, (202, 342))
    >>> needed([100, 400], [(0.1, 0.05, 0.15), (0.5, 0.4, 0.6)], 100, 0.8)
    (None, (400, None))
    """
    middle, lower, upper = (
        _crossing(n_samples, curve, n_datasets, target) for curve in zip(*rates, strict=True)
    )
    first, last = n_samples[0], n_samples[-1]

    def at_most_last(value: float) -> int | None:
        return None if value == 0.0 else last if math.isinf(value) else math.floor(value)

    def at_least_first(value: float) -> int | None:
        return None if math.isinf(value) else first if value == 0.0 else math.ceil(value)

    inside = None if middle == 0.0 or math.isinf(middle) else math.ceil(middle)
    return inside, (at_most_last(upper), at_least_first(lower))


def _crossing(
    n_samples: Sequence[int], curve: Sequence[float], n_datasets: int, target: float
) -> float:
    """Where a curve reaches the target; 0 if before the first number, infinite if after the last."""
    from scipy.special import ndtri

    rising = _rising(curve)
    if rising[0] >= target:
        return 0.0
    if rising[-1] < target:
        return math.inf
    after = int(np.argmax(rising >= target))
    # A rate of 0 or 1 has no quantile; half a data set more or less gives it one.
    half = 0.5 / (n_datasets + 1)
    ends = ndtri(np.clip(rising[after - 1 : after + 1], half, 1.0 - half))
    roots = np.sqrt(np.array(n_samples[after - 1 : after + 1], dtype=np.float64))
    if ends[1] <= ends[0]:
        return float(n_samples[after])
    share = np.clip((ndtri(target) - ends[0]) / (ends[1] - ends[0]), 0.0, 1.0)
    # Rounding must not lead beyond what was tried.
    return min(float((roots[0] + share * (roots[1] - roots[0])) ** 2), float(n_samples[after]))


def _rising(curve: ArrayLike) -> Floats:
    """The nearest curve that never falls."""
    from scipy.optimize import isotonic_regression

    rising: Floats = isotonic_regression(np.asarray(curve, dtype=np.float64)).x
    return rising
