"""Pairwise search: move weight from one member to another for as long as that helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import B1, F1, F2, F3, I2, INT, L1, U1, compiled_part, driver
from hullcal._compiled.mixing import copy, fill, mix, shift
from hullcal._compiled.streams import SEARCH, sparse_weights, uniform
from hullcal.engines.objective import Objective
from hullcal.minimizers._base import Minima, Minimizer


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

    def search(self, objective: Objective, key: NDArray[np.uint64]) -> Minima:
        assert self.max_evaluations is not None
        minima = Minima.empty(objective.n_cases, objective.n_members)
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
            minima.weights,
            minima.values,
            minima.n_evaluations,
            minima.converged,
        )
        return minima


_FIRST_STEP = 0.5
_SHRINK = 0.25
_LAST_STEP = 0.002
_PERTURBATIONS = np.array([0.03, 0.1, 0.3, 1.0])
#: An improvement must exceed the rounding of a sum.
_GAIN = 1e-12

# The search is a state machine: it names the next point, is told the value there, and so on. One
# source then serves a compiled loop and an engine that needs many searches in step.
_ACTION, _GAINING, _LOSING, _PAIR, _FAILURES, _RUN, _EVALUATIONS, _CONVERGED, _STRIDE = range(9)
_COMPARE, _BEGIN, _MOVE, _END, _DONE = range(5)
_VALUE, _STEP, _AMOUNT, _BEST, _OTHER = range(5)


@compiled_part
def _ask(walk, place, weights):  # type: ignore[no-untyped-def]
    """Choose the next transfer, shrinking the step when no pair helped; end the run at the last step."""
    n_members = weights.shape[0]
    n_pairs = n_members * n_members
    while place[_STEP] > _LAST_STEP:
        # A stride coprime to the number of pairs visits them all in a well-spread order.
        pair = walk[_PAIR] + walk[_STRIDE]
        if pair >= n_pairs:
            pair -= n_pairs
        walk[_PAIR] = pair
        gaining = pair // n_members
        losing = pair - gaining * n_members
        walk[_FAILURES] += 1
        if walk[_FAILURES] > n_pairs:
            walk[_FAILURES] = 0
            place[_STEP] *= _SHRINK
        elif gaining != losing and weights[losing] > 0.0:
            walk[_ACTION] = _MOVE
            walk[_GAINING], walk[_LOSING] = gaining, losing
            place[_AMOUNT] = min(place[_STEP], weights[losing])
            return
    walk[_ACTION] = _END


@compiled_part
def _begin(walk, place, weights, best, starts, key):  # type: ignore[no-untyped-def]
    """Put `weights` at the start of the next run."""
    run = walk[_RUN]
    if run < 2:
        # The better of the two starts first; place[_OTHER] says which of them that is.
        first = int(place[_OTHER])
        copy(starts[first if run == 0 else 1 - first], weights)
        place[_STEP] = _FIRST_STEP
    else:
        choice = int(uniform(key, SEARCH, run, weights.shape[0], 0) * _PERTURBATIONS.shape[0])
        share = _PERTURBATIONS[choice]
        sparse_weights(key, run, weights)
        for m in range(weights.shape[0]):
            weights[m] = (1.0 - share) * best[m] + share * weights[m]
        place[_STEP] = share / 2.0
    walk[_RUN] += 1
    walk[_FAILURES] = 0
    walk[_ACTION] = _BEGIN


@compiled_part
def _start(walk, place, weights, best, starts):  # type: ignore[no-untyped-def]
    """Forget the last search and begin by comparing the two starts."""
    for i in range(walk.shape[0]):
        walk[i] = 0
    fill(place, 0.0)
    place[_BEST] = np.inf
    # One more than a multiple of M has no factor in common with the M * M pairs.
    n_members = weights.shape[0]
    walk[_STRIDE] = n_members * int(0.618 * n_members) + 1
    walk[_ACTION] = _COMPARE
    copy(starts[0], weights)
    copy(starts[0], best)


@compiled_part
def _tell(value, walk, place, weights, best, starts, key, max_evaluations):  # type: ignore[no-untyped-def]
    """Take the value of the point asked for, and settle what comes next; True if a move was taken."""
    walk[_EVALUATIONS] += 1
    action = walk[_ACTION]
    taken = False
    if action == _MOVE:
        if value < place[_VALUE] - _GAIN:
            taken = True
            place[_VALUE] = value
            weights[walk[_GAINING]] += place[_AMOUNT]
            weights[walk[_LOSING]] -= place[_AMOUNT]
            walk[_FAILURES] = 0
    else:
        # These values come from freshly mixed predictions, and only they may become the result.
        ended = action == _END and place[_STEP] <= _LAST_STEP
        if value < place[_BEST] or (ended and value == place[_BEST]):
            place[_BEST] = value
            copy(weights, best)
            walk[_CONVERGED] = int(ended)
    left = max_evaluations - walk[_EVALUATIONS]
    if left <= 0:
        walk[_ACTION] = _DONE
    elif action == _COMPARE and walk[_EVALUATIONS] == 1:
        place[_VALUE] = value
        copy(starts[1], weights)
    elif action == _COMPARE:
        place[_OTHER] = 1.0 if value < place[_VALUE] else 0.0
        _begin(walk, place, weights, best, starts, key)
    elif action == _END:
        _begin(walk, place, weights, best, starts, key)
    else:
        if action == _BEGIN:
            place[_VALUE] = value
        if left == 1:
            walk[_ACTION] = _END
        else:
            _ask(walk, place, weights)
    if walk[_ACTION] == _END:
        # Transfers leave rounding behind; the point to be evaluated afresh is on the simplex.
        total = 0.0
        for m in range(weights.shape[0]):
            total += weights[m]
        for m in range(weights.shape[0]):
            weights[m] /= total
    return taken


@driver(F3, I2, F2, F1, F1, INT, INT, F3, U1, INT, F2, F1, L1, B1)
def _search(  # type: ignore[no-untyped-def]
    value, members, labels, row_weights, parameters, offset, state_size, scratch_size,
    starts, key, max_evaluations, best_weights, best_values, evaluations, converged,
):  # fmt: skip
    n_members, n_classes, n_samples = members.shape
    flat_members = members.reshape(n_members, n_classes * n_samples)
    current, flat_trial = np.empty(n_classes * n_samples), np.empty(n_classes * n_samples)
    trial = flat_trial.reshape(n_classes, n_samples)
    state = np.zeros(state_size)
    scratch = np.zeros(scratch_size)
    walk = np.zeros(9, dtype=np.int64)
    place = np.zeros(5)
    weights = np.empty(n_members)
    for case in range(labels.shape[0]):
        y, w, begin, best = labels[case], row_weights[case], starts[case], best_weights[case]
        _start(walk, place, weights, best, begin)
        while walk[_ACTION] != _DONE:
            fresh = walk[_ACTION] != _MOVE
            if fresh:
                mix(members, weights, trial)
            else:
                gaining, losing = np.uint64(walk[_GAINING]), np.uint64(walk[_LOSING])
                shift(current, flat_members, gaining, losing, place[_AMOUNT], flat_trial)
            g = value(trial, y, w, parameters, offset, state, scratch)
            taken = _tell(g, walk, place, weights, best, begin, key, max_evaluations)
            if taken or fresh:
                # Few moves are taken: a copy costs less than swapping two arrays' names in this loop.
                copy(flat_trial, current)
        best_values[case] = place[_BEST]
        evaluations[case] = walk[_EVALUATIONS]
        converged[case] = walk[_CONVERGED] != 0
