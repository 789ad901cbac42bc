"""Loops over two blocks of rows: mixed predictions of many moves packed side by side, and their pairs."""

from __future__ import annotations

import numpy as np

from hullcal._compiled.jit import compiled
from hullcal._compiled.mixing import mix, shift
from hullcal.engines._row_loops import fill_cases, pack
from hullcal.measures._all_pairs import (
    WORKSPACE,
    fill_up,
    pack_more,
    squared_errors,
    sum_of_pairs,
)


@compiled
def packed_moves(  # type: ignore[no-untyped-def]
    probs, positions, labels, first, begin, end, few_rows,
    kind, key, replicates, label_weights,
    parameters, bases, cases, ends, pairs, amounts, packed, diagonals,
):  # fmt: skip
    """Rows begin to end - 1, mixed and packed for each move; add their squared errors.

    Members are turned `few_rows` at a time, so that they stay in the cache for all moves.
    """
    n_classes, n_members, n_cases = probs.shape[2], positions.shape[0], replicates.shape[0]
    room = np.empty(n_members * n_classes * few_rows)
    labels_room = np.empty(n_cases * few_rows, dtype=np.int32)
    weights_room = np.empty(n_cases * few_rows)
    base_room, trial_room = np.empty(n_classes * few_rows), np.empty(n_classes * few_rows)
    # No rows are drawn: each counts once.
    counts = np.zeros((0, 0), dtype=np.int32)
    for start in range(begin, end, few_rows):
        n_rows = min(few_rows, end - start)
        size = n_classes * n_rows
        members = room[: n_members * size].reshape(n_members, n_classes, n_rows)
        pack(probs, start, start + n_rows, positions, members)
        case_labels = labels_room[: n_cases * n_rows].reshape(n_cases, n_rows)
        case_weights = weights_room[: n_cases * n_rows].reshape(n_cases, n_rows)
        fill_cases(
            kind, members, labels[start : start + n_rows], first + start, key, replicates,
            label_weights, counts, 1, case_labels, case_weights,
        )  # fmt: skip
        flat_members = members.reshape(n_members, size)
        base, flat_trial = base_room[:size], trial_room[:size]
        trial = flat_trial.reshape(n_classes, n_rows)
        move = 0
        for b in range(bases.shape[0]):
            y, w = case_labels[cases[b]], case_weights[cases[b]]
            mix(members, bases[b], base.reshape(n_classes, n_rows))
            while move < ends[b]:
                gaining, losing = np.uint64(pairs[move, 0]), np.uint64(pairs[move, 1])
                shift(base, flat_members, gaining, losing, amounts[move], flat_trial)
                pack_more(trial, y, w, parameters, start - begin, packed[move])
                diagonals[move] += squared_errors(trial, y, w)
                move += 1
    for move in range(amounts.shape[0]):
        fill_up(n_classes, end - begin, packed[move])


@compiled
def add_pairs(  # type: ignore[no-untyped-def]
    rows, n_rows, others, n_others, n_classes, parameters, same, sums
):
    """Add all ordered pairs of two packed blocks, or of one with itself, to each move's sum."""
    workspace = np.empty(WORKSPACE)
    for move in range(sums.shape[0]):
        found = sum_of_pairs(
            rows[move], n_rows, others[move], n_others, n_classes, parameters, same, workspace
        )
        # A pair of different blocks stands for both of its orders.
        sums[move, 0] += found if same else 2.0 * found
