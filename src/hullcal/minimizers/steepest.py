"""Steepest search: look at every move before taking one, from starts that favour no member."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hullcal.minimizers._base import Minima, Minimizer
from hullcal.objectives.base import Floats, Function
from hullcal.simplex import moved

Ends = tuple[Floats, Floats, NDArray[np.int64], NDArray[np.bool_]]

_FIRST_STEP, _SHRINK, _LAST_STEP = 0.15, 3.0, 0.004
#: Values that differ by less are the same: rounding of sums must not choose between moves.
_TIE = 1e-12
#: Members that are starts, if there are more; ends from which the data are searched further.
_MOST_MEMBERS, _PROMISING = 10, 6


@dataclass(frozen=True, kw_only=True)
class Steepest(Minimizer):
    r"""Descent by the best of all moves, from several starts: a function of the data.

    The starts are the mean, each member (of more than ten, those with the smallest g) and half-way from
    the mean to it. From a start, with a step s = 0.15, g is
    evaluated after every move towards a member, :math:`(1-s)\lambda + s e_m`, and away from it,
    :math:`(1+a)\lambda - a e_m` with :math:`a = \min(s, \lambda_m/(1-\lambda_m))`. The best move is taken
    if it lowers g; otherwise s is divided by three. A start ends at s < 0.004, or after the round in
    which it has spent `max_evaluations`; it has *converged* if it ended by the step.

    A test that searches its replicates compares the mean of the smallest quarter of the ends, after 15
    evaluations a start: dropping a few rows moves it less than the smallest end, and as no start depends
    on labels, replicates share their first round, in which most of them end. The best weights of the
    data are those of the smallest end of a second search, which goes on from the six smallest ends
    and from weights of nearly maximum likelihood, with `best_evaluations` a start (150, or
    `max_evaluations` if that is given). No order of rows or members changes either: values within 1e-12
    are a tie, which the member with the lower number wins, and members are numbered by their predictions
    (`hullcal.distinct`).
    """

    name: ClassVar[str] = "steepest"
    budgets: ClassVar[tuple[int, int]] = (150, 15)
    best_evaluations: int | None = None

    def budgeted(self, *, in_test: bool) -> Self:
        # A search by itself is that of the data in a test, so that both find the same weights.
        best = self.best_evaluations or self.max_evaluations or self.budgets[0]
        return replace(super().budgeted(in_test=True), best_evaluations=best)

    def alone(self) -> Self:
        return replace(self, max_evaluations=self.best_evaluations)

    def evaluations(self, n_members: int) -> int:
        a_round = 2 * n_members
        return (2 * min(_MOST_MEMBERS, n_members) + 1) * max(self.max_evaluations or 1, a_round)

    def starts(self, objective: Function) -> tuple[Floats, NDArray[np.int64]]:
        """Where each case begins, (n_cases, n_starts, n_members), and numbers that tell starts apart."""
        own = objective.starts()
        n_cases, n_own, n_members = own.shape
        if n_own > 1:
            # Settled by whoever made the objective.
            return own, np.tile(np.arange(n_own), (n_cases, 1))
        members = np.tile(np.arange(n_members), (n_cases, 1))
        if n_members > _MOST_MEMBERS:
            points = np.repeat(np.eye(n_members), n_cases, axis=0)
            values = objective.values(points, np.tile(np.arange(n_cases), n_members))
            ranks = _ranks(values.reshape(n_members, n_cases).T)
            members = np.argsort(ranks, axis=1, kind="stable")[:, :_MOST_MEMBERS]
        vertices = np.eye(n_members)[members]
        ways = 0.5 * vertices + 0.5 / n_members
        mean = np.full((n_cases, 1), 2 * n_members)
        numbers = np.hstack([mean, members, n_members + members])
        return np.concatenate([own, vertices, ways], axis=1), numbers

    def search(self, objective: Function, key: NDArray[np.uint64]) -> Minima:
        return _summary(*self.ends_of_starts(objective))

    def search_data(self, objective: Function, key: NDArray[np.uint64]) -> Minima:
        weights, values, spent, converged = self.ends_of_starts(objective)
        first = _summary(weights, values, spent, converged)
        best = np.argsort(_ranks(values), axis=0, kind="stable")[:_PROMISING]
        promising = np.take_along_axis(weights, best[:, :, np.newaxis], axis=0).transpose(1, 0, 2)
        starts = np.concatenate([objective.likeliest(), promising], axis=1)
        numbers = np.tile(np.arange(starts.shape[1]), (objective.n_cases, 1))
        second = _summary(*self.alone().ends(objective, starts, numbers))
        n_evaluations = first.n_evaluations + second.n_evaluations
        # Of ends that tie, the second search may take one that is larger by a rounding.
        values = np.minimum(second.values, first.means)
        return replace(second, values=values, means=first.means, n_evaluations=n_evaluations)

    def ends_of_starts(self, objective: Function) -> Ends:
        """Where each start of each case ends; see `ends`."""
        weights, values, spent, converged = self.ends(objective, *self.starts(objective))
        if objective.n_members > _MOST_MEMBERS:
            spent[0] += objective.n_members  # evaluated to choose among them
        return weights, values, spent, converged

    def ends(self, objective: Function, starts: Floats, numbers: NDArray[np.int64]) -> Ends:
        """Where each start of each case ends: weights, values, evaluations and whether it converged.

        What is returned begins with (n_starts, n_cases), while `starts` and `numbers` are as above.
        """
        assert self.max_evaluations is not None
        n_cases, n_starts, n_members = starts.shape
        # Start by start, so that replicates which begin at the same place are neighbours.
        weights = np.ascontiguousarray(starts.transpose(1, 0, 2)).reshape(-1, n_members)
        cases = np.tile(np.arange(n_cases), n_starts)
        values = objective.values(weights, cases)
        begun = weights.copy(), values.copy()
        steps = np.full(len(weights), _FIRST_STEP)
        spent = np.ones(len(weights), dtype=np.int64)
        has_moved = np.zeros(len(weights), dtype=np.bool_)
        paths = np.ascontiguousarray(numbers.T).ravel()
        while True:
            left = np.flatnonzero((steps >= _LAST_STEP) & (spent < self.max_evaluations))
            if len(left) == 0:
                break
            if n_cases > 1:
                # Replicates that came the same way are at the same place, where what does not depend
                # on their labels is evaluated once.
                left = left[np.argsort(paths[left], kind="stable")]
            amounts = _amounts(weights[left], steps[left])
            found = objective.moves(weights[left], cases[left], amounts)
            spent[left] += np.count_nonzero(amounts, axis=1)
            lowest = found.min(axis=1)
            # The first of those that tie for the best.
            best = np.argmax(found <= (lowest + _TIE)[:, np.newaxis], axis=1)
            helps = lowest < values[left] - _TIE
            steps[left[~helps]] /= _SHRINK
            if n_cases > 1:
                ways = paths[left] * (2 * n_members + 1) + np.where(helps, best + 1, 0)
                _, paths[left] = np.unique(ways, return_inverse=True)
            here, best = left[helps], best[helps]
            weights[here] = moved(weights[here], best // 2, amounts[helps, best])
            values[here] = lowest[helps]
            has_moved[here] = True
        # A move shifts mixed predictions; mixed afresh, some may be on the other side of a bin's edge,
        # and what was gained may be lost. No end is worse than its start.
        again = np.flatnonzero(has_moved)
        again = again[np.argsort(paths[again], kind="stable")]
        if len(again) > 0:
            values[again] = objective.values(weights[again], cases[again])
            spent[again] += 1
            lost = values > begun[1]
            weights[lost], values[lost] = begun[0][lost], begun[1][lost]
            steps[lost] = _FIRST_STEP  # such a search has not converged
        shape = n_starts, n_cases
        return (
            weights.reshape(*shape, n_members),
            values.reshape(shape),
            spent.reshape(shape),
            (steps < _LAST_STEP).reshape(shape),
        )


def _summary(
    weights: Floats, values: Floats, spent: NDArray[np.int64], converged: NDArray[np.bool_]
) -> Minima:
    """The smallest end of each case, and the mean of the smallest quarter."""
    n_starts, n_cases, _ = weights.shape
    cases = np.arange(n_cases)
    best = np.argmax(values <= values.min(axis=0) + _TIE, axis=0)
    smaller = np.sort(values, axis=0)[: -(-n_starts // 4)]
    # One by one: the order in which numpy adds depends on the number of cases.
    total = np.zeros(n_cases)
    for own in smaller:
        total += own
    lowest = values[best, cases]
    return Minima(
        weights=weights[best, cases],
        values=lowest,
        # Rounding, or a tie, must not put a mean below the smallest.
        means=np.maximum(total / len(smaller), lowest),
        n_evaluations=spent.sum(axis=0),
        converged=converged[best, cases],
    )


def _ranks(values: Floats) -> Floats:
    """Values in units of a tie, so that rounding does not choose among them."""
    with np.errstate(over="ignore"):
        return np.round(values / _TIE)


def _amounts(weights: Floats, steps: Floats) -> Floats:
    """How far each move goes, towards and away from each member in turn; 0 where it leads nowhere."""
    n, n_members = weights.shape
    amounts = np.zeros((n, n_members, 2))
    inside = weights < 1.0
    amounts[:, :, 0] = np.where(inside, steps[:, np.newaxis], 0.0)
    whole = np.where(inside, weights, 0.0) / np.where(inside, 1.0 - weights, 1.0)
    amounts[:, :, 1] = -np.minimum(steps[:, np.newaxis], whole)
    return amounts.reshape(n, 2 * n_members)
