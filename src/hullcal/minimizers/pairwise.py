"""Pairwise search: move weight from one member to another for as long as that helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import B1, F1, F2, F3, FLOAT, I2, INT, L1, U1, compiled, driver
from hullcal._compiled.mixing import copy, mix, shift
from hullcal.engines.objective import Moves, Objective, StepwiseObjective
from hullcal.engines.packed import Packed
from hullcal.minimizers._base import Minima, Minimizer
from hullcal.minimizers._transfers import (
    ACTION,
    AMOUNT,
    BEST,
    CONVERGED,
    DONE,
    EVALUATIONS,
    GAINING,
    LOSING,
    MOVE,
    PLACE,
    WALK,
    start,
    tell,
)


@dataclass(frozen=True, kw_only=True)
class Pairwise(Minimizer):
    """Pattern search over mass transfers, restarted by perturbing the best point.

    A run starts at some weights with a step, tries to move that much weight (or all there is) from
    one member to another over all ordered pairs, takes every move that lowers g, and divides the
    step by four once no pair helps, down to 0.002. The first two runs start at the mean and at
    (nearly) maximum-likelihood weights, the better one first; each later run mixes 3, 10, 30 or
    100 % of a Dirichlet(1/2) draw into the best point so far and begins with a step of half that
    share. The search ends when `max_evaluations` are spent; it has *converged* if the best point
    ended its run, that is, if none of the steps tried there lowers g. That is no proof of a global
    minimum.

    A move changes the mixed predictions by a rank-one term, so it costs K per row, not M·K.
    """

    name: ClassVar[str] = "pairwise"
    test_budget: ClassVar[int] = 200
    # Tests by SKCE and by Hosmer-Lemeshow have the same power at 40 or 60 to 200 evaluations.
    easy_test_budget: ClassVar[int | None] = 50

    @property
    def ends_early(self) -> bool:
        return type(self) is Pairwise  # a subclass may search in another way

    def until(self, below: float) -> Minimizer:
        return _Until(max_evaluations=self.max_evaluations, below=below)

    def search(self, objective: Objective, key: NDArray[np.uint64]) -> Minima:
        return self._descended(objective, key, -np.inf)

    def _descended(self, objective: Objective, key: NDArray[np.uint64], below: float) -> Minima:
        assert self.max_evaluations is not None
        minima = Minima.empty(objective.n_cases, objective.n_members)
        if isinstance(objective, StepwiseObjective):
            _in_step(objective, key, self.max_evaluations, below, minima)
            return minima
        assert isinstance(objective, Packed)
        _search(
            objective.measure.value,
            objective.members,
            objective.labels,
            objective.row_weights,
            objective.parameters,
            objective.offset,
            *objective.sizes,
            objective.starts(),
            key,
            self.max_evaluations,
            below,
            minima.weights,
            minima.values,
            minima.n_evaluations,
            minima.converged,
        )
        return minima


@dataclass(frozen=True, kw_only=True)
class _Until(Pairwise):
    """The same search, ended by the first result below a bound.

    The value of a search is never above that at the mean, so there it is often over: most replicates
    of a set that is clearly rejected cost one evaluation.
    """

    below: float

    def minimize(self, objective: Objective, key: NDArray[np.uint64]) -> Minima:
        if objective.n_members == 1:
            return super().minimize(objective, key)
        mean = np.full(objective.n_members, 1.0 / objective.n_members)
        minima = Minima.empty(objective.n_cases, objective.n_members)
        minima.weights[:] = mean
        minima.values[:] = objective.at(mean)
        minima.n_evaluations[:] = 1
        left = np.flatnonzero(~(minima.values < self.below))
        if len(left) > 0:
            found = super().minimize(objective.only(left), key)
            minima.weights[left], minima.values[left] = found.weights, found.values
            minima.n_evaluations[left] += found.n_evaluations
            minima.converged[left] = found.converged
        return minima

    def search(self, objective: Objective, key: NDArray[np.uint64]) -> Minima:
        return self._descended(objective, key, self.below)


@compiled
def _first(walks, places, weights, best, starts):  # type: ignore[no-untyped-def]
    for case in range(walks.shape[0]):
        start(walks[case], places[case], weights[case], best[case], starts[case])


@compiled
def _look_ahead(  # type: ignore[no-untyped-def]
    pairs, amounts, walk, place, weights, best, starts, key, max_evaluations, below
):
    """The moves to come if none of them is taken, as many as there is room for; how many they are."""
    walk, place, weights, best = walk.copy(), place.copy(), weights.copy(), best.copy()
    n = 0
    while n < amounts.shape[0] and walk[ACTION] == MOVE:
        pairs[n, 0], pairs[n, 1] = walk[GAINING], walk[LOSING]
        amounts[n] = place[AMOUNT]
        n += 1
        tell(np.inf, walk, place, weights, best, starts, key, max_evaluations, below)
    return n


@compiled
def _told(values, walk, place, weights, best, starts, key, max_evaluations, below):  # type: ignore[no-untyped-def]
    """Take values in turn until a move is taken, which makes the others idle; True if one was."""
    taken = False
    for value in values:
        if not taken:
            taken = tell(value, walk, place, weights, best, starts, key, max_evaluations, below)
    return taken


def _in_step(
    objective: StepwiseObjective,
    key: NDArray[np.uint64],
    max_evaluations: int,
    below: float,
    minima: Minima,
) -> None:
    """The searches of all cases at once, the same steps as below: every question goes to all rows.

    Moves that will be tried if those before them fail are asked for along with them.
    """
    n_cases, n_members = minima.weights.shape
    walks, places = np.zeros((n_cases, WALK), dtype=np.int64), np.zeros((n_cases, PLACE))
    weights, starts = np.empty((n_cases, n_members)), objective.starts()
    _first(walks, places, weights, minima.weights, starts)
    near, far = objective.ahead
    ahead = np.full(n_cases, near)

    def machine(case: int) -> tuple[Any, ...]:
        own = walks[case], places[case], weights[case], minima.weights[case], starts[case]
        return *own, key, max_evaluations, below

    while True:
        moves = []
        for case in np.flatnonzero(walks[:, ACTION] != DONE):
            if walks[case, ACTION] != MOVE:
                moves.append(Moves.none(int(case), weights[case].copy()))
                continue
            pairs, amounts = np.empty((ahead[case], 2), dtype=np.int64), np.empty(ahead[case])
            n = _look_ahead(pairs, amounts, *machine(int(case)))
            moves.append(Moves(int(case), weights[case].copy(), pairs[:n], amounts[:n]))
        if not moves:
            break
        values = objective.answer(moves)
        for one in moves:
            own, values = values[: len(one.amounts)], values[len(one.amounts) :]
            taken = _told(own, *machine(one.case))
            ahead[one.case] = near if taken else min(2 * ahead[one.case], far)
    minima.values[:] = places[:, BEST]
    minima.n_evaluations[:] = walks[:, EVALUATIONS]
    minima.converged[:] = walks[:, CONVERGED] != 0


@driver(F3, I2, F2, F1, F1, INT, INT, F3, U1, INT, FLOAT, F2, F1, L1, B1)
def _search(  # type: ignore[no-untyped-def]
    value, members, labels, row_weights, parameters, offset, state_size, scratch_size,
    starts, key, max_evaluations, below, best_weights, best_values, evaluations, converged,
):  # fmt: skip
    n_members, n_classes, n_samples = members.shape
    flat_members = members.reshape(n_members, n_classes * n_samples)
    current, flat_trial = np.empty(n_classes * n_samples), np.empty(n_classes * n_samples)
    trial = flat_trial.reshape(n_classes, n_samples)
    state = np.zeros(state_size)
    scratch = np.zeros(scratch_size)
    walk = np.zeros(WALK, dtype=np.int64)
    place = np.zeros(PLACE)
    weights = np.empty(n_members)
    for case in range(labels.shape[0]):
        y, w, begin, best = labels[case], row_weights[case], starts[case], best_weights[case]
        start(walk, place, weights, best, begin)
        while walk[ACTION] != DONE:
            fresh = walk[ACTION] != MOVE
            if fresh:
                mix(members, weights, trial)
            else:
                gaining, losing = np.uint64(walk[GAINING]), np.uint64(walk[LOSING])
                shift(current, flat_members, gaining, losing, place[AMOUNT], flat_trial)
            g = value(trial, y, w, parameters, offset, state, scratch)
            taken = tell(g, walk, place, weights, best, begin, key, max_evaluations, below)
            if fresh:
                copy(flat_trial, current)
            elif taken:
                # Few moves are taken. Mixed afresh, a point depends on its weights alone, not on the
                # way there: an engine that keeps no mixed predictions finds the same values.
                mix(members, weights, current.reshape(n_classes, n_samples))
        best_values[case] = place[BEST]
        evaluations[case] = walk[EVALUATIONS]
        converged[case] = walk[CONVERGED] != 0
