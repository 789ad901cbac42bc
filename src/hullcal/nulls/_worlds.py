"""Worlds in which one combination is calibrated, and labels vary around it as a model says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.mixing import cumulate, draw_labels
from hullcal._compiled.streams import SIGNS, uniforms

Floats = NDArray[np.float64]

#: Probabilities that make a group of their own, and how many groups are enough.
_GROUP, _MOST_GROUPS = 20, 20
#: Prior precision, in rows, of what a single class adds to the groups of all classes.
_RIDGE = 1.0
#: Rounds of taking out the regression and of coming back to distributions; each undoes some of the other.
_ROUNDS = 12


@dataclass(frozen=True, eq=False)
class World:
    r"""A law of the labels given x under which p is calibrated: p plus a departure.

    The departure is what a model q of the labels says beyond p, :math:`q - p`, less its regression on
    p itself: on average over all x of the same p(x) nothing is left, which is calibration. It also
    stays within :math:`[-p, p]` and adds up to 0, so that the law is a distribution and what p excludes
    never happens. Both are had by turns.
    """

    calibrated: Floats
    regression: _Regression
    departure: Floats

    @classmethod
    def of(cls, calibrated: Floats, model: Floats) -> World:
        """The world of combined predictions p and a model q, both (n_classes, n_samples)."""
        regression = _Regression.on(calibrated)
        departure = model - calibrated
        for _ in range(_ROUNDS):
            departure = _balanced(departure - regression.fit(departure), calibrated)
        return cls(calibrated, regression, departure)

    def labels(self, key: NDArray[np.uint64], first: int, last: int) -> NDArray[np.int32]:
        """Labels of the replicates first, ..., last - 1."""
        n_samples = self.calibrated.shape[1]
        labels = np.empty((last - first, n_samples), dtype=np.int32)
        cumulative = np.empty(self.calibrated.shape)
        for d in range(first, last):
            cumulate(self.law(key, d), cumulative)
            draw_labels(cumulative, key, d, labels[d - first : d - first + 1])
        return labels

    def law(self, key: NDArray[np.uint64], replicate: int) -> Floats:
        """The law of one replicate's labels.

        In the sample at hand the departure has no regression on p left, while in another sample it
        would have one of its own, by chance; signs drawn for the rows stand for that.
        """
        signs = np.empty(self.calibrated.shape[1])
        uniforms(key, SIGNS, replicate, signs)
        by_chance = self.regression.fit(np.where(signs < 0.5, -1.0, 1.0) * self.departure)
        law: Floats = self.calibrated + _balanced(self.departure + by_chance, self.calibrated)
        return law


def _balanced(departure: Floats, room: Floats) -> Floats:
    """The departure cut to [-room, room], its larger side scaled down until every row adds up to 0."""
    cut: Floats = np.clip(departure, -room, room)
    up = np.maximum(cut, 0.0).sum(axis=0)
    down = up - cut.sum(axis=0)
    smaller = np.minimum(up, down)
    with np.errstate(divide="ignore", invalid="ignore"):
        up, down = (np.where(side > 0.0, smaller / side, 0.0) for side in (up, down))
    return np.where(cut > 0.0, up, down) * cut


@dataclass(frozen=True, eq=False)
class _Regression:
    """Regression on p: the mean of entries with like probabilities, then a line for every class.

    Predicted classes are kept apart from the others, since confidence calibration is about them
    alone. Groups are of equal size, so that there are many where many probabilities are.
    """

    p: Floats
    groups: NDArray[np.int32]
    counts: Floats
    moments: Floats

    @classmethod
    def on(cls, p: Floats) -> _Regression:
        """Prepare for many fits."""
        predicted = np.zeros(p.shape, dtype=bool)
        predicted[p.argmax(axis=0), np.arange(p.shape[1])] = True
        groups = np.empty(p.shape, dtype=np.int32)
        groups[~predicted] = _groups(p[~predicted])
        groups[predicted] = _MOST_GROUPS + _groups(p[predicted])
        counts = np.bincount(groups.ravel(), minlength=2 * _MOST_GROUPS).astype(np.float64)
        moments = np.array([np.full(len(p), p.shape[1]), p.sum(axis=1), (p**2).sum(axis=1)])
        return cls(p, groups, np.maximum(counts, 1.0), moments)

    def fit(self, values: Floats) -> Floats:
        """Fitted values."""
        sums = np.bincount(self.groups.ravel(), values.ravel(), minlength=len(self.counts))
        fitted: Floats = (sums / self.counts)[self.groups]
        # For each class the line through what the means have left over.
        left = values - fitted
        zeroth, first, second = self.moments
        zeroth, second = zeroth + _RIDGE, second + _RIDGE
        sums, weighted = left.sum(axis=1), (left * self.p).sum(axis=1)
        determinant = zeroth * second - first**2
        intercept = (second * sums - first * weighted) / determinant
        slope = (zeroth * weighted - first * sums) / determinant
        fitted += intercept[:, None] + slope[:, None] * self.p
        return fitted


def _groups(probabilities: Floats) -> NDArray[np.int64]:
    """The group of every probability, by quantiles."""
    number = min(max(probabilities.size // _GROUP, 1), _MOST_GROUPS)
    cuts = np.quantile(probabilities, np.arange(1, number) / number)
    return np.searchsorted(cuts, probabilities, side="right")
