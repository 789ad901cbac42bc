"""How large an effect is: calibration errors, temperatures, and what so many rows can detect."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hullcal.alternatives import RIDGES, TEMPERATURE, fit_alternative, temperature_of
from hullcal.measures import Measure
from hullcal.objectives.base import Floats
from hullcal.objectives.chunked import Cases
from hullcal.objectives.opening import LocalSet
from hullcal.sets import ClassifierSet
from hullcal.simulation.scenarios import draw_labels, tempered
from hullcal.words import direction, has_direction

__all__ = ["Detection", "Effect", "Quality"]


#: The power that a number of rows is asked for.
TARGET = 0.8
#: Resamples behind an interval, and rows below which it is the whole range.
_BOOTSTRAP, _FEWEST = 200, 20


class Detection(NamedTuple):
    """What the test of these rows could have detected: how often it rejects at a temperature.

    Attributes
    ----------
    temperature, error, power : float
        Labels follow the average with its logits divided by this; how far its confidence is then off;
        the share of them that is rejected.
    n_samples : int
    n_needed : int or None
        Rows that would detect it with a power of 0.8; None if the power is too small to tell.
    """

    temperature: float
    error: float
    power: float
    n_samples: int
    n_needed: int | None

    def __str__(self) -> str:
        rows = "row detects" if self.n_samples == 1 else "rows detect"
        return (
            f"{self.n_samples:,} {rows} a temperature of {self.temperature:g} (an error of "
            f"{100 * self.error:.1f} points) with power {self.power:.2f}"
        )


def rows_needed(power: float, n_samples: int, alpha: float) -> int | None:
    """Rows that would have a power of 0.8, as if the statistic were near normal; None if unclear."""
    from scipy.special import ndtri

    if power >= TARGET:
        return n_samples
    if power <= 2.0 * alpha:
        return None
    level = -ndtri(alpha)
    share = float((ndtri(TARGET) + level) / (ndtri(power) + level))
    return math.ceil(n_samples * share**2)


class Quality(NamedTuple):
    """One classifier on these rows: calibration error, accuracy, and what a temperature would do.

    `interval` holds the error on new rows with a probability of about 95 % or more; None for weights
    that were fitted to these rows.
    """

    error: float
    interval: tuple[float, float] | None
    accuracy: float
    temperature: float
    #: The error after its logits were divided by the temperature.
    recalibrated: float

    @classmethod
    def of(
        cls, one: ClassifierSet, labels: NDArray[np.int32], measure: Measure, *, fitted: bool
    ) -> Quality:
        """That of a set of one classifier, by an expected calibration error."""
        probs, temperature = one.mean(), fitted_temperature(one, labels)
        error = measure.evaluate(np.ascontiguousarray(probs.T), labels, measure.parameters(probs))
        return cls(
            error=error,
            interval=None if fitted else _interval(error, probs, labels, measure),
            accuracy=float((probs.argmax(axis=1) == labels).mean()),
            temperature=temperature,
            recalibrated=measure(tempered(probs, temperature), labels),
        )

    @property
    def points(self) -> str:
        """The error in points, hundredths of probability, with its interval."""
        if self.interval is None:
            return f"{100 * self.error:.1f} points on these rows"
        low, high = self.interval
        return f"{100 * self.error:.1f} points (95 % interval {100 * low:.1f} to {100 * high:.1f})"

    @property
    def direction(self) -> str:
        """Over- or underconfident, partly if most of the error is another; empty if neither."""
        # A direction that does not lessen the error is none.
        if self.recalibrated >= self.error or not has_direction(self.temperature):
            return ""
        return "partly " * (not self.repaired) + direction(self.temperature)

    @property
    def repaired(self) -> bool:
        """Whether the temperature takes away half of the error or more."""
        return self.recalibrated <= self.error / 2

    def __str__(self) -> str:
        words = [f"off by {self.points}", self.direction, f"accuracy {self.accuracy:.1%}"]
        return ", ".join(filter(None, words))


class Effect(NamedTuple):
    """How far the average and the best combination are from calibrated, by an expected error."""

    measure: str
    average: Quality
    combination: Quality | None
    weights: Floats

    def to_dict(self) -> dict[str, Any]:
        """The effect as plain values."""
        best = self.combination
        return {
            "measure": self.measure,
            "average": self.average._asdict(),
            "combination": None if best is None else best._asdict(),
            "weights": self.weights.tolist(),
        }


def fitted_temperature(one: ClassifierSet, labels: NDArray[np.int32]) -> float:
    """What the logits of a classifier should be divided by."""
    passes = LocalSet(one, labels).passes(1)
    ridge = RIDGES[TEMPERATURE]
    fitted = fit_alternative(passes, Cases.data(), np.ones((1, 1)), TEMPERATURE, ridge)
    return temperature_of(fitted[0, 0])


def _interval(
    error: float, probs: Floats, labels: NDArray[np.int32], measure: Measure
) -> tuple[float, float]:
    """Two standard errors of the bootstrap, and below also the error that chance alone makes.

    An error in bins is too large by that much for a calibrated classifier, and by less for others, so
    the interval is rather too wide than too narrow.
    """
    n = len(labels)
    if n < _FEWEST:
        return 0.0, 1.0
    rng, mixed = np.random.default_rng(0), np.ascontiguousarray(probs.T)
    parameters, values = measure.parameters(probs), np.empty((2, _BOOTSTRAP))
    for i in range(_BOOTSTRAP):
        counts = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
        values[0, i] = measure.evaluate(mixed, labels, parameters, row_weights=counts)
        by_chance = draw_labels(probs, rng).astype(np.int32)
        values[1, i] = measure.evaluate(mixed, by_chance, parameters)
    deviation, chance = 1.96 * float(values[0].std()), float(np.quantile(values[1], 0.5))
    if error <= np.quantile(values[1], 0.95):
        return 0.0, error + deviation
    return max(0.0, error - chance - deviation), error + deviation
