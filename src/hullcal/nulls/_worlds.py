"""Worlds in which one combination is calibrated, and labels vary around it as a model says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled
from hullcal._compiled.streams import SIGNS, uniform
from hullcal.nulls._pool import FLOOR

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]

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
    never happens. Both are reached by turns.

    The regression is the mean of like probabilities, then a line for every class. Predicted classes are
    kept apart from the others, since confidence calibration is about them alone. Probabilities that
    both p and q call negligible are left as they are.
    """

    #: Where the entries of each row begin, one more at the end; class, p and group of each entry.
    begins: NDArray[np.int64]
    classes: Integers
    p: Floats
    groups: Integers
    #: Entries of each group; number, sum and sum of squares of p for each class.
    counts: Floats
    moments: Floats
    departure: Floats

    @classmethod
    def of(cls, calibrated: Floats, model: Floats) -> World:
        """The world of combined predictions p and a model q, both (n_classes, n_samples)."""
        n_classes, n_samples = calibrated.shape
        rows, classes = np.nonzero(((calibrated >= FLOOR) | (model >= FLOOR)).T)
        p = calibrated[classes, rows]
        predicted = classes == calibrated.argmax(axis=0)[rows]
        groups = np.empty(len(p), dtype=np.int32)
        groups[~predicted] = _groups(p[~predicted])
        groups[predicted] = _MOST_GROUPS + _groups(p[predicted])
        counts = np.bincount(groups, minlength=2 * _MOST_GROUPS).astype(np.float64)
        moments = np.array(
            [np.bincount(classes, p**power, minlength=n_classes) for power in range(3)]
        )
        world = cls(
            begins=np.searchsorted(rows, np.arange(n_samples + 1)),
            classes=classes.astype(np.int32),
            p=p,
            groups=groups,
            counts=np.maximum(counts, 1.0),
            moments=moments,
            departure=model[classes, rows] - p,
        )
        _settle(*world._arguments)
        return world

    @property
    def _arguments(self) -> tuple[NDArray[np.generic], ...]:
        entries = self.begins, self.classes, self.p, self.groups
        return *entries, self.counts, self.moments, self.departure

    def turn(self, labels: Integers, key: NDArray[np.uint64], first: int) -> None:
        """Make labels (n_replicates, n_samples) drawn from p labels of this world, in place.

        A label that the law makes less likely than p leaves with the difference's probability, for one
        that it makes more likely.
        """
        _turn(labels, key, first, *self._arguments)


def _groups(probabilities: Floats) -> NDArray[np.int64]:
    """The group of every probability, by quantiles."""
    number = min(max(probabilities.size // _GROUP, 1), _MOST_GROUPS)
    if number == 1:
        return np.zeros(probabilities.shape, dtype=np.int64)
    cuts = np.quantile(probabilities, np.arange(1, number) / number)
    return np.searchsorted(cuts, probabilities, side="right")


@compiled
def _fit(values, classes, p, groups, counts, moments, means, lines):  # type: ignore[no-untyped-def]
    """The regression of values on p: a mean for each group, then a line for each class."""
    means[:] = 0.0
    lines[:] = 0.0
    for e in range(values.shape[0]):
        means[groups[e]] += values[e]
    for g in range(means.shape[0]):
        means[g] /= counts[g]
    for e in range(values.shape[0]):
        left = values[e] - means[groups[e]]
        lines[classes[e], 0] += left
        lines[classes[e], 1] += left * p[e]
    for k in range(lines.shape[0]):
        zeroth, first, second = moments[0, k] + _RIDGE, moments[1, k], moments[2, k] + _RIDGE
        determinant = zeroth * second - first * first
        total, weighted = lines[k, 0], lines[k, 1]
        lines[k, 0] = (second * total - first * weighted) / determinant
        lines[k, 1] = (zeroth * weighted - first * total) / determinant


@compiled
def _balance(departure, p):  # type: ignore[no-untyped-def]
    """Cut a row to [-p, p] and scale its larger side down until it adds up to 0, in place."""
    up, down = 0.0, 0.0
    for e in range(p.shape[0]):
        departure[e] = min(max(departure[e], -p[e]), p[e])
        if departure[e] > 0.0:
            up += departure[e]
        else:
            down -= departure[e]
    smaller = min(up, down)
    for e in range(p.shape[0]):
        side = up if departure[e] > 0.0 else down
        departure[e] *= smaller / side if side > 0.0 else 0.0


@compiled
def _settle(begins, classes, p, groups, counts, moments, departure):  # type: ignore[no-untyped-def]
    """Take the regression on p out of the departure, in place."""
    means, lines = np.empty(counts.shape[0]), np.empty((moments.shape[1], 2))
    for _ in range(_ROUNDS):
        _fit(departure, classes, p, groups, counts, moments, means, lines)
        for e in range(p.shape[0]):
            k = classes[e]
            departure[e] -= means[groups[e]] + lines[k, 0] + lines[k, 1] * p[e]
        for n in range(begins.shape[0] - 1):
            row = slice(begins[n], begins[n + 1])
            _balance(departure[row], p[row])


@compiled
def _turn(labels, key, first, begins, classes, p, groups, counts, moments, departure):  # type: ignore[no-untyped-def]
    """See `World.turn`.

    In the sample at hand the departure has no regression on p left, while in another sample it would have
    one of its own, by chance; signs drawn for the rows stand for that.
    """
    means, lines = np.empty(counts.shape[0]), np.empty((moments.shape[1], 2))
    signed, law = np.empty(p.shape[0]), np.empty(p.shape[0])
    for r in range(labels.shape[0]):
        d = first + r
        for n in range(labels.shape[1]):
            sign = -1.0 if uniform(key, SIGNS, d, n, 0) < 0.5 else 1.0
            for e in range(begins[n], begins[n + 1]):
                signed[e] = sign * departure[e]
        _fit(signed, classes, p, groups, counts, moments, means, lines)
        for n in range(labels.shape[1]):
            row = slice(begins[n], begins[n + 1])
            own, room = law[row], p[row]
            here = -1
            for i in range(own.shape[0]):
                e = begins[n] + i
                k = classes[e]
                by_chance = means[groups[e]] + lines[k, 0] + lines[k, 1] * p[e]
                own[i] = departure[e] + by_chance
                if k == labels[r, n]:
                    here = i
            if here < 0:
                continue
            _balance(own, room)
            if uniform(key, SIGNS, d, n, 1) * room[here] >= -own[here]:
                continue
            gained = 0.0
            for i in range(own.shape[0]):
                gained += max(own[i], 0.0)
            level = uniform(key, SIGNS, d, n, 2) * gained
            for i in range(own.shape[0]):
                if own[i] > 0.0:
                    labels[r, n] = classes[begins[n] + i]
                    level -= own[i]
                    if level < 0.0:
                        break
