"""Pairwise search: move weight from one member to another for as long as that helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import B1, F1, F2, F3, I2, INT, L1, U1, compiled_part, driver
from hullcal._compiled.mixing import copy, mix, shift
from hullcal._compiled.streams import SEARCH, sparse_weights, uniform
from hullcal.minimizers._base import Minima, Minimizer
from hullcal.objectives.base import Function
from hullcal.objectives.memory import InMemory

_FIRST_STEP, _SHRINK, _LAST_STEP = 0.5, 0.25, 0.002
_PERTURBATIONS = np.array([0.03, 0.1, 0.3, 1.0])
#: An improvement must exceed the rounding of a sum.
_GAIN = 1e-12


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

    It finds smaller values than `steepest`, and which depends on the seed and on the order of the rows:
    the first move that helps is taken. Predictions have to be in memory.
    """

    name: ClassVar[str] = "pairwise"
    needs: ClassVar[frozenset[str]] = frozenset({"measure", "predictions"})
    # Tests by SKCE and by Hosmer-Lemeshow have the same power at 40 or 60 to 200 evaluations.
    budgets: ClassVar[tuple[int, int]] = (10_000, 200)

    def search(self, objective: Function, key: NDArray[np.uint64]) -> Minima:
        assert self.max_evaluations is not None
        minima = Minima.empty(objective.n_cases, objective.n_members)
        assert isinstance(objective, InMemory)
        _search(
            *objective.loop,
            np.concatenate([objective.starts(), objective.likeliest()], axis=1),
            key,
            self.max_evaluations,
            minima.weights,
            minima.values,
            minima.n_evaluations,
            minima.converged,
        )
        return minima


@compiled_part
def _begin(run, better, starts, best, key, weights):  # type: ignore[no-untyped-def]
    """Put `weights` at the start of a run; its first step."""
    if run < starts.shape[0]:
        copy(starts[better if run == 0 else run - int(run <= better)], weights)
        return _FIRST_STEP
    choice = int(uniform(key, SEARCH, run, weights.shape[0], 0) * _PERTURBATIONS.shape[0])
    share = _PERTURBATIONS[choice]
    sparse_weights(key, run, weights)
    for m in range(weights.shape[0]):
        weights[m] = (1.0 - share) * best[m] + share * weights[m]
    return share / 2.0


@driver(F3, I2, F2, F1, F1, INT, INT, F3, U1, INT, F2, F1, L1, B1)
def _search(  # type: ignore[no-untyped-def]
    value, members, labels, row_weights, parameters, offset, state_size, scratch_size,
    starts, key, max_evaluations, best_weights, best_values, evaluations, converged,
):  # fmt: skip
    n_members, n_classes, n_samples = members.shape
    flat_members = members.reshape(n_members, n_classes * n_samples)
    flat_current, flat_trial = np.empty(n_classes * n_samples), np.empty(n_classes * n_samples)
    current = flat_current.reshape(n_classes, n_samples)
    trial = flat_trial.reshape(n_classes, n_samples)
    state = np.zeros(state_size)
    scratch = np.zeros(scratch_size)
    weights = np.empty(n_members)
    n_pairs = n_members * n_members
    # One more than a multiple of M has no factor in common with the M * M pairs, so that steps of this
    # length visit them all, in a well-spread order.
    stride = n_members * int(0.618 * n_members) + 1
    for case in range(labels.shape[0]):
        y, w, best = labels[case], row_weights[case], best_weights[case]
        best_values[case], converged[case] = np.inf, False
        spent, better = 0, 0
        for s in range(min(starts.shape[1], max_evaluations)):
            mix(members, starts[case, s], trial)
            g = value(trial, y, w, parameters, offset, state, scratch)
            spent += 1
            if s == 0 or g < best_values[case]:
                best_values[case], better = g, s
                copy(starts[case, s], best)
        run, pair = 0, 0
        while spent < max_evaluations:
            step = _begin(run, better, starts[case], best, key, weights)
            run += 1
            mix(members, weights, current)
            g = value(current, y, w, parameters, offset, state, scratch)
            spent += 1
            if g < best_values[case]:
                best_values[case], converged[case] = g, False
                copy(weights, best)
            failures = 0
            while step > _LAST_STEP and spent < max_evaluations - 1:
                pair += stride
                if pair >= n_pairs:
                    pair -= n_pairs
                gaining = pair // n_members
                losing = pair - gaining * n_members
                failures += 1
                if failures > n_pairs:
                    failures = 0
                    step *= _SHRINK
                elif gaining != losing and weights[losing] > 0.0:
                    amount = min(step, weights[losing])
                    shift(
                        flat_current, flat_members, np.uint64(gaining), np.uint64(losing), amount,
                        flat_trial,
                    )  # fmt: skip
                    moved = value(trial, y, w, parameters, offset, state, scratch)
                    spent += 1
                    if moved < g - _GAIN:
                        g = moved
                        weights[gaining] += amount
                        weights[losing] -= amount
                        failures = 0
                        # Few moves are taken; mixed afresh, rounding does not pile up.
                        mix(members, weights, current)
            if spent < max_evaluations:
                # Transfers leave rounding behind; the point to be evaluated is on the simplex, and only
                # freshly mixed predictions may become the result.
                total = 0.0
                for m in range(n_members):
                    total += weights[m]
                for m in range(n_members):
                    weights[m] /= total
                mix(members, weights, trial)
                g = value(trial, y, w, parameters, offset, state, scratch)
                spent += 1
                ended = step <= _LAST_STEP
                if g < best_values[case] or (ended and g == best_values[case]):
                    best_values[case], converged[case] = g, ended
                    copy(weights, best)
        evaluations[case] = spent
