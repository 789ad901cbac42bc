"""Labels redrawn from worlds in which some combination is calibrated, and the search run again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled
from hullcal._compiled.streams import SIGNS, uniform
from hullcal.measures import Measure
from hullcal.minimizers import Minima
from hullcal.nulls._base import CALIBRATED, Null
from hullcal.objectives.base import Draw, Floats, Objective
from hullcal.objectives.memory import InMemory
from hullcal.resampling import Loop

Integers = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class Stacked(Null):
    r"""A parametric bootstrap for "the hull contains a calibrated classifier".

    1. A log-linear pool of all members is fitted to the labels: a model of them, which need not follow
       any combination given x.
    2. For a combination that may be the calibrated one the model is bent so that it is: labels follow
       p_λ plus what the model says beyond p_λ, less its regression on p_λ.
    3. Rows stay fixed, labels are drawn, and every replicate is searched as the data were.
    4. Which combination is calibrated is not known. Four are tried: the one with the smallest g, the
       likeliest, the mean, and the member with the smallest g. The largest p-value counts.

    Level: asymptotic, if the pool can follow the labels and the calibrated combination is near one of
    those tried. Any measure works, as no residual vector is needed.
    """

    name: ClassVar[str] = "stacked"
    hypothesis: ClassVar[str] = CALIBRATED

    def needs_predictions(self, measure: Measure) -> bool:
        return True  # the pool of members is fitted to them

    def worlds(self, objective: Objective, best: Minima, loop: Loop) -> list[Any]:
        """Weights that may be those of the calibrated combination, each with the model."""
        if objective.n_members == 1:
            return [(best.weights[0], None)]
        assert isinstance(objective, InMemory)
        likeliest = objective.maximum_likelihood()
        model = pooled(objective.members, objective.labels[0], objective.mixed(likeliest))
        vertices = np.eye(objective.n_members)
        values = objective.values(vertices, np.zeros(len(vertices), dtype=np.int64))
        mean = np.full(len(vertices), 1.0 / len(vertices))
        tried = (best.weights[0], likeliest, mean, vertices[np.argmin(values)])
        each_once = dict(zip(map(tuple, tried), tried, strict=True))
        return list(zip(each_once.values(), repeat(model)))

    def replicates(
        self, objective: Objective, world: tuple[Floats, Floats | None], loop: Loop
    ) -> Draw:
        weights, model = world
        of_combination = objective.drawing_labels(weights, loop.key)
        if model is None:
            return of_combination
        assert isinstance(objective, InMemory)
        bent = World.of(objective.mixed(weights), model)

        def draw(first: int, last: int) -> InMemory:
            replicate = of_combination(first, last)
            assert isinstance(replicate, InMemory)
            turn(replicate.labels, loop.key, first, *bent)
            return replicate  # nothing has looked at its labels before

        return draw


# -- the pool: a model of the labels given all members -------------------------------------------

#: Probabilities below this count as this: its logarithm is as low as a member's can be.
FLOOR = 1e-4
#: Prior precision of a coefficient of a feature of unit size: a few rows' worth.
_PRIOR = 10.0
_ITERATIONS, _LONGEST_STEP, _CONVERGED = 30, 2.0, 1e-6
#: Logarithms that are held at a time.
_HELD = 2**20


def pooled(members: Floats, labels: NDArray[np.int32], average: Floats) -> Floats:
    r"""Probabilities of the labels given x, of shape (n_classes, n_samples).

    .. math:: q_k(x) \propto \bar p_k(x)^{1 + \beta_0} \prod_m (p^{(m)}_k(x) / \bar p_k(x))^{\beta_m}

    around an average :math:`\bar p` (that of greatest likelihood), with :math:`\beta` by penalised
    maximum likelihood: Newton's method from 0, where the model is the average. It can follow what no
    combination says, such as that all members are overconfident.
    """
    squares = np.zeros(len(members) + 1)
    for _, _, features in _logarithms(members, average):
        squares += (features**2).sum(axis=(1, 2))
    # In units of their size, so that the ridge means the same for all.
    sizes = np.sqrt(squares / average.size) + 1e-12
    coefficients = np.zeros(len(sizes))
    for _ in range(_ITERATIONS):
        gradient, curvature = -_PRIOR * coefficients, _PRIOR * np.eye(len(sizes))
        for rows, base, features in _logarithms(members, average):
            features /= sizes[:, None, None]
            model = _softmax(base + np.tensordot(coefficients, features, axes=1))
            weighted = features * model
            means = weighted.sum(axis=1)
            curvature += np.tensordot(weighted, features, axes=((1, 2), (1, 2))) - means @ means.T
            model[labels[rows], np.arange(model.shape[1])] -= 1.0
            gradient -= np.tensordot(features, model, axes=2)
        step = np.linalg.solve(curvature, gradient)
        longest = np.abs(step).max()
        coefficients += step * min(1.0, _LONGEST_STEP / max(longest, 1e-300))
        if longest < _CONVERGED:
            break
    out = np.empty(average.shape)
    for rows, base, features in _logarithms(members, average):
        out[:, rows] = _softmax(base + np.tensordot(coefficients / sizes, features, axes=1))
    return out


def _logarithms(members: Floats, average: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
    """Rows, the average's logarithms there, and the features: (n_members + 1, n_classes, n_rows)."""
    n_members, n_classes, n_samples = members.shape
    size = max(1, _HELD // (n_members * n_classes))
    for first in range(0, n_samples, size):
        rows = slice(first, min(first + size, n_samples))
        base = np.log(np.maximum(average[:, rows], FLOOR))
        logarithms = np.log(np.maximum(members[:, :, rows], FLOOR))
        features = np.concatenate([logarithms - base, base[np.newaxis]])
        # What is the same for all classes cancels in the softmax, and must not count as size.
        features -= features.mean(axis=1, keepdims=True)
        yield rows, base, features


def _softmax(scores: Floats) -> Floats:
    weights = np.exp(scores - scores.max(axis=0))
    shares: Floats = weights / weights.sum(axis=0)
    return shares


# -- worlds in which one combination is calibrated -----------------------------------------------

#: Probabilities that make a group of their own, and how many groups are enough.
_GROUP, _MOST_GROUPS = 20, 20
#: Prior precision, in rows, of what a single class adds to the groups of all classes.
_RIDGE = 1.0
#: Rounds of taking out the regression and of coming back to distributions; each undoes some of the other.
_ROUNDS = 12


class World(NamedTuple):
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
        moments = np.empty((3, n_classes))
        for power in range(3):
            moments[power] = np.bincount(classes, p**power, minlength=n_classes)
        world = cls(
            begins=np.searchsorted(rows, np.arange(n_samples + 1)),
            classes=classes.astype(np.int32),
            p=p,
            groups=groups,
            counts=np.maximum(counts, 1.0),
            moments=moments,
            departure=model[classes, rows] - p,
        )
        _settle(*world)
        return world


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
def turn(labels, key, first, begins, classes, p, groups, counts, moments, departure):  # type: ignore[no-untyped-def]
    """Make labels (n_replicates, n_samples) drawn from p labels of a world, in place.

    A label that the law makes less likely than p leaves with the difference's probability, for one
    that it makes more likely. In the sample at hand the departure has no regression on p left, while
    in another sample it would have one of its own, by chance; signs drawn for the rows stand for that.
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
