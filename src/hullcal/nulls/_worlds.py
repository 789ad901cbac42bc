"""Worlds in which one combination is calibrated, and labels vary around it as a model says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.mixing import cumulate, draw_labels
from hullcal._compiled.streams import SIGNS, uniforms

Floats = NDArray[np.float64]

#: Prior precision, in rows, of what a single class adds to the curve of all classes.
_RIDGE = 1.0


@dataclass(frozen=True, eq=False)
class World:
    r"""A law of the labels given x under which p is calibrated: p plus a departure.

    The departure is what a model q of the labels says beyond p, :math:`q - p`, less its regression on
    p itself: on average over all x of the same p(x) nothing is left, which is calibration.
    """

    calibrated: Floats
    regression: _Regression
    departure: Floats

    @classmethod
    def of(cls, calibrated: Floats, model: Floats) -> World:
        """The world of combined predictions p and a model q, both (n_classes, n_samples)."""
        regression = _Regression.on(calibrated)
        difference = model - calibrated
        return cls(calibrated, regression, difference - regression.fit(difference))

    def labels(self, key: NDArray[np.uint64], first: int, last: int) -> NDArray[np.int32]:
        """Labels of the replicates first, ..., last - 1."""
        n_samples = self.calibrated.shape[1]
        labels = np.empty((last - first, n_samples), dtype=np.int32)
        cumulative = np.empty(self.calibrated.shape)
        for d in range(first, last):
            cumulate(self._law(key, d), cumulative)
            draw_labels(cumulative, key, d, labels[d - first : d - first + 1])
        return labels

    def _law(self, key: NDArray[np.uint64], replicate: int) -> Floats:
        """The law of one replicate's labels.

        In the sample at hand the departure has no regression on p left at all, while in another
        sample it would have one of its own, by chance; signs drawn for the rows stand for that.
        """
        signs = np.empty(self.calibrated.shape[1])
        uniforms(key, SIGNS, replicate, signs)
        by_chance = self.regression.fit(np.where(signs < 0.5, -1.0, 1.0) * self.departure)
        # A probability has as much room above as it has below: one of 0 stays 0, as calibration
        # wants, and what is cut off on both sides leaves the mean where it was.
        room = self.calibrated
        law: Floats = room + np.clip(self.departure + by_chance, -room, room)
        law /= law.sum(axis=0)
        return law


@dataclass(frozen=True, eq=False)
class _Regression:
    """Regression on p.

    A curve in the probability of the class, another one for the predicted class, and on what these
    leave over a line for every class.
    """

    curves: Floats
    inverse: Floats
    probabilities: Floats
    moments: Floats

    @classmethod
    def on(cls, p: Floats) -> _Regression:
        """Prepare for many fits."""
        predicted = np.zeros(p.shape)
        predicted[p.argmax(axis=0), np.arange(p.shape[1])] = 1.0
        curves = np.stack([np.ones(p.shape), p, p**2])
        curves = np.concatenate([curves, predicted * curves])
        gram = np.tensordot(curves, curves, axes=((1, 2), (1, 2)))
        # Two classes leave the curves dependent; the fit is unique all the same.
        moments = np.array([np.full(len(p), p.shape[1]), p.sum(axis=1), (p**2).sum(axis=1)])
        return cls(curves, np.linalg.pinv(gram, hermitian=True), p, moments)

    def fit(self, values: Floats) -> Floats:
        """Fitted values."""
        coefficients = self.inverse @ np.tensordot(self.curves, values, axes=2)
        fitted = np.tensordot(coefficients, self.curves, axes=1)
        # For each class the line through what the curves have left over.
        left = values - fitted
        zeroth, first, second = self.moments
        a, c = zeroth + _RIDGE, second + _RIDGE
        sums, products = left.sum(axis=1), (left * self.probabilities).sum(axis=1)
        determinant = a * c - first**2
        intercept = (c * sums - first * products) / determinant
        slope = (a * products - first * sums) / determinant
        fitted += intercept[:, None] + slope[:, None] * self.probabilities
        return fitted
