"""Pairwise search as a state machine: it names the next point, is told the value there, and so on.

One source then serves a compiled loop over predictions in memory and an engine that needs many searches
in step.
"""

from __future__ import annotations

import numpy as np

from hullcal._compiled.jit import compiled_part
from hullcal._compiled.mixing import copy, fill
from hullcal._compiled.streams import SEARCH, sparse_weights, uniform

_FIRST_STEP = 0.5
_SHRINK = 0.25
_LAST_STEP = 0.002
_PERTURBATIONS = np.array([0.03, 0.1, 0.3, 1.0])
#: An improvement must exceed the rounding of a sum.
_GAIN = 1e-12

# What is known of a search between two questions: integers, and floats; and how many they are.
ACTION, GAINING, LOSING, _PAIR, _FAILURES, _RUN, EVALUATIONS, CONVERGED, _STRIDE = range(9)
_VALUE, _STEP, AMOUNT, BEST, _OTHER = range(5)
WALK, PLACE = 9, 5
_COMPARE, _BEGIN, MOVE, _END, DONE = range(5)


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
            walk[ACTION] = MOVE
            walk[GAINING], walk[LOSING] = gaining, losing
            place[AMOUNT] = min(place[_STEP], weights[losing])
            return
    walk[ACTION] = _END


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
    walk[ACTION] = _BEGIN


@compiled_part
def start(walk, place, weights, best, starts):  # type: ignore[no-untyped-def]
    """Forget the last search and begin by comparing the two starts."""
    for i in range(walk.shape[0]):
        walk[i] = 0
    fill(place, 0.0)
    place[BEST] = np.inf
    # One more than a multiple of M has no factor in common with the M * M pairs.
    n_members = weights.shape[0]
    walk[_STRIDE] = n_members * int(0.618 * n_members) + 1
    walk[ACTION] = _COMPARE
    copy(starts[0], weights)
    copy(starts[0], best)


@compiled_part
def tell(value, walk, place, weights, best, starts, key, max_evaluations, below):  # type: ignore[no-untyped-def]
    """Take the value of the point asked for, and settle what comes next; True if a move was taken.

    A result under `below` ends the search. The value of a move does not: it is that of shifted
    predictions, of which some may be on the other side of a bin's edge when they are mixed afresh.
    """
    walk[EVALUATIONS] += 1
    action = walk[ACTION]
    taken = False
    if action == MOVE:
        if value < place[_VALUE] - _GAIN:
            taken = True
            place[_VALUE] = value
            weights[walk[GAINING]] += place[AMOUNT]
            weights[walk[LOSING]] -= place[AMOUNT]
            walk[_FAILURES] = 0
    else:
        # These values come from freshly mixed predictions, and only they may become the result.
        ended = action == _END and place[_STEP] <= _LAST_STEP
        if value < place[BEST] or (ended and value == place[BEST]):
            place[BEST] = value
            copy(weights, best)
            walk[CONVERGED] = int(ended)
    left = max_evaluations - walk[EVALUATIONS]
    if left <= 0 or place[BEST] < below:
        walk[ACTION] = DONE
    elif action == _COMPARE and walk[EVALUATIONS] == 1:
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
            walk[ACTION] = _END
        else:
            _ask(walk, place, weights)
    if walk[ACTION] == _END:
        # Transfers leave rounding behind; the point to be evaluated afresh is on the simplex.
        total = 0.0
        for m in range(weights.shape[0]):
            total += weights[m]
        for m in range(weights.shape[0]):
            weights[m] /= total
    return taken
